"""A close that fails or is interrupted before it is on its way: it can be done again, or is done.

Else the queue manager would keep for it what it holds, as the heartbeats of its connection go on.
"""

import asyncio
import contextlib
import threading
import time

import pytest

import ledgermq
from ledgermq import aio
from ledgermq.client.engine.engine import Engine
from ledgermq.testing import MemoryBroker

FULL = ledgermq.BrokerUnavailableError("what waits for the broker fills the queue")


@pytest.fixture
def memory():
    """A queue manager in memory with a message on a queue."""
    found = MemoryBroker()
    with found.connect() as connection, connection.session() as session:
        session.producer("queue:q").send("a")
    return found


@pytest.fixture
def connection(memory):
    """A connection to it."""
    with memory.connect(timeout=20.0) as opened:
        yield opened


@pytest.fixture
def other(memory):
    """A consumer of another connection."""
    with memory.connect() as opened, opened.session() as session:
        yield session.consumer("queue:q")


@contextlib.contextmanager
def writing(connection, error):
    """Nothing that is written meanwhile is taken."""
    log = connection._running.transport

    def write(*_):
        raise error

    log.write = write
    try:
        yield
    finally:
        del log.write


def close_again(connection, opened):
    """Closes it while nothing can be written, and then once more."""
    with writing(connection, FULL), pytest.raises(ledgermq.BrokerUnavailableError):
        opened.close()
    assert not opened.is_closed
    opened.close()
    assert opened.is_closed


def test_a_session_whose_close_was_not_written_can_be_closed_again(connection, other):
    """The error says that it may be tried again; what it holds goes to others then."""
    session = connection.session(ack="CLIENT")
    assert session.consumer("queue:q").receive(20).body == "a"
    close_again(connection, session)
    assert other.receive(20).body == "a"


def test_a_connection_closes_the_session_whose_close_was_not_written(memory, other):
    """As any other one that was left open."""
    with memory.connect() as connection:
        session = connection.session(ack="CLIENT")
        assert session.consumer("queue:q").receive(20).body == "a"
        with writing(connection, FULL), pytest.raises(ledgermq.BrokerUnavailableError):
            session.close()
    assert other.receive(20).body == "a"


def test_a_close_that_is_interrupted_while_a_listener_runs_can_be_done_again(connection, other):
    """Ctrl-C ends the wait for the listener, before anything of the session was closed."""
    session = connection.session(ack="CLIENT")
    begun, may_end = threading.Event(), threading.Event()

    def listener(_):
        begun.set()
        may_end.wait(20)

    session.consumer("queue:q").set_message_listener(listener)
    assert begun.wait(20)

    def interrupted():
        raise KeyboardInterrupt

    listening = session._work.listening
    listening.end = interrupted
    with pytest.raises(KeyboardInterrupt):
        session.close()
    del listening.end
    may_end.set()
    session.close()
    assert other.receive(20).body == "a"


def test_a_session_that_a_coroutine_could_not_close_can_be_closed_again(memory, other):
    """As that of threads."""

    async def work():
        async with aio.Connection(memory.connect()) as connection:
            session = await connection.session(ack="CLIENT")
            consumer = await session.consumer("queue:q")
            assert (await consumer.receive(20)).body == "a"
            with writing(connection._connection, FULL):
                with pytest.raises(ledgermq.BrokerUnavailableError):
                    await consumer.close()
                with pytest.raises(ledgermq.BrokerUnavailableError):
                    await session.close()
            assert not session.is_closed
            await session.close()
            assert session.is_closed

    asyncio.run(work())
    assert other.receive(20).body == "a"


@pytest.mark.parametrize("rounds", range(4))
def test_a_coroutine_that_is_cancelled_as_it_closes_closes_all_the_same(memory, other, rounds):
    """Whenever that is: what was begun goes on to its end, and is not begun again."""

    async def work():
        async with aio.Connection(memory.connect()) as connection:
            session = await connection.session(ack="CLIENT")
            consumer = await session.consumer("queue:q")
            assert (await consumer.receive(20)).body == "a"
            for one in (consumer, session):
                closing = asyncio.ensure_future(one.close())
                for _ in range(rounds):
                    await asyncio.sleep(0)
                closing.cancel()
                await asyncio.wait([closing])
                # Cancelled before the first round it did nothing.
                await one.close()
                assert one.is_closed
            engine, router = session._engine, connection._connection._running.router
            while not engine.ended or engine in router.engines():
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(work(), 20))
    assert other.receive(20).body == "a"


