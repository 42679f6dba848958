"""Records of checkpoints that are taken away by a retention, or by a worker that was frozen."""

import json

import pytest

from ledgermq.protocol import operations as op
from ledgermq.protocol.limits import BLOCK_MESSAGES
from ledgermq.wire.framing.checkpoint_chunks import BLOCK
from ledgermq.wire.framing.codec import decode_record
from support.brokers import topic_surgery as surgery
from support.checks.history import read_partition

pytestmark = pytest.mark.kafka


def expire_all(place):
    """What a retention does when the time of all records there is over."""
    topic, partition = place.topics.checkpoints, place.claim.partition
    surgery.alter_topic(place, topic, cleanup_policy="compact,delete")
    last = read_partition(place.bootstrap, topic, partition)[-1]
    surgery.delete_records(place, topic, partition, last.offset() + 1)


def test_the_next_checkpoint_is_whole_though_records_that_it_builds_on_have_expired(place):
    """The log was trimmed: nothing but the checkpoints holds the state (H13)."""
    worker = place.worker("first")
    client = place.client()
    session = client.open()
    for _ in range(3):
        session.put("queue:a", BLOCK_MESSAGES)
        session.do(op.Commit, deliveries=[], puts=BLOCK_MESSAGES)
    client.ask("CHECKPOINT")
    expire_all(place)
    session.put("queue:b", 1)
    session.do(op.Commit, deliveries=[], puts=1)
    position = client.ask("CHECKPOINT")["position"]
    worker.kill()
    operations, partition = place.topics.operations, place.claim.partition
    surgery.delete_records(place, operations, partition, position)
    place.worker("second")
    found = json.loads(place.client(1).ask("QUEUE", queue="a")["document"])
    assert found["current"] == 3 * BLOCK_MESSAGES
    assert "cleanup.policy=compact" in worker.log


def test_what_a_worker_takes_away_that_was_frozen_while_it_tidied_up_is_written_again(place):
    """Its successor counts as stored what it found; all its checkpoints lacked that for good."""
    worker = place.worker("first")
    client = place.client()
    session = client.open()
    for queue in "ab":
        put_one(session, queue)
    client.ask("CHECKPOINT")
    for key, queue in chunks_of_blocks(place).items():
        if queue == "a":
            surgery.write(place, place.topics.checkpoints, key, None)
    put_one(session, "b")
    position = client.ask("CHECKPOINT")["position"]
    worker.kill()
    second = place.worker("second")
    assert f"state loaded at position {position} (from a checkpoint)" in second.log, second.log
    assert "as by a worker that was frozen while it tidied up" in worker.log


def put_one(session, queue):
    """Puts a message in a unit of work of its own."""
    session.put(f"queue:{queue}", 1)
    session.do(op.Commit, deliveries=[], puts=1)


def chunks_of_blocks(place):
    """The keys of chunks that hold messages, with their queue."""
    found = {}
    for key, value in surgery.checkpoint_shelf(place).items():
        name, record = decode_record(value) if "/chunk/" in key else ("", {})
        if name == BLOCK:
            found[key] = record["queue"]
    return found
