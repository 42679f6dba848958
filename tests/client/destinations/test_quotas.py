"""Quotas as programs see them: sends wait for room, in order, for so long (INF-03 to INF-05)."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotDone

import pytest

import ledgermq
import ledgermq.aio
from ledgermq.testing import MemoryBroker


def is_blocked(connection, named: str, puts: int = 1) -> bool:
    """Whether so many sends wait, once everything that was written is applied."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if connection.admin.queue_status(named).blocked.puts == puts:
            return True
        time.sleep(0.02)
    return False


def test_a_send_beyond_the_quota_of_messages_waits_until_one_is_gone(connection, named, queue):
    """An unacknowledged message still counts, an acknowledged one does not (INF-03, INF-04)."""
    connection.admin.create_queue(named, messages_max=2)
    with connection.session(ack="CLIENT") as session, connection.session() as other:
        producer = other.producer(queue)
        producer.send_many(["one", "two"])
        third = producer.send_async("three")
        assert is_blocked(connection, named)
        message = session.consumer(queue).receive(20)
        with pytest.raises((NotDone, TimeoutError, ledgermq.TimeoutExceededError)):
            third.result(0.2)
        message.acknowledge()
        assert third.result(20).sequence == 2
        assert not connection.admin.queue_status(named).blocked.puts


def test_sends_that_wait_go_on_together_when_the_queue_has_drained_to_its_mark(
    connection, named, queue
):
    """Not one by one as messages leave; a mark above its quota is refused."""
    with pytest.raises(ledgermq.RefusedError, match="above messages_max"):
        connection.admin.create_queue(named, messages_max=3, messages_resume=4)
    connection.admin.create_queue(named, messages_max=3, messages_resume=1)
    assert connection.admin.queue_status(named).settings["messages_resume"] == 1
    with connection.session(ack="CLIENT") as session, connection.session() as other:
        producer, consumer = other.producer(queue), session.consumer(queue)
        producer.send_many(["0", "1", "2"])
        waiting = [producer.send_async(body) for body in "34"]
        assert is_blocked(connection, named, 2)
        consumer.receive(20).acknowledge()
        with pytest.raises((NotDone, TimeoutError, ledgermq.TimeoutExceededError)):
            waiting[0].result(0.2)
        consumer.receive(20).acknowledge()
        assert [one.result(20).sequence for one in waiting] == [3, 4]


def test_a_send_beyond_the_quota_of_bytes_waits(connection, named, queue):
    """What counts is content and header; a second one fits once the first is gone (INF-04)."""
    connection.admin.create_queue(named, bytes_max=1_500)
    with connection.session() as session:
        producer = session.producer(queue)
        producer.send("x" * 1_000)
        status = connection.admin.queue_status(named)
        assert 1_000 < status.current_bytes == status.message_bytes <= 1_500
        second = producer.send_async("y" * 1_000)
        assert is_blocked(connection, named)
        assert session.consumer(queue).receive(20).body == "x" * 1_000
        assert second.result(20).sequence == 1


def test_a_blocked_send_is_in_no_statistic(connection, named, queue):
    """The queue is as it was; only `blocked` tells how many and since when (INF-05)."""
    connection.admin.create_queue(named, messages_max=1)
    with connection.session() as session:
        producer = session.producer(queue)
        producer.send("there")
        before = connection.admin.queue_status(named)
        assert (before.blocked.puts, before.blocked.since) == (0, None)
        waiting = producer.send_async("held up")
        assert is_blocked(connection, named)
        after = connection.admin.queue_status(named)
        names = [one for one in before.__dataclass_fields__ if one not in ("blocked", "position")]
        assert {one: getattr(after, one) for one in names} == {
            one: getattr(before, one) for one in names
        }
        assert (after.blocked.puts, after.blocked.messages) == (1, 1)
        assert after.blocked.bytes > 0
        assert after.blocked.since is not None
        assert [one.body for one in session.browser(queue)] == ["there"]
        connection.admin.purge_queue(named, actor="tests", reason="makes room")
        assert waiting.result(20).sequence == 1


def test_when_blocking_time_is_over_the_send_fails_without_a_trace(place, named, queue, pass_time):
    """QuotaExceededError, and figures as before; the next send has the next number (INF-20)."""
    with place.connect(send_timeout_seconds=0.3) as connection:
        connection.admin.create_queue(named, messages_max=1)
        with connection.session() as session:
            producer = session.producer(queue)
            producer.send("there")
            waiting = producer.send_async("too late")
            assert is_blocked(connection, named)
            pass_time(0.5)
            with pytest.raises(ledgermq.QuotaExceededError) as caught:
                waiting.result(20)
            assert (caught.value.code, caught.value.destination) == ("quota-exceeded", queue)
            status = connection.admin.queue_status(named)
            assert (status.message_count, status.next_sequence, status.messages_high) == (1, 1, 1)
            assert status.blocked.puts == 0
            assert session.consumer(queue).receive(20).body == "there"
            assert producer.send("next").sequence == 1


