"""Which deliveries count: every one that the application may have seen (decision 24, INF-16)."""

import asyncio
import queue as threads_queue
import threading

import pytest

from ledgermq import aio
from ledgermq.testing import MemoryBroker

LIMIT = 2
HOLDING_MODES = ["CLIENT", "INDIVIDUAL", "TRANSACTED"]


class FailureError(Exception):
    """What a listener raises."""


def give_up(session, how):
    """What a listener does with a message that it cannot process."""
    if how == "rollback":
        session.rollback()
    elif "recover" in how:
        session.recover()
    if "raise" in how:
        raise FailureError


WAYS = [
    ("AUTO", "recover"),
    ("AUTO", "raise"),
    ("AUTO", "recover, then raise"),
    ("DUPS_OK", "recover"),
    ("DUPS_OK", "raise"),
    ("DUPS_OK", "recover, then raise"),
    ("CLIENT", "recover"),
    ("INDIVIDUAL", "recover"),
    ("TRANSACTED", "rollback"),
]


@pytest.mark.parametrize(("mode", "how"), WAYS, ids=[f"{mode}-{how}" for mode, how in WAYS])
def test_what_a_listener_gives_back_counts_up_to_the_limit_in_every_mode(
    connection, queue, named, mode, how
):
    """While it runs, its message counts as handed over: N+1 deliveries, then the error
    destination (decision 24, INF-12, INF-16, SES-30).
    """
    seen = threads_queue.Queue()
    connection.admin.create_queue(f"{named}.dead")
    connection.admin.create_queue(named, redelivery_limit=LIMIT, error_destination=f"{queue}.dead")
    with connection.session() as sender, connection.session(ack=mode) as session:

        def listener(message):
            seen.put((message.body, message.delivery_count, message.redelivered))
            if message.body == "poison":
                give_up(session, how)

        sender.producer(queue).send_many(["poison", "good"])
        session.consumer(queue).set_message_listener(listener)
        found = [seen.get(timeout=20) for _ in range(LIMIT + 2)]
        assert found == [
            ("poison", 1, False),
            ("poison", 2, True),
            ("poison", 3, True),
            # It was behind it in the buffer each time, and nobody saw it.
            ("good", 1, False),
        ]
        dead = sender.consumer(f"{queue}.dead").receive(20)
    assert (dead.body, dead.origin.reason) == ("poison", "redelivery-limit")
    assert dead.origin.backout_count == LIMIT + 1


@pytest.mark.parametrize("mode", ["AUTO", "DUPS_OK"])
def test_what_a_listener_recovers_waits_the_redelivery_delay(
    connection, queue, named, mode, pass_time, eventually
):
    """It is no endless loop of deliveries on the log (decision 24, INF-09)."""
    seen = threads_queue.Queue()
    connection.admin.create_queue(named, redelivery_delay_override_ms=700)
    with connection.session(ack=mode) as session:

        def listener(message):
            seen.put(message.delivery_count)
            if message.delivery_count == 1:
                session.recover()

        session.producer(queue).send("again")
        session.consumer(queue).set_message_listener(listener)
        assert seen.get(timeout=20) == 1
        eventually(lambda: connection.admin.queue_status(named).delayed == 1)
        assert seen.empty()
        pass_time(1.0)
        assert seen.get(timeout=20) == 2
        eventually(lambda: connection.admin.queue_status(named).message_count == 0)


@pytest.mark.parametrize("mode", ["AUTO", "DUPS_OK"])
def test_recover_between_receives_finds_nothing_unacknowledged(connection, queue, mode):
    """AUTO and DUPS_OK acknowledge what `receive` returned; what was prefetched goes back as it
    came (SES-05, SES-30).
    """
    with connection.session(ack=mode) as session:
        session.producer(queue).send_many(["a", "b", "c"])
        consumer = session.consumer(queue)
        assert consumer.receive(20).body == "a"
        session.recover()
        found = [consumer.receive(20) for _ in range(2)]
        session.recover()
    assert [(one.body, one.delivery_count) for one in found] == [("b", 1), ("c", 1)]
    assert connection.admin.queue_status(queue).message_count == 0


