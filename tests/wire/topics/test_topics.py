"""Log topics on a real broker: creation with explicit settings, verification of what is there."""

from __future__ import annotations

import itertools
import os
import socket
import time

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from ledgermq.processor.checkpoints.stored_records import checkpoint_producer, write_all
from ledgermq.wire.topics.address import AddressError
from ledgermq.wire.topics.ledger import Ledger
from ledgermq.wire.topics.log_topics import (
    CHECKPOINTS_SEGMENT_BYTES,
    TopicError,
    Topics,
    ensure_topics,
    lane_partition,
)
from ledgermq.wire.topics.reading import PartitionReader
from ledgermq.wire.topics.registry import Claim

pytestmark = pytest.mark.kafka
PREFIXES = itertools.count()


@pytest.fixture
def topics():
    """Topic names that no other test uses."""
    return Topics(f"topics{next(PREFIXES)}")


@pytest.fixture
def admin(broker):
    """An administrator of the broker."""
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def settings_of(admin: AdminClient, topic: str) -> dict[str, str]:
    """The settings of a topic."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    (future,) = admin.describe_configs([resource]).values()
    return {name: entry.value for name, entry in future.result(timeout=15).items()}


def create(admin: AdminClient, topic: str, partitions: int, **config: str) -> None:
    """Creates a topic as somebody else might have."""
    config = {name.replace("_", "."): value for name, value in config.items()}
    (future,) = admin.create_topics([NewTopic(topic, partitions, 1, config=config)]).values()
    future.result(timeout=15)


def test_topic_names_carry_the_prefix():
    """The prefix is an installation's own; `ledgermq` is the default."""
    topics = Topics("p")
    names = (topics.registry, topics.operations, topics.outcomes, topics.questions)
    assert names == ("p.registry", "p.operations", "p.outcomes", "p.questions")
    assert topics.checkpoints == "p.checkpoints"
    assert Topics().operations == "ledgermq.operations"


def test_lane_partition_stays_within_the_queue_manager():
    """Lane L of queue manager p is p × lanes + L; no lane reaches another's partitions."""
    assert [lane_partition(2, 4, lane) for lane in range(4)] == [8, 9, 10, 11]
    assert lane_partition(2, 4, 7) == 11
    assert {lane_partition(1, 3, lane) for lane in range(100)} == {3, 4, 5}


def test_topics_are_created_with_explicit_settings(broker, admin, topics):
    """Partitions, time stamps, sizes, retention and flushing are those of PROTOCOL.md §1."""
    ensure_topics(broker.bootstrap, topics, partitions=2, lanes=3)
    metadata = admin.list_topics(timeout=15).topics
    counts = {
        name.rpartition(".")[2]: len(found.partitions)
        for name, found in metadata.items()
        if name.startswith(topics.prefix + ".")
    }
    assert counts == {
        "registry": 1,
        "operations": 2,
        "outcomes": 6,
        "questions": 2,
        "checkpoints": 2,
    }
    found = {kind: settings_of(admin, f"{topics.prefix}.{kind}") for kind in counts}
    for one in found.values():
        assert one["message.timestamp.type"] == "LogAppendTime"
        assert one["unclean.leader.election.enable"] == "false"
    for kind in ("registry", "operations"):
        assert found[kind]["retention.ms"] == found[kind]["retention.bytes"] == "-1"
        assert found[kind]["cleanup.policy"] == "delete"
    assert found["operations"]["max.message.bytes"] == "8388608"
    assert found["operations"]["flush.messages"] == "1"
    assert found["outcomes"]["max.message.bytes"] == "10485760"
    assert found["checkpoints"]["max.message.bytes"] == "10485760"
    assert found["outcomes"]["retention.ms"] == str(7 * 24 * 3600 * 1000)
    assert found["questions"]["retention.ms"] == str(10 * 60 * 1000)
    assert found["checkpoints"]["cleanup.policy"] == "compact"
    assert found["checkpoints"]["segment.ms"] == str(3600 * 1000)
    for kind in ("outcomes", "questions", "checkpoints"):
        assert found[kind]["flush.messages"] != "1"


@pytest.mark.slow
def test_checkpoints_that_were_replaced_do_not_stay(broker, topics):
    """Kafka closed a segment after a gigabyte or a week, and workers read it all at their start."""
    ensure_topics(broker.bootstrap, topics, partitions=1, lanes=1)
    ledger = Ledger(broker.bootstrap, topics, Claim("QM1", 0, 1), 60.0)
    records = [(b"QM1/chunk/%d" % (number % 2), os.urandom(1024 * 1024)) for number in range(40)]
    write_all(checkpoint_producer(ledger), ledger, records)

    def kept_bytes():
        with PartitionReader(broker.bootstrap, 15.0) as reader:
            found = reader.records(topics.checkpoints, 0, *reader.ends(topics.checkpoints, 0))
            return sum(len(one.value() or b"") for one in found)

    deadline = time.monotonic() + 90
    while kept_bytes() > CHECKPOINTS_SEGMENT_BYTES // 2:
        assert time.monotonic() < deadline, "they are all there"
        time.sleep(1)


def test_existing_topics_are_verified_and_left_alone(broker, admin, topics):
    """A second start creates nothing and is content."""
    ensure_topics(broker.bootstrap, topics, partitions=2, lanes=2)
    ensure_topics(broker.bootstrap, topics, partitions=2, lanes=2)
    found = admin.list_topics(topics.outcomes, timeout=15).topics[topics.outcomes]
    assert len(found.partitions) == 4


def test_missing_topics_are_added_to_those_that_are_there(broker, admin, topics):
    """A start that was cut short is completed by the next."""
    create(admin, topics.registry, 1, message_timestamp_type="LogAppendTime")
    ensure_topics(broker.bootstrap, topics, partitions=1, lanes=1)
    assert topics.operations in admin.list_topics(timeout=15).topics


@pytest.mark.parametrize(
    ("partitions", "lanes", "named"), [(3, 2, "operations"), (2, 3, "outcomes")]
)
def test_another_number_of_partitions_or_lanes_is_refused(broker, topics, partitions, lanes, named):
    """Counts are fixed for ever; the error names the topic and both numbers."""
    ensure_topics(broker.bootstrap, topics, partitions=2, lanes=2)
    with pytest.raises(TopicError, match=rf"{named} has \d partitions, \d were asked for"):
        ensure_topics(broker.bootstrap, topics, partitions=partitions, lanes=lanes)


def test_topic_that_does_not_stamp_append_time_is_refused(broker, admin, topics):
    """A topic with CreateTime would let writers lie about time; the error says what to set."""
    create(admin, topics.operations, 1, message_timestamp_type="CreateTime")
    with pytest.raises(TopicError, match=r"operations stamps CreateTime.*message\.timestamp\.type"):
        ensure_topics(broker.bootstrap, topics, partitions=1, lanes=1)


@pytest.mark.parametrize("prefix", ["", "a b", "a/b", "ä", "a\n", "a\0", "\ud800", "x" * 231])
def test_prefixes_that_no_topic_may_have_are_refused(prefix):
    """What Kafka does not take, before anybody asks it; some of it its library cannot bear."""
    with pytest.raises(AddressError, match="no prefix of topics"):
        Topics(prefix)


def test_unreachable_broker_is_named():
    """Nobody at the address: the error says where."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(TopicError, match=f"no broker answers at {address}"):
            ensure_topics(address, Topics(), timeout_seconds=1.0)
