"""Messages on their way out, by hand: when a batch is full, when it is written, what it learns."""

import pytest

import ledgermq
from ledgermq.client.engine.outgoing import Batch
from ledgermq.client.sansio.sizes import encoded_bytes
from ledgermq.client.sending.making import Sending, make_message
from ledgermq.protocol.header_size import header_bytes
from ledgermq.protocol.limits import CONTENT_BYTES_MAX
from ledgermq.protocol.operations import Commit, Put, Rollback
from ledgermq.protocol.outcomes import Committed, Enqueued
from support.brokers.hand_made import accepted, refused
from support.brokers.hand_route import HandRoute


class Queues(HandRoute):
    """A queue manager that numbers what is put, and answers when it is told to.

    Attributes:
        holding: Whether answers to Put wait for `go_on`.
    """

    def __init__(self):
        super().__init__()
        self.holding = False
        self._waiting = []
        self._next = {}
        self._unit = {}

    def _answer(self, operation):
        if isinstance(operation, Put) and not self.refusing.get(Put):
            self._waiting.append((len(self.log.operations) - 1, operation))
            if not self.holding:
                self.go_on()
        elif isinstance(operation, Commit) and not self.refusing.get(Commit):
            names = ("session", "session_sequence")
            same = {name: getattr(operation, name) for name in names}
            runs = [
                {"destination": name, "first_sequence": 70, "count": count}
                for name, count in self._unit.items()
            ]
            self._unit.clear()
            position = len(self.log.operations) - 1
            self.tell(Committed(position=position, index=0, enqueued=runs, consumed=0, **same))
        else:
            super()._answer(operation)

    def go_on(self):
        """Answers everything that waits, in order."""
        waiting, self._waiting = self._waiting, []
        for position, put in waiting:
            first, count = self._next.get(put.destination, 0), len(put.messages)
            self._next[put.destination] = first + count
            self._unit[put.destination] = self._unit.get(put.destination, 0) + count
            if put.session in self.transacted:
                self.tell(accepted(position, put.session, put.session_sequence))
                continue
            self.tell(
                Enqueued(
                    position=position,
                    index=0,
                    session=put.session,
                    session_sequence=put.session_sequence,
                    first_sequence=first,
                    count=count,
                )
            )

    def counts(self):
        """Destination and number of messages of each Put."""
        return [(one.destination[6:], len(one.messages)) for one in self.written(Put)]


@pytest.fixture
def queues():
    """The queue manager."""
    return Queues()


@pytest.fixture
def connection(queues):
    """A connection to it, which is dropped at the end without a word."""
    with queues.connected() as opened:
        yield opened


def made(body="x", **fields):
    """A message as a Put carries it."""
    return make_message("queue:q", body, Sending(**fields))


# -- batches -----------------------------------------------------------------------------------


def test_a_batch_is_full_by_messages():
    """It takes exactly as many as it may hold."""
    batch = Batch("queue:q")
    assert batch.add(made(), 1)
    assert batch.add(made(), 1) is None
    assert batch.add(made(), 2)
    assert len(batch.messages) == len(batch.receipts) == 2


def test_a_batch_is_full_by_bytes():
    """A mebibyte, headers with it; one that fits exactly is taken."""
    batch, message = Batch("queue:q"), made("y" * 1000, properties={"a": 1})
    size = encoded_bytes(message)
    assert size > len(message["content"]) + header_bytes(message["header"])
    batch.add(message, 100)
    assert batch.size_bytes == size
    batch.add(message, 100)
    assert batch.size_bytes == 2 * size
    batch.size_bytes = 1024 * 1024 - size + 1
    assert batch.add(message, 100) is None
    batch.size_bytes -= 1
    assert batch.add(message, 100)
    assert batch.size_bytes == 1024 * 1024


def test_the_receipts_of_a_batch_are_numbered_in_order():
    """All have the position of their Put."""
    batch = Batch("queue:q")
    receipts = [batch.add(made(), 3) for _ in range(3)]
    enqueued = Enqueued(
        position=9, index=0, session=5, session_sequence=1, first_sequence=4, count=3
    )
    batch.number(enqueued)
    assert [(one.position, one.sequence) for one in receipts] == [(9, 4), (9, 5), (9, 6)]
    assert len({one.message_id for one in receipts}) == 3
    assert {one.destination for one in receipts} == {"queue:q"}


# -- asynchronous sends ------------------------------------------------------------------------


