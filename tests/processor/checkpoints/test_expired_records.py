"""Records of checkpoints that Kafka takes away because somebody gave their topic a retention."""

import json

import pytest

from ledgermq.protocol import operations as op
from ledgermq.protocol.limits import BLOCK_MESSAGES
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
