"""Tests of the client against planted faults: lost, repeated and late outcomes, lost operations."""

import random

import pytest
from confluent_kafka import TopicPartition

import ledgermq
from ledgermq.client.link.broker_news import BrokerNews
from ledgermq.client.link.lane import LaneReader
from ledgermq.core.queries.destination_status import destination_status
from ledgermq.protocol.operations import Close, Put
from ledgermq.protocol.outcomes import Committed, Delivered, Enqueued
from support.brokers.plain_worker import PlainWorker, Written
from support.brokers.tampering import Losing, sent

pytestmark = pytest.mark.usefixtures("impatient")


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_send_whose_reply_is_lost_acts_once(breakable, count):
    """Replies lost again and again: the same operation is repeated, the message is there once."""
    breakable.worker.tamper = losing = Losing(Enqueued, count)
    with breakable.connect() as connection, connection.session() as session:
        producer = session.producer("queue:q")
        assert [producer.send("a").sequence, producer.send("b").sequence] == [0, 1]
        assert [one.body for one in session.browser("queue:q")] == ["a", "b"]
    assert losing.lost >= 1
    assert len(set(sent(breakable.worker, Put))) == 2


def test_a_storm_of_repeats_acts_once(breakable):
    """The same operations written five times over, in order and again: one effect each."""
    with breakable.connect() as connection, connection.session() as session:
        core = session._engine
        write = core.transport.write

        def storm(value, headers, receipt=None):
            for _ in range(5):
                write(value, headers, receipt)

        core.transport.write = storm
        producer = session.producer("queue:q")
        receipts = [producer.send(str(number)) for number in range(20)]
        consumer = session.consumer("queue:q")
        bodies = [consumer.receive(20).body for _ in range(20)]
        core.transport.write = write
        assert [receipt.sequence for receipt in receipts] == list(range(20))
        assert bodies == [str(number) for number in range(20)]
        assert consumer.receive(0.5) is None
    status = destination_status(breakable.worker.state, "queue:q")
    assert (status["next_sequence"], status["sent_and_committed"]) == (20, 20)
    assert len(sent(breakable.worker, Put)) == 100


@pytest.mark.parametrize("count", [1, 3])
def test_a_commit_whose_reply_is_lost_acts_once(breakable, count):
    """The unit of work is committed once, and the receipt tells what it did."""
    breakable.worker.tamper = losing = Losing(Committed, count)
    with breakable.connect() as connection, connection.session(transacted=True) as session:
        session.producer("queue:q").send("a")
        receipt = session.commit()
        assert receipt.enqueued[0].first_sequence == 0
        session.producer("queue:q").send("b")
        assert session.commit().enqueued[0].first_sequence == 1
        assert [one.body for one in session.browser("queue:q")] == ["a", "b"]
    assert losing.lost >= 1


def test_deliveries_that_are_lost_on_their_way_come_anyway(breakable):
    """A hole in the lane is noticed; nothing is lost, nothing comes twice, order stays."""
    with breakable.connect() as connection, connection.session() as session:
        session.producer("queue:q").send_many(str(number) for number in range(300))
        breakable.worker.tamper = losing = Losing(Delivered, 4)
        consumer = session.consumer("queue:q", prefetch=20)
        bodies = [consumer.receive(20).body for _ in range(300)]
        assert consumer.receive(0.3) is None
    assert bodies == [str(number) for number in range(300)]
    assert losing.lost == 4


def test_repeated_chunks_and_chunks_cut_otherwise_are_dropped(breakable):
    """Everything twice, and once more joined with what went before: each outcome counts once."""
    before: dict[bytes, Written] = {}

    def repeat(written: Written) -> list[Written]:
        found = [written, written]
        last = before.get(written.connection)
        if last is not None and written.previous_index != -2:
            found.insert(
                1,
                Written(
                    connection=written.connection,
                    lane=written.lane,
                    previous_position=last.previous_position,
                    previous_index=last.previous_index,
                    outcomes=[*last.outcomes, *written.outcomes],
                ),
            )
        before[written.connection] = written
        return found

    breakable.worker.tamper = repeat
    with breakable.connect() as connection, connection.session(transacted=True) as session:
        producer, consumer = session.producer("queue:q"), session.consumer("queue:q", prefetch=7)
        bodies = []
        for number in range(50):
            producer.send(str(number))
            session.commit()
            bodies.append(consumer.receive(20).body)
        session.commit()
        assert consumer.receive(0.3) is None
    assert bodies == [str(number) for number in range(50)]


@pytest.mark.parametrize("seed", range(3))
def test_random_loss_and_repetition_change_nothing(breakable, seed):
    """Transacted copying from queue to queue while a fifth of the chunks is lost or repeated."""
    dice = random.Random(seed)
    breakable.worker.tamper = lambda written: [written] * dice.choices([0, 1, 2], [1, 8, 1])[0]
    with breakable.connect(timeout=60.0) as connection:
        with connection.session() as session:
            session.producer("queue:in").send_many(str(number) for number in range(200))
        with connection.session(transacted=True) as session:
            consumer, producer = session.consumer("queue:in"), session.producer("queue:out")
            done = 0
            while done < 200:
                some = consumer.receive_many(dice.randint(1, 20), 30)
                for message in some:
                    producer.send(message.body)
                if dice.random() < 0.25:
                    session.rollback()
                else:
                    session.commit()
                    done += len(some)
        breakable.worker.tamper = lambda written: [written]
        with connection.session() as session:
            bodies = [one.body for one in session.browser("queue:out")]
    assert sorted(bodies, key=int) == [str(number) for number in range(200)]