def test_two_asynchronous_sends_go_at_once_and_the_next_gather(queues, connection):
    """Until there is an answer; then everything that gathered goes as one."""
    queues.holding = True
    with connection.session() as session:
        producer = session.producer("queue:q")
        futures = [producer.send_async(str(number)) for number in range(5)]
        assert queues.counts() == [("q", 1), ("q", 1)]
        assert not any(future.done() for future in futures)
        queues.holding = False
        queues.go_on()
        assert [future.result(20).sequence for future in futures] == [0, 1, 2, 3, 4]
        assert queues.counts() == [("q", 1), ("q", 1), ("q", 3)]
        assert session._work.sends.unfinished == {}
        producer.send_async("again").result(20)
        assert queues.counts()[3:] == [("q", 1)]


def test_a_full_batch_of_asynchronous_sends_goes_at_once(queues):
    """As many messages as one operation may gather."""
    queues.holding = True
    connection = queues.connect()
    session = connection.session()
    session._work.sends._messages_max = 3
    producer = session.producer("queue:q")
    for number in range(8):
        producer.send_async(str(number))
    assert queues.counts() == [("q", 1), ("q", 1), ("q", 3), ("q", 3)]
    connection._running.stop(0.0)


def test_another_destination_writes_what_gathered_for_the_last_one(queues, connection):
    """Messages of a session are put in the order in which they were sent."""
    queues.holding = True
    session = connection.session()
    producer = session.producer(None)
    for name in "aabbcb":
        producer.send_async("x", destination=f"queue:{name}")
    assert queues.counts() == [("a", 1), ("a", 1), ("b", 2), ("c", 1)]
    queues.holding = False
    queues.go_on()
    producer.flush()
    assert queues.counts()[4:] == [("b", 1)]


def test_a_confirmed_send_goes_behind_what_gathered(queues, connection):
    """The same holds for one that a coroutine waits for."""
    queues.holding = True
    session = connection.session()
    producer = session.producer("queue:q")
    for _ in range(3):
        producer.send_async("x")
    steps = producer._shared.send("y")
    with session._engine.lock:
        next(steps)  # written, and waiting for its outcome
    assert queues.counts() == [("q", 1)] * 4
    producer.send_async("z")
    with pytest.raises(ledgermq.OutcomeUnknownError):
        producer.send("last", timeout=0.02)
    assert queues.counts() == [("q", 1)] * 6


def test_a_refused_asynchronous_send_has_its_error(queues, connection):
    """Each future has the outcome of its own operation, with the destination."""
    with connection.session() as session:
        producer = session.producer("queue:q")
        queues.refusing[Put] = "message-too-large"
        error = producer.send_async("x").exception(20)
        assert isinstance(error, ledgermq.LedgerMQError)
        assert (error.code, error.destination) == ("message-too-large", "queue:q")
        del queues.refusing[Put]
        assert producer.send_async("y").result(20).sequence == 0


def test_asynchronous_sends_of_a_lost_session_fail_all(queues, connection):
    """Those under way are unknown; those that were still gathering were never written."""
    queues.holding = True
    session = connection.session()
    producer = session.producer("queue:q")
    futures = [producer.send_async("x") for _ in range(4)]
    session._engine.forget("gone")
    kinds = [type(one.exception(20)) for one in futures]
    unknown, lost = ledgermq.OutcomeUnknownError, ledgermq.SessionLostError
    assert kinds == [unknown, unknown, lost, lost]
    assert len(queues.written(Put)) == 2


def test_in_a_crowd_what_gathered_waits(queues, connection):
    """An answer that makes no room yet writes nothing more."""
    queues.holding = True
    session = connection.session()
    core, producer = session._engine, session.producer("queue:q")
    for _ in range(3):
        producer.send_async("x")
    with core.lock:
        first = next(one for one in core.protocol.pending.values() if one.operation is Put)
    core.protocol.next_number += 1000
    core.take(refused(9, session.handle, first.number, "message-too-large"))
    assert len(queues.written(Put)) == 2
    core.protocol.next_number -= 1000
    core.take(refused(9, session.handle, first.number + 1, "message-too-large"))
    assert len(queues.written(Put)) == 3


# -- units of work -----------------------------------------------------------------------------


def test_a_unit_of_work_gathers_by_destination_and_goes_with_its_commit(queues, connection):
    """Numbering is per queue, so that the order between queues does not matter (SEQ-18)."""
    session = connection.session(transacted=True)
    producer = session.producer(None)
    receipts = [producer.send("x", destination=f"queue:{name}") for name in "abab"]
    assert queues.written(Put) == []
    receipt = session.commit()
    assert queues.counts() == [("a", 2), ("b", 2)]
    assert [one.puts for one in queues.written(Commit)] == [4]
    assert [one.sequence for one in receipts] == [70, 70, 71, 71]
    assert [one.position for one in receipts[:2]] == [
        queues.log.operations.index(one) for one in queues.written(Put)
    ]
    assert (receipt.consumed, len(receipt.enqueued)) == (0, 2)
    assert receipt.position == len(queues.log.operations) - 1
    producer.send("x", destination="queue:c")
    assert [run.destination for run in session.commit().enqueued] == ["queue:c"]
    assert [one.puts for one in queues.written(Commit)] == [4, 1]