def test_a_send_without_blocking_time_fails_at_once(place, named, queue):
    """A time-out of 0 asks for that; the session goes on."""
    with place.connect(send_timeout_seconds=0) as connection:
        connection.admin.create_queue(named, messages_max=1)
        with connection.session() as session:
            producer = session.producer(queue)
            producer.send("there")
            with pytest.raises(ledgermq.QuotaExceededError):
                producer.send("no room")
            assert session.consumer(queue).receive(20).body == "there"
            assert producer.send("room").sequence == 1


def test_a_send_waits_less_long_than_its_call(place, named, queue, pass_time):
    """The refusal arrives within the call's time-out, so that its outcome is known."""
    with place.connect() as connection:
        connection.admin.create_queue(named, messages_max=1)
        with connection.session() as session, ThreadPoolExecutor(1) as pool:
            producer = session.producer(queue)
            producer.send("there")
            sent = pool.submit(producer.send, "no room", timeout=1.5)
            assert is_blocked(connection, named)
            pass_time(0.6)
            with pytest.raises(ledgermq.QuotaExceededError):
                sent.result(20)


@pytest.mark.parametrize(("policy", "passes"), [("FIFO", False), ("PREEMPTIVE", True)])
def test_who_may_pass_a_larger_send_that_waits(connection, named, queue, policy, passes):
    """PREEMPTIVE lets a smaller send of another session go first, FIFO nobody (INF-18)."""
    connection.admin.create_queue(named, bytes_max=3_000, blocking_send_policy=policy)
    with connection.session() as session, connection.session() as other:
        session.producer(queue).send("x" * 1_000)
        large = session.producer(queue).send_async("y" * 2_500)
        assert is_blocked(connection, named)
        small = other.producer(queue).send_async("z")
        if passes:
            assert small.result(20).sequence == 1
            assert is_blocked(connection, named, 1)
        else:
            assert is_blocked(connection, named, 2)
        consumer = session.consumer(queue)
        assert consumer.receive(20).body == "x" * 1_000
        assert large.result(20).sequence == (2 if passes else 1)
        assert small.result(20).sequence == (1 if passes else 2)


def test_what_is_larger_than_the_whole_quota_is_refused_at_once(connection, named, queue):
    """It would wait for ever (H18)."""
    connection.admin.create_queue(named, bytes_max=500)
    with (
        connection.session() as session,
        pytest.raises(ledgermq.QuotaExceededError, match="more than the quota"),
    ):
        session.producer(queue).send("x" * 1_000)


def test_a_commit_waits_for_its_own_puts(connection, named, queue):
    """What is in the unit of work is pending, what waits is nowhere, until there is room (H18)."""
    connection.admin.create_queue(named, messages_max=1)
    with connection.session() as other, connection.session(transacted=True) as session:
        other.producer(queue).send("there")
        session.producer(queue).send("in a unit of work")
        committed = session.commit_async()
        assert is_blocked(connection, named)
        assert not committed.done()
        assert other.consumer(queue).receive(20).body == "there"
        assert committed.result(20).enqueued[0].first_sequence == 1


def test_a_unit_of_work_whose_put_found_no_room_is_rolled_back(place, named, queue, pass_time):
    """The commit says why; then the session works on (INF-20)."""
    with place.connect(send_timeout_seconds=0.3) as connection:
        connection.admin.create_queue(named, messages_max=1)
        with (
            connection.session() as other,
            connection.session(transacted=True) as session,
            ThreadPoolExecutor(1) as pool,
        ):
            other.producer(queue).send("there")
            session.producer(queue).send("no room")
            committed = pool.submit(session.commit)
            assert is_blocked(connection, named)
            pass_time(0.5)
            with pytest.raises(ledgermq.TransactionRolledBackError) as caught:
                committed.result(20)
            assert isinstance(caught.value.__cause__, ledgermq.QuotaExceededError)
            assert connection.admin.queue_status(named).pending == 0
            consumer = other.consumer(queue)
            assert consumer.receive(20).body == "there"
            assert consumer.receive(0) is None  # writes that the first one was received
            session.producer(queue).send("room")
            assert session.commit().enqueued[0].first_sequence == 1


def test_acknowledgement_rollback_and_close_pass_what_waits(connection, named, queue):
    """A session whose put waits makes the room itself, and may end (H18)."""
    connection.admin.create_queue(named, messages_max=1)
    with connection.session(ack="CLIENT") as session:
        producer = session.producer(queue)
        producer.send("one")
        message = session.consumer(queue).receive(20)
        waiting = producer.send_async("two")
        assert is_blocked(connection, named)
        session.recover()
        message = session.consumer(queue).receive(20) or message
        assert is_blocked(connection, named)
        message.acknowledge()
        assert waiting.result(20).sequence == 1
        last = producer.send_async("three")
        assert is_blocked(connection, named)
    with pytest.raises(ledgermq.LedgerMQError):
        last.result(20)
    assert connection.admin.queue_status(named).blocked.puts == 0


