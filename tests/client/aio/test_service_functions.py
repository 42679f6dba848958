"""Functions of services: what may be one, and what becomes of a message whatever they do."""

import asyncio
import collections
import concurrent.futures
import functools

import pytest

from ledgermq import aio
from ledgermq.errors import IllegalStateError
from support.brokers.serving import LIMIT_SECONDS, served, served_until_empty
from support.messages.bodies import put


class Taker:
    """A handler that is an object, as frameworks make them."""

    def __init__(self, take):
        self.take = take

    async def __call__(self, message):
        """What the service calls."""
        await self.take(message)


def wrapping(take):
    """A decorator that does not know of coroutine functions."""

    def call(message):
        return take(message)

    return call


@pytest.mark.parametrize("wrapped", [Taker, functools.partial, wrapping])
def test_a_message_is_acknowledged_only_when_the_coroutine_made_for_it_has_ended(
    service, own_connection, queue, wrapped
):
    """Also where what was given is no coroutine function itself, but returns a coroutine."""
    put(own_connection, queue, "a", "b")
    seen, enough = [], asyncio.Event()

    async def take(message):
        await asyncio.sleep(0)
        seen.append(message.body)
        if len(seen) == 2:
            enough.set()

    service.consumer(queue)(wrapped(take))
    asyncio.run(asyncio.wait_for(served(service, enough), LIMIT_SECONDS))
    assert seen == ["a", "b"]
    assert own_connection.admin.queue_status(queue).message_count == 0


def test_a_function_written_in_c_may_not_say_what_it_takes(service, own_connection, queue):
    """Python asks for no more than that it can be called."""
    put(own_connection, queue, "a", "b")
    seen = collections.deque()
    service.consumer(queue)(seen.append)
    served_until_empty(service, own_connection, queue)
    assert [message.body for message in seen] == ["a", "b"]


def test_a_function_with_yield_is_refused():
    """Calling it does nothing of what it says: each message would be acknowledged unseen."""
    service = aio.Service("kafka://localhost:1/QM1")

    def plain(message):
        yield message

    async def coroutine(message):
        yield message

    for one in (plain, coroutine):
        with pytest.raises(IllegalStateError, match="yield"):
            service.consumer("queue:q")(one)


def test_a_plain_function_that_wants_the_session_is_told_who_gets_it():
    """The text said only that it is called with one message, in a service that is transacted."""
    service = aio.Service("kafka://localhost:1/QM1")
    with pytest.raises(IllegalStateError, match="only coroutine functions are given the session"):
        service.consumer("queue:q", transacted=True)(lambda message, session: None)


def test_a_service_without_a_consumer_does_not_run():
    """It ran for ever and did nothing, as where a module with its functions was not imported."""
    service = aio.Service("kafka://localhost:1/QM1")
    with pytest.raises(IllegalStateError, match="no consumer"):
        asyncio.run(service.serve())


def stop_iteration(message):
    """What a plain function raises whose iterator is empty."""
    return next(iter(()))


def cancelled_in_a_thread(message):
    """What a plain function raises whose own pool was shut down."""
    raise concurrent.futures.CancelledError


async def cancelled(message):
    """What a coroutine raises that awaits a task which somebody cancelled."""
    task = asyncio.create_task(asyncio.sleep(LIMIT_SECONDS))
    task.cancel()
    await task


async def cancelling_itself(message):
    """What a coroutine does that gives up in the way of event loops."""
    asyncio.current_task().cancel()
    await asyncio.sleep(LIMIT_SECONDS)


async def cancelled_once_it_has_returned(message):
    """Its task has been cancelled, and nothing of it has noticed."""
    asyncio.current_task().cancel()


FAILURES = [
    stop_iteration,
    cancelled_in_a_thread,
    cancelled,
    cancelling_itself,
    cancelled_once_it_has_returned,
]


