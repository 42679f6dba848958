"""`ledgermq.aio.Connection.admin`: the administration of threads, awaited."""

import asyncio
import inspect
from contextvars import ContextVar

import pytest

import ledgermq
from ledgermq import aio
from ledgermq.aio.admin import Admin, _awaited
from ledgermq.client.admin.admin import Admin as ThreadedAdmin
from ledgermq.testing import MemoryBroker


@pytest.fixture
def threaded():
    """A connection to a queue manager in memory."""
    with MemoryBroker().connect() as connection:
        yield connection


def test_it_has_each_call_of_threads_with_its_arguments():
    """What is new there is new here."""
    names = [one for one in dir(ThreadedAdmin) if not one.startswith("_")]
    assert [one for one in dir(Admin) if not one.startswith("_")] == names
    for name in names:
        ours, theirs = getattr(Admin, name), getattr(ThreadedAdmin, name)
        assert inspect.signature(ours) == inspect.signature(theirs)
        assert ours.__doc__ == theirs.__doc__


def test_changes_and_statuses_are_awaited_several_at_a_time(run, queue):
    """What is refused is raised where it is awaited."""

    async def work(connection):
        admin = connection.admin
        name = queue.removeprefix("queue:")
        await asyncio.gather(*(admin.create_queue(f"{name}.{n}", description=str(n)) for n in "ab"))
        with pytest.raises(ledgermq.DestinationExistsError, match="exists"):
            await admin.create_queue(f"{name}.a")
        with pytest.raises(ledgermq.ArgumentTypeError, match="description"):
            await admin.alter_queue(f"{name}.a", description=5)
        async with connection.session() as session:
            await session.producer(f"{queue}.a").send("x")
        before = await admin.queue_status(f"{name}.a")
        purged = await admin.purge_queue(f"{name}.a", reason="a test")
        listed = {one.name: one for one in await admin.list_queues()}
        for one in "ab":
            await admin.delete_queue(f"{name}.{one}")
        return before.message_count, purged.affected, listed[f"{name}.b"].description

    assert run(work) == (1, 1, "b")


def test_a_call_that_nobody_awaits_yet_is_under_way(threaded):
    """So a call without `await`, as with threads, is not silently none."""

    async def work():
        connection = aio.Connection(threaded)
        begun = connection.admin.create_queue("begun")
        while "begun" not in [one.name for one in threaded.admin.list_queues()]:
            await asyncio.sleep(0.01)
        assert await begun > 0
        await connection.close()
        with pytest.raises(ledgermq.ConnectionClosedError):
            connection.admin  # noqa: B018

    asyncio.run(asyncio.wait_for(work(), 60))


def test_a_thread_without_an_event_loop_waits(threaded):
    """As `asyncio.to_thread` is the way with what waits."""

    async def work():
        async with aio.Connection(threaded) as connection:
            return await asyncio.to_thread(connection.admin.list_queues)

    threaded.admin.create_queue("orders")
    assert [one.name for one in asyncio.run(work())] == ["orders"]


def test_a_call_sees_the_context_it_was_made_in():
    """As of a request that is traced."""
    request = ContextVar("request", default="none")
    asked = _awaited(lambda _: request.get())

    async def work():
        request.set("r1")
        return await asked(Admin(None))

    assert asyncio.run(work()) == "r1"