@pytest.mark.parametrize("mode", ["AUTO", "DUPS_OK"])
def test_a_listener_cannot_acknowledge_what_the_library_acknowledges(connection, queue, mode):
    """Its message is acknowledged once it has returned, and not before (SES-05)."""
    seen = threads_queue.Queue()
    with connection.session(ack=mode) as session:

        def listener(message):
            seen.put(message.delivery_count)
            if message.delivery_count == 1:
                session.acknowledge()
                message.acknowledge()
                raise FailureError

        session.producer(queue).send("a")
        session.consumer(queue).set_message_listener(listener)
        assert [seen.get(timeout=20) for _ in range(2)] == [1, 2]


@pytest.mark.parametrize("mode", ["AUTO", "DUPS_OK"])
def test_recover_counts_what_could_not_be_acknowledged_yet(connection, queue, named, mode):
    """The application has seen it: its turn to be settled had not come (decision 24, DB-22)."""
    connection.admin.create_queue(named, fifo_mode="PROTECTED")
    with connection.session(ack="CLIENT") as first, connection.session(ack=mode) as session:
        first.producer(queue).send_many(["a", "b", "c"])
        assert first.consumer(queue, prefetch=1).receive(20).body == "a"
        consumer = session.consumer(queue)
        assert consumer.receive(20).body == "b"
        session.recover()
        found = [consumer.receive(20) for _ in range(2)]
        assert [(one.body, one.delivery_count) for one in found] == [("b", 2), ("c", 1)]
        first.acknowledge()
    assert connection.admin.queue_status(named).message_count == 0


# -- crashes ---------------------------------------------------------------------------------------


@pytest.fixture
def memory():
    """A queue manager in memory, whose clients can die, with three messages on a queue."""
    found = MemoryBroker()
    with found.connect() as connection, connection.session() as session:
        session.producer("queue:q").send_many(["a", "b", "c"])
    return found


def counted(memory, name="q"):
    """The backouts of each message of a queue that count against its limit."""
    found = memory._state.queues[name]
    return [
        one.backout_count - found.doubts.get(number, 0) for number, one in found.messages.items()
    ]


def receive(session):
    """One message, while two are prefetched."""
    return session.consumer("queue:q").receive(20)


def receive_many(session):
    """The same, with another call."""
    return session.consumer("queue:q").receive_many(1, 20)


def receive_group(session):
    """The same, with another one."""
    consumer = session.consumer("queue:q", order="LOGICAL", all_messages_available=True)
    return consumer.receive_group(20)


def iterate(session):
    """The same, in a loop."""
    return next(iter(session.consumer("queue:q")))


def iterate_until_idle(session):
    """The same, in a loop that ends."""
    return next(session.consumer("queue:q").until_idle(20))


CALLS = [receive, receive_many, receive_group, iterate, iterate_until_idle]
# Logical order is not for INDIVIDUAL.
HOLDS = [
    pytest.param(call, mode, id=f"{call.__name__}-{mode}")
    for call in CALLS
    for mode in HOLDING_MODES
    if (call, mode) != (receive_group, "INDIVIDUAL")
]


@pytest.mark.parametrize("seconds", [0, 1], ids=["at once", "later"])
@pytest.mark.parametrize(("call", "mode"), HOLDS)
def test_a_crash_counts_for_what_was_held_for_a_second(memory, call, mode, seconds):
    """Not for what was prefetched, nor for what was handed over within the last second."""
    connection = memory.connect()
    session = connection.session(ack=mode)
    held = call(session)
    assert held
    memory.advance(seconds)
    memory.crash(connection)
    assert counted(memory) == [1 if seconds else 0, 0, 0]
    with memory.connect() as other, other.session() as session:
        message = session.consumer("queue:q").receive(20)
    assert (message.body, message.delivery_count, message.redelivered) == ("a", 2, True)


