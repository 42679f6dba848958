"""Tests of acknowledge modes and units of work: what is settled stays away, the rest comes back."""

import contextlib

import pytest

import ledgermq
from ledgermq import AckMode
from ledgermq.client.link import heartbeats as keeper
from support.messages.bodies import left, put


def test_auto_acknowledges_what_receive_returned(connection, queue):
    """After a normal close, nothing handed over comes back, and the rest is there (SES-05)."""
    put(connection, queue, "a", "b", "c")
    with connection.session() as session:
        consumer = session.consumer(queue)
        assert consumer.receive(20).body == "a"
        message = consumer.receive(20)
        message.acknowledge()  # allowed, and nothing to do
    assert left(connection, queue) == [("c", 1)]
    assert connection.admin.queue_status(queue).sent_and_committed == 2


def test_auto_acknowledges_within_a_moment_even_if_nothing_more_is_called(
    connection, queue, eventually
):
    """An application that works on a message for long does not keep it unacknowledged."""
    put(connection, queue, "a")
    with connection.session() as session:
        session.consumer(queue).receive(20)
        eventually(lambda: connection.admin.queue_status(queue).message_count == 0)


def test_client_acknowledge_settles_everything_handed_over_and_nothing_prefetched(
    connection, queue
):
    """Acknowledging one settles those before it; the prefetched ones stay (SES-06, SES-29)."""
    put(connection, queue, "a", "b", "c", "d")
    with connection.session(ack=AckMode.CLIENT) as session:
        consumer = session.consumer(queue)
        consumer.receive(20)
        consumer.receive(20).acknowledge()
        assert consumer.receive(20).body == "c"
        assert connection.admin.queue_status(queue).unacknowledged == 2
    assert left(connection, queue) == [("c", 2), ("d", 1)]


def test_client_acknowledge_again_does_nothing(connection, queue):
    """As in JMS: everything is settled already."""
    put(connection, queue, "a")
    with connection.session(ack="CLIENT") as session:
        message = session.consumer(queue).receive(20)
        message.acknowledge()
        message.acknowledge()
        session.acknowledge()
    assert left(connection, queue) == []


def test_individual_acknowledge_settles_one_message(connection, queue):
    """In any order, one by one; what is not acknowledged comes back in its place."""
    put(connection, queue, "a", "b", "c")
    with connection.session(ack=AckMode.INDIVIDUAL) as session:
        consumer = session.consumer(queue)
        messages = [consumer.receive(20) for _ in range(3)]
        messages[2].acknowledge()
        messages[0].acknowledge(wait=False)
        with pytest.raises(ledgermq.AlreadySettledError) as caught:
            messages[0].acknowledge()
    assert caught.value.code == "already-settled"
    assert left(connection, queue) == [("b", 2)]


def test_recover_delivers_again_from_the_oldest(connection, queue):
    """What was seen comes back counted, what was prefetched as it was (SES-28, SES-30)."""
    put(connection, queue, "a", "b", "c")
    with connection.session(ack=AckMode.CLIENT) as session:
        consumer = session.consumer(queue)
        first = [consumer.receive(20) for _ in range(2)]
        session.recover()
        again = [consumer.receive(20) for _ in range(3)]
        assert [(one.body, one.delivery_count) for one in again] == [("a", 2), ("b", 2), ("c", 1)]
        assert [one.redelivered for one in again] == [True, True, False]
        assert again[0].sequence == first[0].sequence
        session.acknowledge()
    assert left(connection, queue) == []


def test_individual_acknowledge_after_recover_is_refused(connection, queue):
    """The message went back to its queue; its new delivery can be settled."""
    put(connection, queue, "a")
    with connection.session(ack=AckMode.INDIVIDUAL) as session:
        consumer = session.consumer(queue)
        message = consumer.receive(20)
        session.recover()
        with pytest.raises(ledgermq.AlreadySettledError):
            message.acknowledge()
        consumer.receive(20).acknowledge()
    assert left(connection, queue) == []


