"""Coroutines that are cancelled while something is being opened, and units of work that fail."""

import asyncio
import threading
import time

import pytest

import ledgermq
from ledgermq import aio

QUEUE = "queue:q"


async def until(holds):
    """Waits until something holds."""
    limit = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < limit, "it does not come to hold"
        await asyncio.sleep(0.01)


async def cancelled_after(steps, opening):
    """Lets a task go on for so many rounds of the event loop, then cancels it; whether it was."""
    task = asyncio.create_task(opening)
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    try:
        await (await task).close()
    except asyncio.CancelledError:
        return True
    return False


def test_a_cancelled_connect_leaves_no_connection(memory, monkeypatch):
    """Nobody could close it, and its client id would be in use for ever."""
    may_go_on = threading.Event()
    made = []

    def connect(_address, **settings):
        assert may_go_on.wait(20)
        made.append(memory.connect(**settings))
        return made[-1]

    monkeypatch.setattr(ledgermq, "connect", connect)

    async def main():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(aio.connect("kafka://h:1", client_id="billing"), 0.05)
        may_go_on.set()
        await until(lambda: made and made[0].is_closed)
        async with aio.connect("kafka://h:1", client_id="billing") as connection:
            assert not connection.is_closed

    asyncio.run(asyncio.wait_for(main(), 30))


@pytest.mark.parametrize("thing", ["session", "consumer", "requestor"])
def test_what_was_being_opened_by_a_cancelled_coroutine_is_closed(memory, thing):
    """At whatever moment it is cancelled: no session, receiver or temporary queue stays."""

    async def main():
        threaded = memory.connect()
        async with aio.Connection(threaded) as connection, connection.session() as session:
            await session.producer(QUEUE).send("x")
            openings = {
                "session": connection.session,
                "consumer": lambda: session.consumer(QUEUE),
                "requestor": lambda: session.requestor(QUEUE),
            }
            admin = threaded.admin

            def left():
                queues = admin.list_queues()
                return len(admin.sessions()), [(one.name, one.receivers) for one in queues]

            before, cancelled = left(), 0
            for steps in range(30):
                cancelled += await cancelled_after(steps, openings[thing]())
            await until(lambda: left() == before)
            assert cancelled
            async with session.consumer(QUEUE) as consumer:
                assert (await consumer.receive(20)).body == "x"

    asyncio.run(asyncio.wait_for(main(), 60))


async def fail_in_a_crash(memory, threaded, session, error):
    """A unit of work that raises after its connection has died."""
    async with session.transaction():
        await session.producer(QUEUE).send("x")
        memory.crash(threaded)
        raise error


def test_what_ends_a_unit_of_work_is_raised_even_if_the_rollback_fails(memory):
    """As without asyncio: a cancelled coroutine stays cancelled, a failure stays that failure."""

    async def main():
        for error in (asyncio.CancelledError, KeyError):
            threaded = memory.connect(timeout=5.0)
            session = await aio.Connection(threaded).session(transacted=True)
            with pytest.raises(error):
                await fail_in_a_crash(memory, threaded, session, error)

    asyncio.run(asyncio.wait_for(main(), 30))