def test_a_consumer_whose_close_was_not_written_can_be_closed_again(connection, other):
    """Till then it has what it was given; then others get that."""
    with connection.session() as session:
        consumer = session.consumer("queue:q")
        with connection.session() as sending:
            sending.producer("queue:q").send("b")
        assert consumer.receive(20).body == "a"
        close_again(connection, consumer)
        assert other.receive(20).body == "b"


def test_a_consumer_whose_close_is_interrupted_while_its_listener_runs_can_be_closed_again(
    connection, other
):
    """Ctrl-C ends the wait for the listener; what comes later is for others once it is closed."""
    with connection.session() as session, connection.session() as sending:
        consumer = session.consumer("queue:q", prefetch=1)
        begun, may_end = threading.Event(), threading.Event()

        def listener(_):
            begun.set()
            may_end.wait(20)

        consumer.set_message_listener(listener)
        assert begun.wait(20)
        wait = session._engine.condition.wait

        def interrupted():
            raise KeyboardInterrupt

        session._engine.condition.wait = interrupted
        with pytest.raises(KeyboardInterrupt):
            consumer.close()
        session._engine.condition.wait = wait
        may_end.set()
        assert not consumer.is_closed
        consumer.close()
        sending.producer("queue:q").send("b")
        assert other.receive(20).body == "b"


def test_a_dropped_consumer_whose_close_was_not_written_is_closed_later(connection, other):
    """By the heartbeats, or when the next one is made."""
    with connection.session() as session:
        consumer = session.consumer("queue:q")
        assert consumer.receive(20).body == "a"
        assert consumer.receive(0) is None
        work = session._work
        work.settling.write_ripe_acknowledgements()
        work.settling.write_ripe_acknowledgements()
        with writing(connection, FULL):
            del consumer
            with work.engine.lock, pytest.raises(ledgermq.BrokerUnavailableError):
                work.leave_forgotten_locked()
        session.consumer("queue:q")
        with connection.session() as sending:
            sending.producer("queue:q").send("b")
        assert other.receive(20).body == "b"


def test_a_connection_whose_close_is_interrupted_leaves_nothing_behind(memory, other):
    """Its threads end, so that its sessions do too, once nothing is heard of them."""
    connection = memory.connect()
    session = connection.session(ack="CLIENT")
    assert session.consumer("queue:q").receive(20).body == "a"
    with writing(connection, KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        connection.close()
    assert not connection._running.reader.is_alive()
    assert not connection._running.heartbeats._thread.is_alive()
    connection.close()
    memory.crash(connection)
    assert other.receive(20).body == "a"


def test_a_session_whose_end_comes_after_nobody_waits_for_it_is_forgotten(connection):
    """Else a program that runs for months would keep each of them, and look at it each round."""
    log, late = connection._running.transport, []
    session = connection.session()
    log.write = lambda *given: late.append(given)
    with pytest.raises(ledgermq.OutcomeUnknownError):
        session.close(timeout=0.01)
    del log.write
    for given in late:
        log.write(*given)
    limit = time.monotonic() + 20
    while session._engine in connection._running.router.engines():
        assert time.monotonic() < limit, "it is still there"
        time.sleep(0.02)


def test_no_session_of_a_connection_waits_for_the_end_of_another(monkeypatch, memory):
    """All Closes are written before one is waited for: thousands would exceed the time-out."""
    told: list[str] = []
    real = Engine.write_locked, Engine.settled

    def write(engine, operation, /, **more):
        told.append(operation.__name__)
        return real[0](engine, operation, **more)

    def settled(engine, pending, timeout=None):
        told.append(f"wait for {pending.operation.__name__}")
        yield from real[1](engine, pending, timeout)

    connection = memory.connect()
    modes = ("AUTO", "CLIENT", "DUPS_OK") * 5
    sessions = [connection.session(ack=mode) for mode in modes]
    consumer = sessions[1].consumer("queue:q")
    assert consumer.receive(timeout=5).body == "a"
    sessions[0].producer("queue:r").send_async("b")
    monkeypatch.setattr(Engine, "write_locked", write)
    monkeypatch.setattr(Engine, "settled", settled)
    connection.close()
    assert told.count("Close") == 15 + 1
    assert [one for one in told if one != "wait for Close"][-16:] == ["Close"] * 16
    assert told.index("wait for Close") >= 15
    with memory.connect() as after:
        found = [after.admin.queue_status(name).current for name in ("q", "r")]
    assert found == [1, 1]