def test_a_commit_puts_and_gets_as_one(connection, queue):
    """Before it, nobody sees the puts; then the receipts know their numbers (SES-11, SES-12)."""
    put(connection, queue, "in")
    with connection.session(transacted=True) as session:
        message = session.consumer(queue).receive(20)
        first = session.producer(queue + ".out").send("one")
        second = session.producer(queue + ".out").send("two")
        session.producer(queue + ".log").send(message.body)
        assert (first.position, first.sequence) == (None, None)
        receipt = session.commit()
        assert (first.sequence, second.sequence) == (0, 1)
        assert first.position is not None
    assert receipt.consumed == 1
    assert [(run.destination, run.first_sequence, run.count) for run in receipt.enqueued] == [
        (queue + ".out", 0, 2),
        (queue + ".log", 0, 1),
    ]
    assert left(connection, queue) == []
    assert left(connection, queue + ".out") == [("one", 1), ("two", 1)]


def test_uncommitted_puts_are_seen_by_nobody(connection, queue):
    """They count as uncommitted puts and have no sequence number."""
    with connection.session(transacted=True) as session:
        producer = session.producer(queue)
        producer.send("x")
        producer.flush()
        with connection.session() as other:
            assert other.consumer(queue).receive(0.5) is None
        assert connection.admin.queue_status(queue).uncommitted_puts == 1
    assert connection.admin.queue_status(queue).uncommitted_puts == 0
    assert connection.admin.queue_status(queue).next_sequence == 0


def test_rollback_delivers_again_in_the_old_order(connection, queue):
    """Gets return to their places with their count raised, puts vanish without a gap (SES-13)."""
    put(connection, queue, *[str(number) for number in range(500)])
    with connection.session(transacted=True) as session:
        consumer = session.consumer(queue, prefetch=50)
        seen = [consumer.receive(20) for _ in range(120)]
        session.producer(queue).send("never")
        session.rollback()
        again = [consumer.receive(20) for _ in range(500)]
        assert consumer.receive(0.3) is None
        session.commit()
    assert [int(one.body) for one in seen] == list(range(120))
    assert [int(one.body) for one in again] == list(range(500))
    assert [one.sequence for one in again] == list(range(500))
    assert [one.delivery_count for one in again] == [2] * 120 + [1] * 380
    assert connection.admin.queue_status(queue).next_sequence == 500


def test_closing_a_session_rolls_back(connection, queue):
    """What was neither committed nor rolled back is undone by close (SES-24)."""
    put(connection, queue, "a", "b")
    with connection.session(transacted=True) as session:
        session.producer(queue).send("never")
        session.consumer(queue).receive(20)
    assert left(connection, queue) == [("a", 2), ("b", 1)]


def test_a_transaction_block_commits_or_rolls_back(connection, queue):
    """It commits at its end; an exception rolls back and goes on its way."""
    with connection.session(transacted=True) as session:
        producer = session.producer(queue)
        with session.transaction():
            producer.send("kept")
        with pytest.raises(KeyError), session.transaction():  # noqa: PT012
            producer.send("dropped")
            raise KeyError
        producer.send("open")
        with pytest.raises(ledgermq.IllegalStateError), session.transaction():
            pass
        session.rollback()
    assert left(connection, queue) == [("kept", 1)]


def test_asynchronous_commits_take_effect_in_order(connection, queue):
    """Several commits are under way at once; numbers follow the order of the commits."""
    with connection.session(transacted=True) as session:
        producer = session.producer(queue)
        commits = []
        for unit in range(20):
            for place in range(10):
                producer.send(f"{unit}/{place}")
            commits.append(session.commit_async())
        receipts = [commit.result(20) for commit in commits]
    assert [one.enqueued[0].first_sequence for one in receipts] == list(range(0, 200, 10))
    assert [one.position for one in receipts] == sorted(one.position for one in receipts)
    assert [body for body, _ in left(connection, queue)] == [
        f"{unit}/{place}" for unit in range(20) for place in range(10)
    ]


