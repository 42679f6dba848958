"""Tests of crash loops: whoever falls over a message is found out, its neighbours are not (H20)."""

import asyncio
import threading

import pytest

from ledgermq import aio
from ledgermq.testing import MemoryBroker

QUEUE = "queue:jobs"


@pytest.fixture
def memory():
    """A queue manager in memory, whose clients can die, with three messages."""
    found = MemoryBroker()
    with found.connect() as connection, connection.session() as session:
        session.producer(QUEUE).send_many(["poison", "one", "two"])
    return found


def blamed(memory):
    """How often each message that is there was in the application's hands when that died."""
    queue = memory._state.queues["jobs"]
    return [
        message.backout_count - queue.doubts.get(number, message.backout_count)
        for number, message in queue.messages.items()
    ]


def fall_over_receive(memory):
    """An application that dies with the first message in its hands."""
    connection = memory.connect()
    session = connection.session(ack="CLIENT")
    assert session.consumer(QUEUE, prefetch=10).receive(5).body == "poison"
    memory.crash(connection)


def fall_over_receive_many(memory):
    """The same, asking for more at a time than there is in doubt."""
    connection = memory.connect()
    session = connection.session(transacted=True)
    found = session.consumer(QUEUE, prefetch=10).receive_many(1, 5)
    assert [one.body for one in found] == ["poison"]
    memory.crash(connection)


def fall_over_listening(memory):
    """The same with a listener, which never returns."""
    called, over = threading.Event(), threading.Event()

    def listener(message):
        assert message.body == "poison"
        called.set()
        over.wait(20)

    connection = memory.connect()
    session = connection.session()
    session.consumer(QUEUE, prefetch=10).set_message_listener(listener)
    assert called.wait(20)
    memory.crash(connection)
    over.set()


def fall_over_in_a_coroutine(memory):
    """The same in an event loop."""

    async def work():
        connection = aio.Connection(memory.connect())
        session = await connection.session(ack="CLIENT")
        consumer = await session.consumer(QUEUE, prefetch=10)
        assert (await consumer.receive(5)).body == "poison"
        await asyncio.to_thread(memory.crash, connection._connection)

    asyncio.run(work())


FALLS = [fall_over_receive, fall_over_receive_many, fall_over_listening, fall_over_in_a_coroutine]


@pytest.mark.parametrize("fall", FALLS, ids=lambda fall: fall.__name__)
def test_a_crash_loop_blames_the_message_that_was_handed_over_alone(memory, fall):
    """From the second time on each death counts against it, and never against what was fetched
    with it (H20).
    """
    for deaths in range(4):
        fall(memory)
        assert blamed(memory) == [deaths, 0, 0]


def test_messages_in_doubt_can_be_taken_together_and_come_in_order(memory):
    """One unit of work takes them all, as if nothing had happened, with their counts (SES-65)."""
    connection = memory.connect()
    assert connection.session(ack="CLIENT").consumer(QUEUE, prefetch=10).receive(5)
    memory.crash(connection)
    with memory.connect() as other, other.session(transacted=True) as session:
        session.producer(QUEUE).send("three")
        session.commit()
        consumer = session.consumer(QUEUE, prefetch=10)
        found = []
        while len(found) < 4:
            found += consumer.receive_many(4 - len(found), 5)
        assert [(one.body, one.delivery_count, one.redelivered) for one in found] == [
            ("poison", 2, True),
            ("one", 2, True),
            ("two", 2, True),
            ("three", 1, False),
        ]
        session.commit()
        assert other.admin.queue_status("jobs").message_count == 0


def test_an_idle_consumer_with_a_message_in_doubt_holds_up_nobody_else(memory):
    """Another consumer of the same session goes on, and the idle one keeps its place (H20)."""
    connection = memory.connect()
    assert connection.session(ack="CLIENT").consumer(QUEUE, prefetch=10).receive(5)
    with memory.connect() as other, other.session(ack="INDIVIDUAL") as session:
        idle = session.consumer(QUEUE, prefetch=10)
        assert idle.receive(0) is None
        memory.crash(connection)
        busy = session.consumer(QUEUE, prefetch=10)
        assert busy.receive(5).body == "one"
        assert busy.receive(5).body == "two"
        held = [one.consumers_in_doubt for one in other.admin.sessions()]
        assert held.count(1) == 1
        assert idle.receive(5).body == "poison"


def test_what_is_recovered_in_doubt_comes_again(memory):
    """A recover before, and one after the message in doubt was handed over (SES-28, H20)."""
    connection = memory.connect()
    assert connection.session(ack="CLIENT").consumer(QUEUE, prefetch=10).receive(5)
    memory.crash(connection)
    with memory.connect() as other, other.session(ack="CLIENT") as session:
        consumer = session.consumer(QUEUE, prefetch=10)
        session.recover()
        assert [consumer.receive(5).body for _ in range(2)] == ["poison", "one"]
        session.recover()
        found = [consumer.receive(5) for _ in range(3)]
        told = [(one.body, one.delivery_count) for one in found]
        assert told == [("poison", 3), ("one", 3), ("two", 2)]


def test_closing_with_a_message_in_doubt_unseen_counts_nothing(memory):
    """It goes back as it came, and the next one must still say that it hands it over."""
    connection = memory.connect()
    assert connection.session(ack="CLIENT").consumer(QUEUE, prefetch=10).receive(5)
    memory.crash(connection)
    with memory.connect() as other, other.session() as session:
        with session.consumer(QUEUE, prefetch=10):
            pass
        assert session.consumer(QUEUE).receive(5).delivery_count == 2