def test_asynchronous_sends_wait_and_others_go_on(place, named, queue):
    """A coroutine waits for room; one that consumes makes it (INF-03)."""

    async def run(threaded) -> list[str]:
        connection = ledgermq.aio.Connection(threaded)
        session, other = await connection.session(), await connection.session()
        producer = session.producer(queue)
        await producer.send("one")
        second = asyncio.create_task(producer.send("two"))
        await asyncio.sleep(0.2)
        assert not second.done()
        consumer = await other.consumer(queue)
        bodies = [(await consumer.receive(20)).body]
        assert (await second).sequence == 1
        return [*bodies, (await consumer.receive(20)).body]

    with place.connect() as connection:
        connection.admin.create_queue(named, messages_max=1)
        assert asyncio.run(run(connection)) == ["one", "two"]


def test_the_queue_manager_has_quotas_of_its_own():
    """Messages and bytes of all its queues and topics together (INF-04)."""
    broker = MemoryBroker()
    with broker.connect() as connection:
        connection.admin.alter_queue_manager(messages_max=2)
        with connection.session() as session:
            producer = session.producer(None)
            producer.send("one", destination="queue:first")
            producer.send("two", destination="queue:second")
            third = producer.send_async("three", destination="queue:third")
            assert not third.done()
            status = connection.admin.queue_manager_status()
            assert (status.messages_max, status.messages, status.bytes_max) == (2, 2, 0)
            assert status.bytes == sum(
                connection.admin.queue_status(one).message_bytes for one in ("first", "second")
            )
            assert session.consumer("queue:first").receive(20).body == "one"
            assert third.result(20).sequence == 0
        connection.admin.alter_queue_manager(messages_max=0, bytes_max=10)
        with pytest.raises(ledgermq.QuotaExceededError, match="the queue manager"):
            connection.session().producer("queue:first").send("longer than ten bytes")


def test_quotas_and_blocking_times_out_of_range_are_refused(place, named):
    """Each refusal names the setting; nothing is changed."""
    with place.connect() as connection:
        connection.admin.create_queue(named, messages_max=5)
        for settings in ({"messages_max": -1}, {"bytes_max": -1}):
            with pytest.raises(ledgermq.LedgerMQError, match=next(iter(settings))):
                connection.admin.alter_queue(named, **settings)
        with pytest.raises(ledgermq.LedgerMQError, match="blocking_send_policy"):
            connection.admin.alter_queue(named, blocking_send_policy="LIFO")
        with pytest.raises(ledgermq.LedgerMQError, match="bytes_max"):
            connection.admin.alter_queue_manager(bytes_max=-1)
        assert connection.admin.queue_status(named).settings["messages_max"] == 5
    for seconds in (-1, float("nan")):
        with pytest.raises(ledgermq.LedgerMQError, match="send_timeout_seconds"):
            place.connect(send_timeout_seconds=seconds)


def test_high_water_marks_stay_when_messages_go(connection, named, queue):
    """The most messages and bytes at a time, uncommitted puts among them."""
    connection.admin.create_queue(named)
    with connection.session(transacted=True) as session:
        session.producer(queue).send_many(["one", "two", "three"])
        session.commit()
        full = connection.admin.queue_status(named)
        assert session.consumer(queue).receive_many(3, timeout=20)
        session.commit()
        status = connection.admin.queue_status(named)
        assert (full.message_count, status.message_count, status.messages_high) == (3, 0, 3)
        assert status.message_bytes == 0
        assert status.bytes_high == full.message_bytes


@pytest.mark.parametrize("waits_seconds", [0, 0.3])
def test_a_put_that_found_no_room_is_told_whose_quota_it_is(waits_seconds):
    """The queue's, the queue manager's, or the storage (INF-20, DB-20)."""
    broker = MemoryBroker()
    with broker.connect(send_timeout_seconds=waits_seconds) as connection:
        admin = connection.admin
        admin.create_queue("q", messages_max=1)
        admin.create_queue("other")
        with connection.session() as session:

            def refused(destination, body=b"x"):
                waiting = session.producer(destination).send_async(body)
                admin.queue_status("q")  # what was sent is folded before it
                broker.advance(2 * waits_seconds)
                with pytest.raises(ledgermq.LedgerMQError) as caught:
                    waiting.result(20)
                return caught.value.code, str(caught.value)

            session.producer("queue:q").send("x")
            code, told = refused("queue:q")
            assert (code, "the quota of queue:q" in told) == ("quota-exceeded", True)
            admin.alter_queue_manager(messages_max=1)
            for destination in ("queue:other", "queue:new"):
                code, told = refused(destination)
                assert (code, "the quota of the queue manager" in told) == ("quota-exceeded", True)
            one = {"segment_bytes": 4_096, "segments_min": 1, "segments_max": 1}
            admin.alter_queue_manager(messages_max=0, **one)
            session.producer("queue:other").send(bytes(3_000))
            code, told = refused("queue:other", bytes(3_000))
            full = "quota-exceeded" if waits_seconds else "storage-full"
            assert (code, "segments" in told) == (full, True)
