"""Tests of the client against planted faults: lost, repeated and late outcomes, lost operations."""

import random
import threading

import pytest
from confluent_kafka import TopicPartition

import ledgermq
from ledgermq.client import keeper
from ledgermq.core.operations import Alive, Close, Commit, Put
from ledgermq.core.outcomes import Committed, Delivered, Enqueued, Reply, SessionEnded, Suspected
from support.plain_worker import PlainWorker, Written


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Repeats and questions come soon, so that the tests need not wait for them."""
    monkeypatch.setattr(keeper, "ROUND_SECONDS", 0.05)
    monkeypatch.setattr(keeper, "RESYNC_AFTER_SECONDS", 0.2)
    monkeypatch.setattr(keeper, "RESYNC_PAUSE_MAX_SECONDS", 0.4)
    monkeypatch.setattr(keeper, "REPEAT_AFTER_SECONDS", 0.3)


class Losing:
    """Loses the first chunks that hold an outcome of a kind, then lets everything pass."""

    def __init__(self, kind, count=1):
        self.kind = kind
        self.left = count
        self.lost = 0

    def __call__(self, written: Written) -> list[Written]:
        """Nothing in place of a chunk to lose, else the chunk."""
        if self.left and any(isinstance(one, self.kind) for one in written.outcomes):
            self.left -= 1
            self.lost += 1
            return []
        return [written]


def sent(worker, kind):
    """The operations of a kind that reached the log, as (session, number)."""
    return [
        (one.session, one.session_sequence) for one in worker.operations if isinstance(one, kind)
    ]


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
        core = session._core
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
    status = breakable.worker.state.queues["q"]
    assert (status.next_sequence, status.sent_and_committed) == (20, 20)
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
        transport = session._core.transport
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
                session._sends.write_locked()
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


def test_a_suspected_session_shows_that_it_lives(breakable, eventually):
    """Suspected is answered by Alive at once, for every session of the connection."""
    with breakable.connect() as connection, connection.session() as session:
        handles = {session.handle, connection._control.handle}
        eventually(lambda: {one for one, _ in sent(breakable.worker, Alive)} == handles)
        breakable.worker.suspect(*handles)
        eventually(lambda: {one for one, at in sent(breakable.worker, Alive) if at > 1} == handles)
        eventually(lambda: not any(one.suspected for one in connection.admin.sessions()))


def test_a_suspicion_that_was_lost_in_a_hole_is_answered_too(breakable, eventually):
    """After catching up, every session shows itself: what was missed may have been a Suspected."""
    with breakable.connect() as connection, connection.session() as session:
        breakable.worker.tamper = losing = Losing(Suspected)
        breakable.worker.suspect(session.handle)
        eventually(lambda: losing.lost == 1)
        assert [one.suspected for one in connection.admin.sessions()] == [False, True]
        with connection.session():  # any further outcome shows the hole
            eventually(lambda: not any(one.suspected for one in connection.admin.sessions()))


def lose_session(breakable, connection, session, eventually):
    """Lets the queue manager end a session whose client seems dead."""
    core = session._core
    core._show_life_locked = lambda: None
    breakable.worker.suspect(session.handle)
    with breakable.connect() as other:
        eventually(
            lambda: (
                other.admin.alter_queue_manager() > 0
                and session.handle not in [one.session for one in other.admin.sessions()]
            )
        )


def test_a_commit_of_a_session_that_was_ended_is_rolled_back(breakable, eventually):
    """The error says so, what it held is with others again, and a new session goes on."""
    with breakable.connect(suspect_timeout_seconds=1.0) as connection:
        with connection.session() as other:
            other.producer("queue:in").send("a")
        session = connection.session(transacted=True)
        consumer = session.consumer("queue:in")
        assert consumer.receive(20).body == "a"
        session.producer("queue:out").send("never")
        lose_session(breakable, connection, session, eventually)
        with pytest.raises((ledgermq.TransactionRolledBackError, ledgermq.SessionLostError)):
            session.commit()
        with pytest.raises(ledgermq.SessionLostError, match="another session"):
            consumer.receive(1)
        session.close()
        with connection.session() as after:
            message = after.consumer("queue:in").receive(20)
            assert (message.body, message.delivery_count) == ("a", 2)
            assert list(after.browser("queue:in")) == []


def test_a_commit_under_way_when_its_session_ends_is_rolled_back(breakable, eventually):
    """SessionEnded stands before the commit on the log: the commit was not applied."""
    with breakable.connect(suspect_timeout_seconds=1.0) as connection:
        session = connection.session(transacted=True)
        session.producer("queue:out").send("never")
        held: list[Written] = []
        mine = connection._settings.identity

        def hold(written: Written) -> list[Written]:
            if written.connection == mine:
                held.append(written)
                return []
            return [written]

        connection.admin.create_queue("out")
        breakable.worker.answers = lambda ask: ask["connection"] != mine
        breakable.worker.tamper = hold
        lose_session(breakable, connection, session, eventually)
        commit = session.commit_async()
        eventually(lambda: (session.handle, 3) in sent(breakable.worker, Commit))
        breakable.worker.tamper = lambda written: [written]
        for written in held:
            breakable.worker.write(written)
        breakable.worker.answers = lambda ask: True
        error = commit.exception(20)
        assert isinstance(error, ledgermq.TransactionRolledBackError)
        assert error.retryable
        session.close()


def test_a_lost_end_of_a_session_is_found_out(breakable, eventually):
    """SessionEnded got lost: after catching up, the session is known to be gone, the fate not."""
    with breakable.connect(suspect_timeout_seconds=1.0) as connection:
        session = connection.session(ack="CLIENT")
        breakable.worker.tamper = Losing(SessionEnded)
        lose_session(breakable, connection, session, eventually)
        with connection.session():
            eventually(lambda: session.is_closed)
            with pytest.raises(ledgermq.SessionLostError):
                session.producer("queue:q")
        session.close()


def test_administration_goes_on_when_its_own_session_was_lost(breakable, eventually):
    """The connection opens another one, also when the queue manager has forgotten it whole."""
    with breakable.connect(suspect_timeout_seconds=1.0) as connection:
        control = connection._control
        control._show_life_locked = lambda: None
        breakable.worker.suspect(control.handle)
        with breakable.connect() as other:
            eventually(
                lambda: (
                    other.admin.alter_queue_manager() > 0
                    and control.handle not in [one.session for one in other.admin.sessions()]
                )
            )
        eventually(lambda: control.lost is not None)
        connection.admin.create_queue("orders")
        with connection.session() as session:
            assert session.producer("queue:orders").send("x").sequence == 0


def test_a_lane_that_went_on_without_the_reader_is_caught_up_with(breakable, eventually):
    """When its place on the lane is gone, the reader asks what it missed."""
    with breakable.connect() as connection, connection.session() as session:
        producer, consumer = session.producer("queue:q"), session.consumer("queue:q")
        producer.send("a")
        assert consumer.receive(20).body == "a"
        lane = connection._lane
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


def test_a_message_taken_away_by_administration_does_not_block_the_others(breakable):
    """Its acknowledgement is refused; what else was handed over can be acknowledged."""
    with breakable.connect() as connection, connection.session(ack="CLIENT") as session:
        session.producer("queue:q").send_many(["a", "b", "c"])
        consumer = session.consumer("queue:q")
        messages = [consumer.receive(20) for _ in range(3)]
        connection.admin.correct("q", sequence=1, action="REMOVE", actor="test", reason="test")
        with pytest.raises(ledgermq.DeliveryUnknownError):
            messages[0].acknowledge()
        messages[0].acknowledge()
        assert connection.admin.queue_status("q").message_count == 0


def test_a_rollback_works_although_administration_took_a_message_away(breakable):
    """The other messages go back and count as backed out."""
    with breakable.connect() as connection, connection.session(transacted=True) as session:
        session.producer("queue:q").send("a")
        session.producer("queue:q").send("b")
        session.commit()
        consumer = session.consumer("queue:q")
        assert [consumer.receive(20).body for _ in range(2)] == ["a", "b"]
        connection.admin.correct("q", sequence=0, action="REMOVE", actor="test", reason="test")
        with pytest.raises(ledgermq.TransactionRolledBackError):
            session.commit()
        message = consumer.receive(20)
        assert (message.body, message.delivery_count) == ("b", 2)


def test_automatic_acknowledgement_survives_administration(breakable):
    """An acknowledgement refused for one message is made again for the others."""
    with breakable.connect() as connection, connection.session() as session:
        session.producer("queue:q").send_many(["a", "b", "c"])
        consumer = session.consumer("queue:q", prefetch=3)
        taken = [consumer.receive(20)]
        connection.admin.correct("q", sequence=2, action="REMOVE", actor="test", reason="test")
        taken += [consumer.receive(20) for _ in range(2)]
        assert [one.body for one in taken] == ["a", "b", "c"]
        assert consumer.receive(0.5) is None
        assert consumer.receive(0.5) is None
    assert breakable.worker.state.queues["q"].messages == {}


def test_closing_gives_up_after_its_time_out_and_says_so(breakable):
    """With no worker to answer, close does not hang and does not pretend."""
    connection = breakable.connect()
    session = connection.session()
    consumer = session.consumer("queue:q")
    waiting = threading.Thread(target=consumer.receive)
    waiting.start()
    breakable.worker.pause()
    with pytest.raises(ledgermq.OutcomeUnknownError):
        connection.close(timeout=1.0)
    waiting.join(20)
    assert not waiting.is_alive()
    breakable.worker.resume()


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
    assert issubclass(Enqueued, Reply)