@pytest.mark.parametrize("seconds", [0, 1], ids=["at once", "later"])
@pytest.mark.parametrize("mode", ["AUTO", "DUPS_OK", *HOLDING_MODES])
def test_a_crash_counts_for_what_a_listener_worked_on_for_a_second(memory, mode, seconds):
    """In every mode: what it returns for is another matter."""
    called, over = threading.Event(), threading.Event()

    def listener(_):
        called.set()
        over.wait(20)

    connection = memory.connect()
    connection.session(ack=mode).consumer("queue:q").set_message_listener(listener)
    assert called.wait(20)
    memory.advance(seconds)
    memory.crash(connection)
    over.set()
    assert counted(memory) == [1 if seconds else 0, 0, 0]


@pytest.mark.parametrize("seconds", [0, 1], ids=["at once", "later"])
@pytest.mark.parametrize("call", ["receive", "receive_group", "iterate"])
def test_a_crash_counts_for_what_a_coroutine_held_for_a_second(memory, call, seconds):
    """The same in an event loop."""

    async def work():
        connection = aio.Connection(memory.connect())
        session = await connection.session(ack="CLIENT")
        group = {"order": "LOGICAL", "all_messages_available": True}
        options = group if call == "receive_group" else {}
        consumer = await session.consumer("queue:q", **options)
        held = await (anext(aiter(consumer)) if call == "iterate" else getattr(consumer, call)(20))
        assert held
        await asyncio.to_thread(memory.advance, seconds)
        await asyncio.to_thread(memory.crash, connection._connection)

    asyncio.run(work())
    assert counted(memory) == [1 if seconds else 0, 0, 0]


def test_a_crash_counts_though_another_consumer_has_not_taken_its_messages(memory):
    """What that one has prefetched stays uncounted, and what was handed over is not."""
    connection = memory.connect()
    session = connection.session(ack="CLIENT")
    idle, busy = session.consumer("queue:q"), session.consumer("queue:r")
    with connection.session() as sender:
        sender.producer("queue:r").send_many(["x", "y", "z"])
    assert idle.receive(20).body == "a"
    assert [busy.receive(20).body for _ in range(2)] == ["x", "y"]
    memory.advance(1)
    memory.crash(connection)
    assert counted(memory) == [1, 0, 0]
    assert counted(memory, "r") == [1, 1, 0]


@pytest.mark.parametrize(("seconds", "lives"), [(0, LIMIT + 2), (1, LIMIT + 1)])
def test_a_crash_loop_ends_at_the_limit(memory, seconds, lives):
    """N+1 deliveries of what is held; the first one does not count if it was too short for that,
    and all others are told of before (H20, INF-16).
    """
    with memory.connect() as connection, connection.session() as session:
        connection.admin.create_queue("dead")
        connection.admin.create_queue(
            "jobs", redelivery_limit=LIMIT, error_destination="queue:dead"
        )
        session.producer("queue:jobs").send("poison")
    for life in range(lives):
        assert memory._state.queues["jobs"].messages, life
        connection = memory.connect()
        message = connection.session(ack="CLIENT").consumer("queue:jobs").receive(20)
        assert message.delivery_count == life + 1
        memory.advance(seconds)
        memory.crash(connection)
    with memory.connect() as connection, connection.session() as session:
        assert session.consumer("queue:dead").receive(20).origin.backout_count == lives
    assert not memory._state.queues["jobs"].messages


def test_a_message_held_for_an_hour_is_told_of_once(memory):
    """The log does not grow by it; an idle session writes nothing at all (decision 24)."""
    with memory.connect() as connection, connection.session(ack="CLIENT") as session:
        consumer = session.consumer("queue:q")
        assert consumer.receive(20).body == "a"
        memory.advance(1)
        told = memory._state.position
        for _ in range(60):
            memory.advance(60)
        assert memory._state.position == told + 60, "but for those that move the clock"
        assert consumer.receive(20).body == "b"
        memory.advance(1)
        assert memory._state.position == told + 62
