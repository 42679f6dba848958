"""FIFO modes as applications see them, in memory and on a real broker (DB-22, H19)."""

import asyncio
import threading
import time

import pytest

import ledgermq


def fill(connection, queue, mode, bodies="ab"):
    """A queue in a mode, with messages."""
    connection.admin.create_queue(queue, fifo_mode=mode)
    with connection.session() as session:
        session.producer(f"queue:{queue}").send_many(bodies)


def holding(connection, queue, **options):
    """A session that was given one message of a queue."""
    session = connection.session(**options)
    message = session.consumer(f"queue:{queue}", prefetch=0).receive(20)
    return session, message


def test_a_commit_out_of_turn_leaves_the_unit_of_work_as_it_is(connection):
    """It can be committed again once the older message is settled (DB-22, H19)."""
    fill(connection, "fifo.commit", "PROTECTED")
    first, _ = holding(connection, "fifo.commit", transacted=True)
    second, _ = holding(connection, "fifo.commit", transacted=True)
    receipt = second.producer("queue:fifo.commit.out").send("x")
    with pytest.raises(ledgermq.OutOfTurnError) as refused:
        second.commit()
    assert (refused.value.code, refused.value.retryable) == ("out-of-turn", True)
    assert first.commit().consumed == 1
    committed = second.commit()
    assert (committed.consumed, receipt.sequence) == (1, 0)
    status = connection.admin.queue_status("fifo.commit", not_before=committed.position)
    assert status.sent_and_committed == 2
    first.close()
    second.close()


def test_a_commit_is_asked_again_until_it_is_in_turn(in_memory):
    """`turn_timeout` says for how long (DB-22)."""
    fill(in_memory, "q", "PROTECTED")
    first, _ = holding(in_memory, "q", transacted=True)
    second, _ = holding(in_memory, "q", transacted=True)
    later = threading.Timer(0.3, first.commit)
    began = time.monotonic()
    later.start()
    assert second.commit(turn_timeout=20).consumed == 1
    assert time.monotonic() - began >= 0.25
    later.join()


def test_a_block_that_stays_out_of_turn_is_rolled_back(in_memory):
    """What it got goes back, so that nothing is left half done (DB-22)."""
    fill(in_memory, "q", "PROTECTED")
    first, _ = holding(in_memory, "q", transacted=True)
    with in_memory.session(transacted=True) as second:
        consumer = second.consumer("queue:q", prefetch=0)
        with pytest.raises(ledgermq.OutOfTurnError), second.transaction(turn_timeout=0.05):
            consumer.receive(20)
        first.commit()
        with second.transaction():
            assert consumer.receive(20).body == "b"
    assert in_memory.admin.queue_status("q").sent_and_committed == 2


@pytest.mark.parametrize("mode", ["CLIENT", "INDIVIDUAL"])
def test_an_acknowledgement_out_of_turn_can_be_repeated(in_memory, mode):
    """The messages stay handed over (DB-22)."""
    fill(in_memory, "q", "PROTECTED")
    first, one = holding(in_memory, "q", ack=mode)
    second, other = holding(in_memory, "q", ack=mode)
    with pytest.raises(ledgermq.OutOfTurnError):
        other.acknowledge()
    with pytest.raises(ledgermq.OutOfTurnError):
        second.acknowledge(turn_timeout=0.05)
    one.acknowledge()
    second.acknowledge()
    assert in_memory.admin.queue_status("q").sent_and_committed == 2
    first.close()
    second.close()


def test_an_acknowledgement_that_nobody_waits_for_may_be_repeated_too(in_memory):
    """The refusal is raised by the next call, and what it named is still there (DB-22)."""
    fill(in_memory, "q", "PROTECTED")
    first, one = holding(in_memory, "q", ack="CLIENT")
    second, _ = holding(in_memory, "q", ack="CLIENT")
    second.acknowledge(wait=False)
    second.flush()
    with pytest.raises(ledgermq.OutOfTurnError):
        second.flush()
    one.acknowledge()
    second.acknowledge()
    assert in_memory.admin.queue_status("q").sent_and_committed == 2
    first.close()
    second.close()


def test_automatic_acknowledgement_waits_for_its_turn_by_itself(in_memory):
    """AUTO asks again until the older message is settled (DB-22)."""
    fill(in_memory, "q", "PROTECTED")
    first, one = holding(in_memory, "q", ack="CLIENT")
    second, _ = holding(in_memory, "q", ack="AUTO")
    time.sleep(0.5)
    assert in_memory.admin.queue_status("q").sent_and_committed == 0
    one.acknowledge()
    deadline = time.monotonic() + 20
    while in_memory.admin.queue_status("q").sent_and_committed < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    first.close()
    second.close()


def test_a_serialized_queue_has_one_message_out_at_a_time(connection):
    """Whoever waits gets the next one when that is settled (DB-22)."""
    fill(connection, "fifo.serial", "SERIALIZED", "abc")
    with connection.session(ack="CLIENT") as first, connection.session(ack="CLIENT") as second:
        one = first.consumer("queue:fifo.serial", prefetch=10)
        two = second.consumer("queue:fifo.serial", prefetch=10)
        message = one.receive(20)
        assert message.body == "a"
        assert two.receive(0.2) is None
        paused = connection.admin.session(second.handle).consumers[0].paused
        assert paused == ("fifo-mode",)
        message.acknowledge()
        got = [one.receive(0.5), two.receive(0.5)]
        assert [each.body for each in got if each is not None] == ["b"]


def test_the_mode_is_altered_and_told(in_memory):
    """A mode that there is not is refused."""
    in_memory.admin.create_queue("q")
    assert in_memory.admin.queue_status("q").settings["fifo_mode"] == "CONCURRENT"
    in_memory.admin.alter_queue("q", fifo_mode="PROTECTED")
    assert in_memory.admin.queue_status("q").settings["fifo_mode"] == "PROTECTED"
    in_memory.admin.alter_queue("q", fifo_mode="serialized")  # as the pages of queues have it
    assert in_memory.admin.queue_status("q").settings["fifo_mode"] == "SERIALIZED"
    for word in ("UNKNOWN", "LIFO"):
        with pytest.raises(ledgermq.IllegalStateError, match=r"fifo_mode.*SERIALIZED"):
            in_memory.admin.alter_queue("q", fifo_mode=word)


def test_asyncio_commits_are_asked_again_until_they_are_in_turn(run):
    """The event loop goes on meanwhile (DB-22)."""

    async def work(connection):
        await connection.admin.create_queue("fifo.aio", fifo_mode="PROTECTED")
        async with connection.session() as sender:
            producer = sender.producer("queue:fifo.aio")
            for body in "ab":
                await producer.send(body)
        async with (
            connection.session(transacted=True) as first,
            connection.session(transacted=True) as second,
            first.consumer("queue:fifo.aio", prefetch=0) as one,
            second.consumer("queue:fifo.aio", prefetch=0) as two,
        ):
            await one.receive(20)
            await two.receive(20)
            with pytest.raises(ledgermq.OutOfTurnError):
                await second.commit()
            waiting = asyncio.create_task(second.commit(turn_timeout=20))
            await asyncio.sleep(0.1)
            assert not waiting.done()
            await first.commit()
            assert (await waiting).consumed == 1

    run(work)
