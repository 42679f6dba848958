"""Records of the log that a disk has changed: one message suffers, or the fold waits before it."""

from contextlib import closing

import pytest

import ledgermq
from ledgermq.processor.checkpoints.discarding import discard_checkpoints
from ledgermq.processor.lanes.bodies import LogReader
from ledgermq.wire.topics.log_topics import lane_partition
from ledgermq.wire.topics.reading import LogDamagedError, PartitionReader
from support.brokers.damage import flip_bit
from support.brokers.worker_process import new_place

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
SECOND = b"the second of three"


@pytest.fixture
def damaged(own_broker, tmp_path):
    """Three messages on a queue, the state of which is in a checkpoint, and the second damaged."""
    place = new_place(own_broker.bootstrap, tmp_path)
    first = place.worker("first")
    with place.connect() as connection, connection.session() as session:
        producer = session.producer("queue:q")
        for text in ("the first of three", SECOND.decode(), "the third of three"):
            producer.send(text)
    first.stop()
    flip_bit(own_broker.directory, place.topics.operations, 0, SECOND)
    yield place
    place.close()


def test_a_message_whose_content_is_damaged_is_delivered_without_it(damaged):
    """Its receiver is told, and can settle it; the others, and the worker, go on (D6)."""
    worker = damaged.worker("second")
    with damaged.connect() as connection, connection.session(ack="INDIVIDUAL") as session:
        consumer = session.consumer("queue:q")
        before, message, behind = (consumer.receive(20) for _ in range(3))
        assert (before.body, behind.body) == ("the first of three", "the third of three")
        with pytest.raises(ledgermq.MessageUndecodableError, match="of queue:q is lost"):
            _ = message.body
        for one in (before, message, behind):
            one.acknowledge()
        assert connection.admin.queue_status("q").message_count == 0
    told = f"the content of message {message.message_id.removeprefix('ID:').lower()}, number 1 of"
    assert f"{told} queue:q, is lost" in worker.log
    assert "is damaged (MessageSet at offset" in worker.log


def test_a_browser_shows_what_is_lost_too(damaged):
    """It is still on its queue."""
    damaged.worker("second")
    with damaged.connect() as connection:
        found = list(connection.browser("queue:q"))
    assert [one.sequence for one in found] == [0, 1, 2]
    with pytest.raises(ledgermq.MessageUndecodableError, match="is lost"):
        _ = found[1].body


def test_messages_beside_a_damaged_one_are_written_again(damaged):
    """It is told of, and the log stays needed where it is: it once kept all others there (H24)."""
    damaged.worker("second")
    with closing(LogReader(damaged.ledger)) as reader, damaged.connect() as connection:
        done = connection.admin.relocate_messages(reader.value_at, before=1_000, reason="room")
        (lost,) = done.lost
        assert (done.messages, lost.pin.sequence) == (2, 1)
        assert "is damaged (MessageSet at offset" in lost.why
        pins = connection.admin.log_pins()
        assert pins.needed_position == lost.pin.put_position
        assert {one.body_position for one in pins.pins[1:]} == {done.position}
        with connection.session() as session:
            consumer = session.consumer("queue:q")
            before, _, behind = (consumer.receive(20) for _ in range(3))
            assert (before.body, behind.body) == ("the first of three", "the third of three")


def test_a_fold_waits_before_a_damaged_record_and_goes_on_once_it_was_restored(own_broker, damaged):
    """Nothing is folded without it, no other queue manager waits, and nobody starts anything."""
    discard_checkpoints(damaged.ledger)
    worker = damaged.worker("second", ready=False)
    worker.wait_for_log("is folded: ")
    assert "holds a record that is damaged" in worker.log
    assert worker.code is None
    flip_bit(own_broker.directory, damaged.topics.operations, 0, SECOND)
    damaged.wait_for_worker()
    with damaged.connect() as connection, connection.session() as session:
        consumer = session.consumer("queue:q")
        assert [consumer.receive(20).body[4:9] for _ in range(3)] == ["first", "secon", "third"]


def test_who_connects_while_a_fold_waits_is_told_where_it_is(damaged):
    """The worker answers; that none does would have somebody start a second one."""
    discard_checkpoints(damaged.ledger)
    worker = damaged.worker("second", ready=False)
    worker.wait_for_log("is folded: ")
    waits_at = int(worker.log.split("nothing from position ")[1].split()[0])
    told = f"a worker of QM1 answers, .* no further than position {waits_at - 1}"
    with pytest.raises(ledgermq.WorkerUnavailableError, match=told):
        damaged.connect(timeout=4.0)


def test_readers_of_the_log_name_a_damaged_record(damaged):
    """And what to do; nobody takes it as it is."""
    topic = damaged.topics.operations
    with (
        PartitionReader(damaged.bootstrap, 20.0) as reader,
        pytest.raises(LogDamagedError, match=f"{topic}-0 holds a record that is damaged"),
    ):
        list(reader.records(topic, 0, 0))


def test_what_is_read_after_a_damaged_record_is_read_in_peace(damaged):
    """It was told what is out of range behind that: every second worker did not start (H14)."""
    topics, claim = damaged.topics, damaged.claim
    lanes = [lane_partition(claim.partition, claim.lanes, lane) for lane in range(claim.lanes)]
    for _ in range(20):
        with PartitionReader(damaged.bootstrap, 20.0) as reader:
            for lane in lanes:
                with pytest.raises(LogDamagedError):
                    list(reader.records(topics.operations, 0, 0))
                end = reader.ends(topics.outcomes, lane)[1]
                assert len(list(reader.records(topics.outcomes, lane, 0, end))) == end
