"""The registry of queue managers on a real broker: claims, races, records that are no claims."""

from __future__ import annotations

import itertools
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import Producer

import ledgermq
from ledgermq.errors import BrokerUnavailableError, QueueManagerNotFoundError
from ledgermq.protocol.operations import Tick
from ledgermq.wire.framing.codec import encode_operation, encode_record
from ledgermq.wire.topics.log_topics import Topics, ensure_topics
from ledgermq.wire.topics.reading import LogUnreadableError, PartitionReader
from ledgermq.wire.topics.registry import (
    Claim,
    RegistryError,
    claim_queue_manager,
    find_queue_manager,
    list_queue_managers,
    queue_managers_on_log,
)

pytestmark = pytest.mark.kafka
PREFIXES = itertools.count()
CLAIM = "ledgermq.registry.Claim"


@pytest.fixture
def topics(broker):
    """The topics of an installation with two partitions."""
    topics = Topics(f"registry{next(PREFIXES)}")
    ensure_topics(broker.bootstrap, topics, partitions=2, lanes=3)
    return topics


def write(broker, topics: Topics, *values: bytes | None) -> None:
    """Writes records to the registry as anybody might."""
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in values:
        producer.produce(topics.registry, key=b"k", value=value, partition=0)
    assert producer.flush(15) == 0


def write_to_log(
    broker, topics: Topics, partition: int, key: bytes | None, *values: bytes | None
) -> None:
    """Writes records to a partition of the operations."""
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in values:
        producer.produce(topics.operations, key=key, value=value, partition=partition)
    assert producer.flush(15) == 0


def claim(name: str, partition: int, lanes: int = 3) -> bytes:
    """A claim as it stands in the log."""
    datum = {"queue_manager": name, "partition": partition, "lanes": lanes}
    return encode_record(CLAIM, datum)


def test_queue_manager_is_claimed_once_and_found_again(broker, topics):
    """The first claim takes the lowest partition; a second call finds it unchanged."""
    assert list_queue_managers(broker.bootstrap, topics) == []
    with pytest.raises(QueueManagerNotFoundError, match="known: none"):
        find_queue_manager(broker.bootstrap, topics, "QM1")
    first = claim_queue_manager(broker.bootstrap, topics, "QM1", lanes=3)
    assert first == Claim("QM1", 0, 3)
    assert claim_queue_manager(broker.bootstrap, topics, "QM1", lanes=9) == first
    assert find_queue_manager(broker.bootstrap, topics, "QM1") == first
    assert claim_queue_manager(broker.bootstrap, topics, "QM2", lanes=3) == Claim("QM2", 1, 3)
    assert [one.queue_manager for one in list_queue_managers(broker.bootstrap, topics)] == [
        "QM1",
        "QM2",
    ]


def test_all_partitions_taken_is_told(broker, topics):
    """No partition left: the error names the queue manager, the number and the way out."""
    write(broker, topics, claim("QM1", 0), claim("QM2", 1))
    with pytest.raises(RegistryError, match=r"queue manager QM3: all 2 are taken.*topic prefix"):
        claim_queue_manager(broker.bootstrap, topics, "QM3")
    assert len(list_queue_managers(broker.bootstrap, topics)) == 2


def test_two_writers_who_claim_at_once_agree(broker, topics):
    """Both use what the log says first: each name has one partition, each partition one name."""
    with ThreadPoolExecutor(4) as pool:
        names = ["QM1", "QM2", "QM1", "QM2"]
        found = list(
            pool.map(lambda name: claim_queue_manager(broker.bootstrap, topics, name), names)
        )
    assert found[0] == found[2]
    assert found[1] == found[3]
    assert {one.partition for one in found} == {0, 1}
    assert set(found) == set(list_queue_managers(broker.bootstrap, topics))


def test_earlier_claim_to_a_partition_wins(broker, topics):
    """A claim counts only if neither its name nor its partition is taken."""
    write(broker, topics, claim("QM1", 1), claim("QM2", 1), claim("QM1", 0), claim("QM2", 0))
    assert list_queue_managers(broker.bootstrap, topics) == [
        Claim("QM2", 0, 3),
        Claim("QM1", 1, 3),
    ]