def test_one_operation_gathers_250_messages_unless_told_otherwise(queues, connection):
    """In units of work, and in asynchronous sends likewise."""
    session = connection.session(transacted=True)
    producer = session.producer("queue:q")
    for _ in range(250):
        producer.send("x")
    assert queues.written(Put) == []
    producer.send("x")
    assert queues.counts() == [("q", 250)]


def test_a_flush_writes_a_unit_of_work_although_there_is_no_time_to_wait(queues, connection):
    """What was sent is then on the log, uncommitted."""
    for flush in ("session", "producer"):
        session = connection.session(transacted=True)
        producer = session.producer(f"queue:{flush}")
        producer.send("x")
        with pytest.raises(ledgermq.OutcomeUnknownError):
            (session if flush == "session" else producer).flush(timeout=0)
    assert queues.counts() == [("session", 1), ("producer", 1)]


def test_a_full_batch_of_a_unit_of_work_is_written_before_the_commit(queues):
    """So many messages per operation as the connection was told."""
    connection = queues.connect()
    session = connection.session(transacted=True)
    session._work.commits.unit._messages_max = 2
    producer = session.producer("queue:q")
    for _ in range(5):
        producer.send("x")
    assert queues.counts() == [("q", 2), ("q", 2)]
    session.commit()
    assert queues.counts() == [("q", 2), ("q", 2), ("q", 1)]
    connection._running.stop(0.0)


def test_a_put_that_was_refused_is_the_cause_of_the_rollback(queues, connection):
    """The first one; what was put is undone, and the next unit of work is a new one (SES-20)."""
    session = connection.session(transacted=True)
    producer = session.producer("queue:q")
    producer.send("x")
    queues.refusing |= {Put: "message-too-large", Commit: "commit-incomplete"}
    with pytest.raises(ledgermq.TransactionRolledBackError, match="message-too-large") as caught:
        session.commit()
    assert isinstance(caught.value.__cause__, ledgermq.LedgerMQError)
    assert caught.value.__cause__.code == "message-too-large"
    queues.refusing.clear()
    producer.send("y")
    session.commit()
    assert [one.puts for one in queues.written(Commit)] == [1, 1]


def test_a_block_that_raises_is_rolled_back(queues, connection):
    """Its own exception is what comes out, also when the rollback fails."""
    session = connection.session(transacted=True)

    def fails():
        with session.transaction():
            session.producer("queue:q").send("x")
            raise KeyError("the block's own")

    with pytest.raises(KeyError):
        fails()
    assert len(queues.written(Rollback)) == 1
    session._engine.timeout_seconds = 0.02
    queues.silent.add(Rollback)
    with pytest.raises(KeyError):
        fails()
    assert len(queues.written(Rollback)) == 2
    assert queues.written(Commit) == []


# -- one message -------------------------------------------------------------------------------


def test_a_message_may_be_as_large_as_the_limit_and_no_larger():
    """Counted as it is encoded."""
    bare = len(made(b"")["content"])
    frame = len(made(b"z" * 5_000_000)["content"]) - 5_000_000 - bare
    body = b"z" * (CONTENT_BYTES_MAX - bare - frame)
    assert len(made(body)["content"]) == CONTENT_BYTES_MAX
    with pytest.raises(ledgermq.MessageTooLargeError, match="nothing was sent"):
        made(body + b"z")


def test_a_message_that_the_log_did_not_confirm_is_unknown(queues, connection):
    """Whether nothing was heard within the time-out, or an error (H7)."""
    with connection.session() as session:
        producer = session.producer("queue:q")
        assert producer.send("x", confirm="log").position == -1
        for landed, error, told in ((True, "broken", "broken"), (False, None, "no answer")):

            def report(receipt, seconds, landed=landed, error=error):
                assert seconds == 7
                receipt.error = error
                return landed

            queues.log.wait_landed = report
            with pytest.raises(ledgermq.OutcomeUnknownError, match=rf"7 s \({told}\)") as caught:
                producer.send("x", confirm="log", timeout=7)
            assert caught.value.destination == "queue:q"
