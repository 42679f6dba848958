"""What becomes of a bridge whose records go aside, are deleted or are others than before.

On an embedded queue manager, and without Kafka.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ledgermq.relay import bridge_in
from ledgermq.relay.bridge_in import BridgeIn, RecordsLostError
from ledgermq.relay.running import SourceMovedError
from ledgermq.relay.taking import Taker
from ledgermq.testing import MemoryBroker

# The first is JSON and no text, the last text and no JSON.
VALUES = ["1".encode("utf-16"), b"1", b"no JSON"]


def record(offset, value):
    """A record that has nothing but a value."""
    told = {
        "topic": "t",
        "partition": 0,
        "offset": offset,
        "value": value,
        "key": None,
        "headers": None,
        "timestamp": (0, 0),
        "error": None,
    }
    return SimpleNamespace(**{name: lambda one=value: one for name, value in told.items()})


class Topic:
    """A topic of Kafka with one partition; of its values those below `low` were deleted."""

    def __init__(self):
        self.values = VALUES
        self.low = 0
        self.source = "kafka:t/1/2"
        self.at_once = len(VALUES)
        self.at_end = {}

    def reader(self, *_):
        """Reads it as a TopicReader does."""
        return SimpleNamespace(
            source=self.source,
            source_now=lambda: self.source,
            at_end=self.at_end,
            partitions=lambda: [0],
            ends=lambda _: (self.low, len(self.values)),
            assign=self.assign,
            read=self.read,
            close=lambda: None,
        )

    def assign(self, positions):
        """Goes on there."""
        self.next = positions[0]
        self.at_end.clear()

    def read(self, _):
        """The next ones, `at_once` at most."""
        found = list(enumerate(self.values))[self.next :][: self.at_once]
        self.next += len(found)
        if self.next == len(self.values):
            self.at_end[0] = len(self.values)
        return {0: [record(*one) for one in found]} if found else {}


@pytest.fixture
def topic(monkeypatch):
    """What bridges read."""
    made = Topic()
    monkeypatch.setattr(bridge_in, "TopicReader", made.reader)
    return made


class Killed(BaseException):
    """Nothing is done after it."""


class Installation:
    """A queue manager with the queues `q` and `aside`; no put to `kills` comes to an end."""

    def __init__(self, monkeypatch):
        self.broker = MemoryBroker()
        self.kills = ""
        with self.broker.connect() as connection:
            for queue in ("q", "aside"):
                connection.admin.create_queue(queue)
        put = Taker._put

        def put_or_die(taker, *part):
            if taker.target == self.kills:
                raise Killed
            put(taker, *part)

        monkeypatch.setattr(Taker, "_put", put_or_die)

    def run(self, body="json", **more):
        """Lets a bridge run to the end of the topic."""
        BridgeIn(
            connect=self.broker.connect,
            bootstrap="",
            topic="t",
            target="queue:q",
            body=body,
            bad="queue:aside",
            until_end=True,
            **more,
        ).run()

    def offsets(self, *queues):
        """Which records are on queues."""
        with self.broker.connect() as connection:
            return [
                one.properties["LedgerMQ_KafkaOffset"]
                for queue in queues
                for one in connection.browser(f"queue:{queue}")
            ]


@pytest.fixture
def installation(monkeypatch):
    """A queue manager of the test's own."""
    return Installation(monkeypatch)


@pytest.mark.parametrize(
    ("first", "second"), [("json", "text"), ("text", "json"), ("json", "json")]
)
def test_a_bridge_that_goes_on_with_another_body_leaves_no_record_out(
    topic, installation, first, second
):
    """What went aside of one body says nothing of what is no message of another."""
    installation.kills = "queue:q"
    with pytest.raises(Killed):
        installation.run(first)
    installation.kills = ""
    installation.run(second)
    installation.run(second)
    found = installation.offsets("q", "aside")
    assert set(found) == set(range(len(topic.values)))
    assert first != second or len(found) == len(topic.values)


