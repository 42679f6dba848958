"""What the tests of relays share: two queue managers of one worker, topics of Kafka, runners."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import ledgermq
from ledgermq.relay.bridge_in import BridgeIn
from ledgermq.wire.topics.reading import PartitionReader
from ledgermq.wire.topics.registry import claim_queue_manager
from support.brokers.forked_command import ForkedCommand
from support.brokers.worker_process import Place, new_place

NAMES = itertools.count()


@dataclass(kw_only=True)
class Ways:
    """An installation with QM1 and QM2, and what relays between them and Kafka need."""

    place: Place
    told: list[str] = field(default_factory=list)

    @property
    def bootstrap(self) -> str:
        """The broker."""
        return self.place.bootstrap

    def connect(self, queue_manager: str = "QM1", **settings: Any) -> ledgermq.Connection:
        """A connection to one of them."""
        given = {"timeout": 30.0, "topic_prefix": self.place.topics.prefix, **settings}
        return ledgermq.connect(f"kafka://{self.bootstrap}/{queue_manager}", **given)

    def name(self, what: str = "q") -> str:
        """A name that nothing else has."""
        return f"{what}-{os.getpid()}-{next(NAMES)}"

    def topic(self, partitions: int = 1, *, name: str = "", **settings: str) -> str:
        """A new topic of Kafka; one of a name as soon as the one before is gone."""
        named = name or self.name("topic")
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        while True:
            made = admin.create_topics([NewTopic(named, partitions, 1, config=settings)])
            try:
                made[named].result()
            except KafkaException:
                assert name, "the name is new"
                time.sleep(0.2)
            else:
                return named

    def produce(self, topic: str, *records: dict[str, Any], **settings: Any) -> None:
        """Writes records to a topic of Kafka."""
        producer = Producer({"bootstrap.servers": self.bootstrap, **settings})
        for record in records:
            producer.produce(topic, **record)
            producer.poll(0)
        assert producer.flush(30) == 0

    def records(self, topic: str) -> list[Any]:
        """All committed records of a topic of Kafka, partition by partition."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": self.name("reader"),
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 10,
            }
        )
        partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        wanted = [TopicPartition(topic, one, OFFSET_BEGINNING) for one in partitions]
        consumer.assign(wanted)
        found: list[Any] = []
        ended: set[int | None] = set()
        while len(ended) < len(wanted):
            record = consumer.poll(30)
            assert record is not None, "the topic was not read to its end"
            if record.error():
                ended.add(record.partition())
            else:
                found.append(record)
        consumer.close()
        return sorted(found, key=lambda one: (one.partition(), one.offset()))

    def ends(self, topic: str) -> list[int]:
        """Where the partitions of a topic of Kafka end, whatever is committed."""
        with PartitionReader(self.bootstrap, 30) as reader:
            count = reader.partition_count(topic)
            return [reader.ends(topic, one)[1] for one in range(count)]

    def bridge(self, topic: str, target: str, **more: Any) -> BridgeIn:
        """A bridge in this process that ends where the topic does."""
        return BridgeIn(
            connect=self.connect,
            bootstrap=self.bootstrap,
            topic=topic,
            target=target,
            until_end=True,
            tell=self.told.append,
            **more,
        )

    def runner(self, *arguments: str, queue_manager: str = "QM1") -> ForkedCommand:
        """A command in a process of its own."""
        where = ("--bootstrap", self.bootstrap, "--queue-manager", queue_manager)
        where += ("--topic-prefix", self.place.topics.prefix)
        said = self.place.directory / self.name("said")
        return ForkedCommand((*arguments, *where), os.environ, said, said)

    def messages(self, queue: str, queue_manager: str = "QM1") -> list[ledgermq.Message]:
        """All messages of a queue in their order; they stay there."""
        with self.connect(queue_manager) as connection:
            return list(connection.browser(f"queue:{queue}"))


def make_ways(broker: Any, directory: Path) -> Ways:
    """Both queue managers on a broker, with a worker."""
    place = new_place(broker.bootstrap, directory, partitions=2)
    claim_queue_manager(place.bootstrap, place.topics, "QM2", lanes=place.lanes)
    place.worker("relay-tests")
    return Ways(place=place)


@pytest.fixture(scope="session")
def ways(broker, tmp_path_factory) -> Iterator[Ways]:
    """Both queue managers, with a worker."""
    found = make_ways(broker, tmp_path_factory.mktemp("relay"))
    yield found
    found.place.close()


@pytest.fixture
def ways_on() -> Iterator[Callable[[Any, Path], Ways]]:
    """Makes the same on a broker of the test's own."""
    made: list[Ways] = []

    def make(broker: Any, directory: Path) -> Ways:
        made.append(make_ways(broker, directory))
        return made[-1]

    yield make
    for one in made:
        one.place.close()