def test_operations_lost_before_the_log_are_written_again_in_order(breakable):
    """A gap is refused by the fold; the client goes back to the number expected."""
    dice = random.Random(7)
    lost = 0
    with breakable.connect() as connection, connection.session() as session:
        transport = session._engine.transport
        write = transport.write

        def leaky(value, headers, receipt=None):
            nonlocal lost
            if dice.random() < 0.1:
                lost += 1
            else:
                write(value, headers, receipt)

        transport.write = leaky
        producer = session.producer("queue:q")
        futures = []
        for number in range(2_000):
            futures.append(producer.send_async(str(number)))
            if number % 10 == 9:
                with session._engine.lock:
                    session._work.sends.write_locked()
        producer.flush(timeout=60)
        transport.write = write
        assert [future.result(0).sequence for future in futures] == list(range(2_000))
        bodies = [one.body for one in session.browser("queue:q")]
    assert bodies == [str(number) for number in range(2_000)]
    assert lost > 0


def test_a_commit_without_an_outcome_is_in_doubt_and_can_be_resolved(breakable):
    """The error says what is unknown; resolving waits for the same commit and acts once."""
    with breakable.connect() as connection, connection.session(transacted=True) as session:
        session.producer("queue:q").send("a")
        breakable.worker.pause()
        with pytest.raises(ledgermq.TransactionInDoubtError, match="resolve") as caught:
            session.commit(timeout=0.5)
        with pytest.raises(ledgermq.TransactionInDoubtError):
            caught.value.resolve(0.3)
        breakable.worker.resume()
        receipt = caught.value.resolve(20)
        assert receipt.enqueued[0].count == 1
        session.producer("queue:q").send("b")
        assert session.commit().enqueued[0].first_sequence == 1
    assert caught.value.code == "transaction-in-doubt"
    assert not caught.value.retryable


def test_a_send_without_an_outcome_is_unknown_and_can_be_resolved(breakable):
    """It may have been applied or may yet be; the same operation's receipt can be had later."""
    with breakable.connect() as connection, connection.session() as session:
        producer = session.producer("queue:q")
        breakable.worker.pause()
        with pytest.raises(ledgermq.OutcomeUnknownError, match="worker") as caught:
            producer.send("a", timeout=0.5)
        breakable.worker.resume()
        assert caught.value.resolve(20).sequence == 0
        assert producer.send("b").sequence == 1
    assert caught.value.destination == "queue:q"
    assert isinstance(caught.value, TimeoutError)


def test_a_worker_that_starts_again_changes_nothing(breakable):
    """It folds from the start and writes every outcome again; the client drops what it knows."""
    place = breakable.place
    with place.connect() as connection, connection.session(ack="CLIENT") as session:
        producer, consumer = session.producer("queue:q"), session.consumer("queue:q")
        producer.send_many(str(number) for number in range(100))
        bodies = [consumer.receive(20).body for _ in range(30)]
        breakable.worker.pause()
        unanswered = [producer.send_async(str(number)) for number in range(100, 200)]
        second = PlainWorker(place.bootstrap, place.topics, place.claim)
        bodies += [consumer.receive(20).body for _ in range(170)]
        producer.flush()
        assert [one.result(0).sequence for one in unanswered] == list(range(100, 200))
        session.acknowledge()
        assert consumer.receive(0.3) is None
        breakable.worker.resume()
    second.stop()
    assert bodies == [str(number) for number in range(200)]


def test_connections_that_begin_together_are_on_several_lanes(breakable):
    """Each reads all of its lane, what is for others too: one lane would be slow for all."""
    with breakable.connect() as connection, connection.session() as session:
        session.producer("queue:q").send("one lane is longer now")
        found = set()
        for _ in range(64):  # only one lane by chance: in one of 2**63 runs
            lane = LaneReader(connection._running.settings, BrokerNews(breakable.place.bootstrap))
            lane.start(breakable.place.claim, 20.0)
            found.add(lane.lane)
            lane.close()
            if len(found) == breakable.place.claim.lanes:
                break
    assert found == set(range(breakable.place.claim.lanes))


def test_a_lane_that_went_on_without_the_reader_is_caught_up_with(breakable, eventually):
    """When its place on the lane is gone, the reader asks what it missed."""
    with breakable.connect() as connection, connection.session() as session:
        producer, consumer = session.producer("queue:q"), session.consumer("queue:q")
        producer.send("a")
        assert consumer.receive(20).body == "a"
        lane = connection._running.lane
        read = lane.read

        def astray(timeout_seconds):
            # In the reader's own thread: a consumer is not to be moved from another one.
            lane.read = read
            beyond = TopicPartition(lane._topic, lane._partition, 1_000_000)
            lane._consumer.assign([beyond])
            return read(timeout_seconds)

        lane.read = astray
        eventually(lambda: lane.read is read)
        producer.send("b")
        assert consumer.receive(20).body == "b"


def test_every_operation_of_a_session_but_its_close_names_what_was_answered(breakable):
    """The queue manager may forget replies: answered_through follows the replies seen."""
    with breakable.connect() as connection, connection.session() as session:
        producer = session.producer("queue:q")
        for _ in range(5):
            producer.send("x")
        handle = session.handle
    told = [
        one.answered_through
        for one in breakable.worker.operations
        if getattr(one, "session", None) == handle and not isinstance(one, Close)
    ]
    assert told[-1] >= 4
    assert told == sorted(told)
