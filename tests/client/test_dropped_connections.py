"""A connection that is dropped without a close says so, as a file does, and ends by itself."""

from __future__ import annotations

import asyncio
import copy
import gc
import pickle
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import ledgermq
import ledgermq.aio
from ledgermq.testing import MemoryBroker

NAMES = ("ledgermq-reader", "ledgermq-heartbeats")


@pytest.fixture
def broker():
    """A queue manager in memory with a queue q that has messages."""
    made = MemoryBroker()
    with made.connect() as connection, connection.session() as session:
        session.producer("queue:q").send_many(["a", "b", "c"])
    return made


def running() -> set[threading.Thread]:
    """The threads of connections that run now."""
    return {one for one in threading.enumerate() if one.name in NAMES}


def drop(holder: list[object]) -> None:
    """Lets go what somebody has, and whatever has nothing but itself."""
    holder.clear()
    gc.collect()


@contextmanager
def no_warning() -> Iterator[None]:
    """Nothing is dropped in the block that warns of it."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        yield
    assert [str(one.message) for one in told] == []


def test_a_connection_that_nobody_has_warns_and_ends_its_threads(broker, eventually):
    """Its sessions are closed as by close(): what it held goes to others at once."""
    before, has = running(), [broker.connect()]
    has.append(has[0].session(ack="CLIENT"))
    assert has[1].consumer("queue:q", prefetch=1).receive(timeout=5).body == "a"
    with pytest.warns(ResourceWarning, match=r"Connection\(QM1 at .*, open\) was dropped"):
        drop(has)
    eventually(lambda: running() <= before)
    with broker.connect() as other:
        assert other.admin.queue_manager_status().connections == 1
        assert other.admin.queue_status("q").current == 3


def test_a_connection_that_was_closed_says_nothing(broker):
    """Nor one that could not be opened."""
    with no_warning():
        broker.connect(client_id="me").close()
        with broker.connect(client_id="me"), pytest.raises(ledgermq.InvalidClientIDError):
            broker.connect(client_id="me")
        gc.collect()


@pytest.mark.parametrize(
    "keep",
    [
        lambda connection: connection.session(),
        lambda connection: connection.admin,
        lambda connection: connection.browser("queue:q"),
        lambda connection: connection.session().browser("queue:q"),
        lambda connection: connection.session().producer("queue:q"),
        lambda connection: connection.session().producer("queue:q").group(),
        lambda connection: connection.session().consumer("queue:q"),
        lambda connection: connection.session().consumer("queue:q").receive(timeout=5),
        lambda connection: connection.session().requestor("queue:q"),
    ],
    ids=[
        "session",
        "admin",
        "browser",
        "of-session",
        "producer",
        "group",
        "consumer",
        "message",
        "requestor",
    ],
)
def test_what_is_made_of_a_connection_keeps_it(broker, eventually, keep):
    """Whoever has only that goes on with it."""
    before, has = running(), [broker.connect()]
    kept = [keep(has[0])]
    with no_warning():
        drop(has)
    with pytest.warns(ResourceWarning, match="was dropped"):
        drop(kept)
    eventually(lambda: running() <= before)


def test_a_listener_keeps_a_connection_that_nobody_else_has(broker, eventually):
    """It is at work, as a thread is that nobody has."""
    heard, before, has = [], running(), [broker.connect()]
    consumer = has[0].session().consumer("queue:q")

    def listener(message: ledgermq.Message) -> None:
        heard.append(message.body)
        if message.body == "end":
            consumers.pop().set_message_listener(None)

    consumers = [consumer]
    consumer.set_message_listener(listener)
    del consumer
    with no_warning():
        drop(has)
        eventually(lambda: heard == ["a", "b", "c"])
    with broker.connect() as other, other.session() as sending:
        sending.producer("queue:q").send("end")
    eventually(lambda: heard[-1] == "end")
    eventually(lambda: gc.collect() < 0 or running() <= before)


def test_what_was_sent_is_put_before_a_dropped_connection_ends(broker):
    """The future that is left tells it."""
    has = [broker.connect()]
    future = has[0].session().producer("queue:q").send_async("d")
    with pytest.warns(ResourceWarning):
        drop(has)
    assert future.result(20).sequence == 3


def test_a_connection_of_coroutines_that_nobody_has_warns_and_ends(broker, eventually):
    """What is made of it keeps it, too."""
    before = running()

    async def work() -> None:
        has = [ledgermq.aio.Connection(broker.connect())]
        has.append(await has[0].session())
        kept = [await has[1].consumer("queue:q")]
        with no_warning():
            drop(has)
            assert (await kept[0].receive(timeout=5)).body == "a"
        with pytest.warns(ResourceWarning, match="was dropped"):
            drop(kept)

    asyncio.run(work())
    eventually(lambda: running() <= before)


def of_threads(connection):
    """What is made of a connection and lives as long as it."""
    session = connection.session()
    producer = session.producer("queue:q")
    yield from (connection, connection.admin, session, producer, session.consumer("queue:q"))
    yield from (connection.browser("queue:q"), session.requestor("queue:q"))
    yield from (producer.send_async("x"), producer.group())


async def of_coroutines(connection):
    """The same for asyncio."""
    session = await connection.session()
    producer, consumer = session.producer("queue:q"), await session.consumer("queue:q")
    requestor = await session.requestor("queue:q")
    return (
        *(connection, connection.admin, session, producer, consumer, producer.group()),
        *(requestor, await connection.browser("queue:q")),
    )


def check_uncopied(things):
    """None is copied or pickled; the text says what to do in its place."""
    for one in things:
        for take in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="connect in the process that uses it") as caught:
                take(one)
            assert (caught.value.code, type(one).__name__ in str(caught.value)) == (
                "argument-type",
                True,
            )


def test_nothing_that_belongs_to_a_connection_is_copied(broker):
    """A dropped copy of one closed the original; a pickle told of a lock that nobody had made."""
    with broker.connect() as connection:
        check_uncopied(of_threads(connection))

    async def main():
        async with ledgermq.aio.Connection(broker.connect()) as connection:
            check_uncopied(await of_coroutines(connection))

    asyncio.run(main())


def test_a_message_is_pickled_and_copied(broker):
    """It is what goes to other processes, where it is read; only who got it settles it."""
    with broker.connect() as connection, connection.session(ack="CLIENT") as session:
        message = session.consumer("queue:q").receive(timeout=5)
        for other in (
            copy.copy(message),
            copy.deepcopy(message),
            pickle.loads(pickle.dumps(message)),
        ):
            assert other.body == message.body == "a"
            with pytest.raises(ledgermq.IllegalStateError, match="and neither is a copy"):
                other.acknowledge()
        message.acknowledge()