def test_lost_race_takes_the_next_partition(broker, topics):
    """Whoever finds the lowest partition taken goes on with the next."""
    write(broker, topics, claim("QM1", 0))
    assert claim_queue_manager(broker.bootstrap, topics, "QM2").partition == 1


def test_a_partition_with_entries_of_another_is_not_claimed(broker, topics):
    """Where the registry was lost, a queue manager gets its own entries again, never others'."""
    write_to_log(broker, topics, 0, b"PAY", encode_operation(Tick(worker="w")))
    assert queue_managers_on_log(broker.bootstrap, topics) == {0: "PAY"}
    assert claim_queue_manager(broker.bootstrap, topics, "QM1", lanes=3) == Claim("QM1", 1, 3)
    with pytest.raises(RegistryError, match="no partition is left for queue manager QM2"):
        claim_queue_manager(broker.bootstrap, topics, "QM2", lanes=3)
    assert claim_queue_manager(broker.bootstrap, topics, "PAY", lanes=3) == Claim("PAY", 0, 3)


def test_a_queue_manager_whose_entries_are_there_gets_their_partition(broker, topics):
    """Also if a lower one is free."""
    write_to_log(broker, topics, 1, b"PAY", encode_operation(Tick(worker="w")))
    assert claim_queue_manager(broker.bootstrap, topics, "PAY", lanes=3) == Claim("PAY", 1, 3)


def test_garbage_takes_no_partition_from_those_to_come(broker, topics):
    """Only an operation under a name says whose a log is."""
    entry = encode_operation(Tick(worker="w"))
    write_to_log(broker, topics, 0, b"PAY", b"garbage", None)
    write_to_log(broker, topics, 0, b"no name", entry)
    write_to_log(broker, topics, 0, b"\xff", entry)
    write_to_log(broker, topics, 0, None, entry)
    assert queue_managers_on_log(broker.bootstrap, topics) == {}
    assert claim_queue_manager(broker.bootstrap, topics, "QM1", lanes=3) == Claim("QM1", 0, 3)


def test_records_that_are_no_claims_count_for_nothing(broker, topics):
    """Garbage, other records, impossible partitions, names or lanes neither count nor stop."""
    write(
        broker,
        topics,
        b"garbage",
        None,
        encode_operation(Tick(worker="w")),
        claim("QM1", 0)[:-1],
        claim("QM1", -1),
        claim("QM1", 2),
        claim("Q M", 0),
        claim("", 0),
        claim("QM1", 0, lanes=0),
        claim("QM1", 1),
    )
    assert list_queue_managers(broker.bootstrap, topics) == [Claim("QM1", 1, 3)]


@pytest.mark.parametrize("name", ["", "a b", "n" * 129, "Grüße"])
def test_name_that_is_none_is_refused(broker, topics, name):
    """A queue manager has a name like a queue's; nothing is written otherwise."""
    with pytest.raises(RegistryError, match="is no queue manager name"):
        claim_queue_manager(broker.bootstrap, topics, name)
    assert list_queue_managers(broker.bootstrap, topics) == []


def test_missing_topics_are_told(broker):
    """Before the first worker there is no registry: the error names the topic."""
    missing = Topics("no-such-prefix")
    for ask in (list_queue_managers, lambda *where: claim_queue_manager(*where, "QM1")):
        with pytest.raises(RegistryError, match=r"no-such-prefix\.registry .*topic prefix"):
            ask(broker.bootstrap, missing)


def test_unreachable_broker_is_named():
    """Nobody at the address: the error says where."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(RegistryError, match=f"the registry at {address} cannot be read"):
            list_queue_managers(address, Topics(), timeout_seconds=1.0)


def test_a_registry_that_does_not_answer_is_no_log_of_another_layout(broker, topics, monkeypatch):
    """Whoever waits for brokers, as services, relays and bridges do, waits for this, too."""

    def silent(*_, **__):
        raise LogUnreadableError("did not answer")

    monkeypatch.setattr(PartitionReader, "records", silent)
    address = f"kafka://{broker.bootstrap}/QM1"
    with pytest.raises(BrokerUnavailableError, match="did not answer: try again") as caught:
        ledgermq.connect(address, topic_prefix=topics.prefix)
    assert caught.value.retryable