def test_a_unit_of_work_of_many_operations_commits_whole(connection, queue):
    """More messages than one operation carries, to several queues, in one commit."""
    with connection.session(transacted=True) as session:
        for number in range(3_000):
            session.producer(f"{queue}.{number % 3}").send(str(number))
        receipt = session.commit()
    assert sorted(run.count for run in receipt.enqueued) == [1_000, 1_000, 1_000]
    for remainder in range(3):
        bodies = [body for body, _ in left(connection, f"{queue}.{remainder}")]
        assert bodies == [str(number) for number in range(remainder, 3_000, 3)]


def test_a_refused_put_rolls_the_whole_unit_back(connection, queue):
    """The error says why; gets come back, the session goes on (SES-20)."""
    connection.admin.create_queue(queue, message_bytes_max=100)
    put(connection, queue, "in")
    with connection.session(transacted=True) as session:
        consumer = session.consumer(queue)
        consumer.receive(20)
        session.producer(queue + ".other").send("fine")
        session.producer(queue).send(b"x" * 500)
        with pytest.raises(ledgermq.TransactionRolledBackError, match="100") as caught:
            session.commit()
        assert isinstance(caught.value.__cause__, ledgermq.MessageTooLargeError)
        assert caught.value.retryable
        assert consumer.receive(20).delivery_count == 2
        session.producer(queue + ".other").send("next unit")
        session.commit()
    assert left(connection, queue + ".other") == [("next unit", 1)]


def test_after_a_refused_asynchronous_commit_the_session_must_be_rolled_back(connection, queue):
    """Commits behind the failed one fail too; after a rollback the session works again."""
    connection.admin.create_queue(queue, message_bytes_max=100)
    with connection.session(transacted=True) as session:
        good, bad = session.producer(queue + ".good"), session.producer(queue)
        bad.send(b"x" * 500)
        good.send("with the bad one")
        first = session.commit_async()
        with contextlib.suppress(ledgermq.TransactionError):  # known before it was written
            good.send("behind it")
            assert session.commit_async().exception(20) is not None
        assert isinstance(first.exception(20), ledgermq.TransactionError)
        with pytest.raises(ledgermq.TransactionError, match="roll back"):
            session.commit()
        session.rollback()
        good.send("afterwards")
        session.commit()
    assert left(connection, queue + ".good") == [("afterwards", 1)]


def test_an_empty_commit_and_an_empty_rollback_work(connection):
    """A unit of work may be empty."""
    with connection.session(transacted=True) as session:
        receipt = session.commit()
        session.rollback()
    assert (receipt.enqueued, receipt.consumed) == ((), 0)


def test_ses_08_dups_ok_acknowledges_lazily(place, queue, eventually, monkeypatch):
    """Later than AUTO, in fewer operations, and at the latest when the session closes."""
    monkeypatch.setattr(keeper, "ROUND_SECONDS", 2.0)
    with place.connect() as connection, connection.session(ack="DUPS_OK") as session:
        assert session.ack_mode is ledgermq.AckMode.DUPS_OK
        assert not session.transacted
        modes = [one.acknowledge_mode for one in connection.admin.sessions()]
        assert "DUPS_OK" in modes
        session.producer(queue).send_many(str(number) for number in range(20))
        consumer = session.consumer(queue)
        for _ in range(20):
            consumer.receive(20).acknowledge()
        assert consumer.receive(0.05) is None
        assert connection.admin.queue_status(queue).unacknowledged == 20
        eventually(lambda: connection.admin.queue_status(queue).message_count == 0)
        session.producer(queue).send("last")
        assert consumer.receive(20).body == "last"
    with place.connect() as connection:
        assert connection.admin.queue_status(queue).message_count == 0
