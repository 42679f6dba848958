"""When the feed asks for a topic, and what it makes of errors at a damaged record."""

import asyncio
import time
from collections import deque
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException
from faust.types import TP

from ledgermq.errors import AccessDeniedError
from ledgermq.processor.faust_shell import feed as module
from ledgermq.processor.faust_shell.feed import FeedError, RecordFeed

HERE = TP("operations", 0)
WANTED, ELSEWHERE = 7, 7017508956618776881


class Partition:
    """A consumer of one partition, which brings the errors that the test gives it."""

    def __init__(self):
        self.errors = deque()
        self.read_from = []
        self.asked_for = []

    def list_topics(self, topic, timeout):
        """Notes what is asked for before the partition is read first."""
        assert not self.read_from
        self.asked_for.append(topic)
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    def incremental_assign(self, places):
        """Notes from where it reads."""
        self.read_from += [one.offset for one in places]

    def incremental_unassign(self, places):
        """Does nothing."""

    def poll(self, seconds):
        """The next error, once the partition is read."""
        if not self.errors or not self.read_from:
            time.sleep(min(seconds, 0.001))
            return None
        code, offset = self.errors.popleft()
        return SimpleNamespace(
            error=lambda: KafkaError(code, "so it is"),
            topic=lambda: HERE.topic,
            partition=lambda: HERE.partition,
            offset=lambda: offset,
        )

    def consume(self, _count, _seconds):
        """Nothing more."""
        return []

    def close(self):
        """Does nothing."""


@pytest.fixture
def run(monkeypatch):
    """Reads the partition, in which these errors come; what ended that, and the partition."""
    partition = Partition()
    monkeypatch.setattr(module, "Consumer", lambda *_, **__: partition)
    monkeypatch.setattr(module, "DAMAGE_PAUSE_SECONDS", 0.0)

    async def course(errors):
        arrived = asyncio.Event()
        feed = RecordFeed("localhost:1", arrived.set)
        partition.errors.extend(errors)
        feed.read_from(HERE, WANTED)
        try:
            await asyncio.wait_for(arrived.wait(), 20)
            feed.check()
        finally:
            await feed.stop()

    return lambda *errors: asyncio.run(course(errors)), partition


def test_a_place_out_of_a_damaged_record_is_not_a_log_that_was_cut(run, caplog):
    """The record is read again; a log that does not have it any more is told as that."""
    course, partition = run
    damaged = (KafkaError._BAD_MSG, WANTED)
    stale, cut = ((KafkaError._AUTO_OFFSET_RESET, one) for one in (ELSEWHERE, WANTED))
    with pytest.raises(FeedError, match="operations-0 does not have the record"):
        course(damaged, stale, damaged, stale, cut)
    assert not partition.errors
    assert set(partition.read_from) == {WANTED}
    assert [one.levelname for one in caplog.records] == ["WARNING"], "it is said once"


def test_a_right_that_is_taken_away_is_told_at_a_damaged_record_too(run):
    """As anywhere else."""
    course, _ = run
    with pytest.raises(AccessDeniedError, match="operations"):
        course((KafkaError._BAD_MSG, WANTED), (KafkaError.TOPIC_AUTHORIZATION_FAILED, -1001))


def test_a_topic_is_asked_for_once_before_it_is_read(run):
    """Else librdkafka begins when it next looks after its topics, once a second; no answer, too."""
    course, partition = run
    with pytest.raises(AccessDeniedError):
        course((KafkaError._BAD_MSG, WANTED), (KafkaError.TOPIC_AUTHORIZATION_FAILED, -1001))
    assert partition.read_from == [WANTED, WANTED]
    assert partition.asked_for == [HERE.topic]


def test_a_record_that_is_missing_is_told_of_its_partition_and_ends_no_other_reading(monkeypatch):
    """Not any more once the partition is read from elsewhere: that is about what was before."""
    partition = Partition()
    monkeypatch.setattr(module, "Consumer", lambda *_, **__: partition)
    told = []

    async def course():
        found = asyncio.Event()

        def missing(tp, error):
            told.append((tp, str(error)))
            found.set()

        feed = RecordFeed("localhost:1", found.set, missing=missing)
        feed._fail(FeedError("of before"), HERE, 0)
        partition.errors.append((KafkaError._AUTO_OFFSET_RESET, WANTED))
        feed.read_from(HERE, WANTED)
        try:
            await asyncio.wait_for(found.wait(), 20)
            feed.check()
        finally:
            await feed.stop()

    asyncio.run(course())
    ((tp, text),) = told
    assert tp == HERE
    assert "operations-0 does not have the record" in text