def test_records_that_went_aside_last_are_not_lost_when_kafka_deletes_them(topic, installation):
    """The target has nothing of them, and `--bad` has all; what comes then is taken."""
    topic.values, topic.at_once = [b"1", b"no JSON", b"nor this"], 1
    installation.run()
    topic.low = 3
    installation.run()
    topic.values = [*topic.values, b"2"]
    installation.run()
    assert installation.offsets("q") == [0, 3]
    assert installation.offsets("aside") == [1, 2]


@pytest.mark.parametrize("values", [[b"no JSON"], [b"1", b"no JSON"]])
def test_what_is_lost_behind_records_that_went_aside_is_told(topic, installation, values):
    """Whether the target has any or not: the first position that is missing is named."""
    topic.values, topic.at_once = values, 1
    installation.run()
    last = len(values) - 1
    topic.values, topic.low = [*values, b"2", b"3", b"4"], last + 3
    with pytest.raises(RecordsLostError, match=f"positions {last + 1} to {last + 2} of part"):
        installation.run()
    told = []
    installation.run(skip_lost=True, tell=told.append)
    assert f"positions {last + 1} to {last + 2} of part" in told[0]
    assert installation.offsets("q")[-1] == last + 3


def test_what_was_lost_and_is_skipped_is_skipped_once(topic, installation):
    """Though nothing follows it that could be taken: a message says it; what is lost then, too."""
    installation.run()
    topic.values, topic.low = [*VALUES, b"2", b"3"], 5
    with pytest.raises(RecordsLostError, match="positions 3 to 4 of partition 0"):
        installation.run()
    told = []
    for skip_lost in (True, True, False):
        installation.run(skip_lost=skip_lost, tell=told.append)
    assert len(told) == 1
    with installation.broker.connect() as connection:
        (noted,) = connection.browser("queue:bridge/lost")
    assert noted.body == told[0]
    topic.values, topic.low = [*topic.values, b"4", b"5"], 6
    with pytest.raises(RecordsLostError, match="positions 5 to 5 of partition 0"):
        installation.run()
    installation.run(skip_lost=True, tell=told.append)
    assert (len(told), installation.offsets("q")) == (2, [0, 1, 6])


def test_a_partition_that_is_shorter_than_what_went_aside_was_lost(topic, installation):
    """Others stand at the positions of what `--bad` has."""
    topic.values, topic.at_once = [b"1", b"no JSON", b"nor this"], 1
    installation.run()
    topic.values = [b"1"]
    with pytest.raises(RecordsLostError, match="ends before position 1") as told:
        installation.run(skip_lost=True)
    assert "up to 2 is never taken: write it to another topic" in str(told.value)


def test_a_record_between_two_that_go_aside_is_lost_if_it_was_not_taken(topic, installation):
    """A bridge takes records in their order: killed before one, it has none behind it aside."""
    topic.values = [b"no JSON", b"1", b"nor this"]
    installation.kills = "queue:q"
    with pytest.raises(Killed):
        installation.run()
    installation.kills = ""
    topic.low = 2
    with pytest.raises(RecordsLostError, match="positions 1 to 1 of part"):
        installation.run()
    installation.run(skip_lost=True)
    assert (installation.offsets("q"), installation.offsets("aside")) == ([], [0, 2])


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("begins", [0, 3])
def test_a_topic_that_was_made_again_ends_the_bridge_that_reads_it(
    topic, installation, monkeypatch, begins, moved
):
    """What is read of it then is not put, wherever it was; the next run takes the new one."""
    if begins:
        installation.run()
    read = topic.read

    def made_again(_):
        topic.source = "kafka:t/9/2"
        topic.read = read
        if moved:
            raise SourceMovedError("it ends before that")
        return read(_)

    topic.read = made_again
    before = installation.offsets("q", "aside")
    with pytest.raises(RecordsLostError, match="deleted and made again"):
        installation.run(tell=lambda _: None)
    assert installation.offsets("q", "aside") == before
    installation.run()
    assert len(installation.offsets("q", "aside")) == begins + 3