@pytest.mark.parametrize("fail", FAILURES)
def test_whatever_a_function_raises_its_message_comes_again(service, own_connection, queue, fail):
    """Also what means something to event loops: the service goes on."""
    put(own_connection, queue, "a")
    seen, enough = [], asyncio.Event()

    async def take(message):
        if message.delivery_count == 2:
            enough.set()
            return
        seen.append(message.body)
        if asyncio.iscoroutinefunction(fail):
            await fail(message)

    def take_in_a_thread(message):
        if message.delivery_count == 2:
            loops[0].call_soon_threadsafe(enough.set)
            return
        seen.append(message.body)
        fail(message)

    loops = []

    async def serving():
        loops.append(asyncio.get_running_loop())
        await served(service, enough)

    taker = take if asyncio.iscoroutinefunction(fail) else take_in_a_thread
    service.consumer(queue, redelivery_delay_ms=0)(taker)
    asyncio.run(asyncio.wait_for(serving(), LIMIT_SECONDS))
    assert seen == ["a"]
    assert own_connection.admin.queue_status(queue).message_count == 0


def test_a_unit_of_work_whose_function_cancels_itself_is_rolled_back(
    service, own_connection, queue
):
    """Its message comes again, what it sent is gone, and the service goes on with both."""
    put(own_connection, queue, "a", "b")
    seen, enough = [], asyncio.Event()

    @service.consumer(queue, transacted=True, redelivery_delay_ms=0)
    async def take(message, session):
        seen.append((message.body, message.delivery_count))
        await session.producer(f"{queue}.out").send(message.body)
        if seen == [("a", 1)]:
            await cancelling_itself(message)
        if len(seen) == 3:
            enough.set()

    asyncio.run(asyncio.wait_for(served(service, enough), LIMIT_SECONDS))
    assert sorted(seen) == [("a", 1), ("a", 2), ("b", 1)]
    assert own_connection.admin.queue_status(queue).message_count == 0
    sent = [one.body for one in own_connection.browser(f"{queue}.out")]
    assert sorted(sent) == ["a", "b"]


def test_a_function_may_acknowledge_its_message_itself(service, own_connection, queue):
    """The service, which does so too, goes on with the next message."""
    put(own_connection, queue, "a", "b")
    seen, enough = [], asyncio.Event()

    @service.consumer(queue)
    async def take(message):
        seen.append(message.body)
        await message.acknowledge()
        if len(seen) == 2:
            enough.set()

    asyncio.run(served(service, enough))
    assert seen == ["a", "b"]
    assert own_connection.admin.queue_status(queue).message_count == 0


def reject_in_a_thread(message):
    """A function that blocks."""
    if message.body == "bad":
        raise aio.MessageRejectedError("no such customer")


async def reject(message):
    """A coroutine function."""
    reject_in_a_thread(message)


async def reject_in_a_unit_of_work(message, session):
    """A coroutine function that has sent something for its message already."""
    await session.producer(f"{message.destination}.bills").send(message.body)
    reject_in_a_thread(message)


def test_a_function_may_have_its_message_later(service, own_connection, queue, dead, caplog):
    """As late as the function says, be it at once, whatever delay the service has (INF-10)."""
    put(own_connection, queue, "later", "now")
    handled = []
    enough = asyncio.Event()

    @service.consumer(queue, redelivery_delay_ms=3_600_000)
    async def postpone(message):
        handled.append((message.body, message.delivery_count))
        if handled == [("later", 1)]:
            raise aio.MessageRejectedError("too many requests", requeue=True, delay=0)
        if len(handled) == 3:
            enough.set()

    asyncio.run(asyncio.wait_for(served(service, enough), LIMIT_SECONDS))
    assert handled == [("later", 1), ("later", 2), ("now", 1)]
    assert list(own_connection.browser(dead)) == []
    assert "too many requests" in caplog.text


async def reject_in_a_task_group(message):
    """A coroutine function of which one task of several finds that out."""
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(0))
        group.create_task(reject(message))


REJECTING = [reject_in_a_thread, reject, reject_in_a_unit_of_work, reject_in_a_task_group]


@pytest.mark.parametrize("function", REJECTING)
def test_a_message_that_a_function_rejects_is_not_delivered_again(
    service, own_connection, queue, dead, caplog, function
):
    """It goes to the error destination, and what was sent for it is rolled back (INF-12)."""
    put(own_connection, queue, "bad", "good")
    service.consumer(queue, transacted=function is reject_in_a_unit_of_work)(function)

    served_until_empty(service, own_connection, queue)
    (rejected,) = own_connection.browser(dead)
    assert (rejected.body, rejected.origin.reason) == ("bad", "rejected")
    assert "no such customer" in caplog.text
    if function is reject_in_a_unit_of_work:
        assert [one.body for one in own_connection.browser(f"{queue}.bills")] == ["good"]
