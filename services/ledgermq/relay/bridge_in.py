"""From a topic of Kafka to a queue or topic here: each record becomes one message, once.

The queue manager remembers how far the destination has taken each partition, and what was skipped;
nothing else is remembered anywhere, so this may be stopped anywhere, and be run several times at
once.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass, field
from typing import Final

from confluent_kafka import Message as Record

from ledgermq.client.connection import Connection
from ledgermq.client.sending.making import Sending, make_message
from ledgermq.errors import DestinationExistsError, LedgerMQError
from ledgermq.relay.records import BODIES, BodyOf, RecordInvalidError, bad_message_of, message_of
from ledgermq.relay.running import Tell, keep_going
from ledgermq.relay.taking import Item, Pace, Taker
from ledgermq.relay.topic_reader import TopicReader

READ_SECONDS: Final = 0.5
# How often it looks for partitions that were added.
PARTITIONS_SECONDS: Final = 30.0
# Queue of messages that say what was lost and is skipped.
LOST: Final = "bridge/lost"


class RecordsLostError(LedgerMQError):
    """Records that were not taken are on the topic no longer."""

    code = "records-lost"


@dataclass(slots=True, kw_only=True)
class BridgeIn:
    """A topic's way to a destination.

    Attributes:
        connect: Makes a connection to the queue manager.
        bootstrap: The Kafka that has the topic.
        body: What values become: bytes, text, json or avro.
        schema_registry: Address of the registry that has the schemas of avro.
        bad: Where records go that cannot become that; None: they stop it.
        skip_lost: Whether to go on behind records that Kafka deleted before they were taken.
        until_end: Whether to stop where all partitions were read to their ends.
        pace: How far and how fast the target is filled; `bad_pace` the same of `bad`.
        passed: By partition, the last position that was taken when this run was at its end, and the
            last one there: between them are no records, but ends of transactions, and what was
            aborted.
    """

    connect: Callable[[], AbstractContextManager[Connection]]
    bootstrap: str
    topic: str
    target: str
    body: str = "bytes"
    schema_registry: str = ""
    bad: str | None = None
    skip_lost: bool = False
    until_end: bool = False
    timeout_seconds: float = 30.0
    tell: Tell = print
    stopping: threading.Event = field(default_factory=threading.Event)
    pace: Pace = field(default_factory=Pace, init=False)
    bad_pace: Pace = field(default_factory=Pace, init=False)
    passed: dict[int, tuple[int | None, int]] = field(default_factory=dict, init=False)
    _source: str = field(default="", init=False)

    @property
    def put(self) -> int:
        """How many messages were put to the target."""
        return self.pace.done

    @property
    def put_bad(self) -> int:
        """How many records were put to `bad`."""
        return self.bad_pace.done

    def run(self) -> None:
        """Goes on until it is stopped, or at the end if it is to stop there.

        Raises:
            RecordInvalidError: A record cannot become a message, and `bad` is None.
            RecordsLostError: Records were deleted before they were taken, or the topic was deleted
                and made again.
            LedgerMQError: The destination refuses a message for good.
        """
        keep_going(self._run, lambda: self.put + self.put_bad, self.stopping, self.tell)

    def _run(self) -> None:
        with (
            self.connect() as connection,
            closing(TopicReader(self.bootstrap, self.topic, self.timeout_seconds)) as reader,
        ):
            self.check_source(reader.source)
            _Crossing(self, connection, reader).run()

    def check_source(self, source: str) -> None:
        """RecordsLostError if a source is another than the one that this run began with."""
        self._source = self._source or source
        if source != self._source:
            raise RecordsLostError(
                f"topic {self.topic} of Kafka was deleted and made again while it was read: what "
                f"{self.target} had not taken of the former one is lost; to take the new one from "
                "its beginning, run it again"
            )


class _Crossing:
    """One connection's part of the way."""

    def __init__(self, bridge: BridgeIn, connection: Connection, reader: TopicReader) -> None:
        self._bridge = bridge
        self._connection = connection
        self._reader = reader
        self._taker = Taker(connection, bridge.target, reader.source, self._name_of, bridge.pace)
        self._bad = None
        if bridge.bad is not None:
            # For each body: killed before the target took the same part, it may be run again with
            # another one, by which other records of that part are bad.
            source = f"{self._source('bad')}/{bridge.body}"
            self._bad = Taker(connection, bridge.bad, source, self._name_of, bridge.bad_pace)
        self._partitions: list[int] = []
        self._body_of = _body_of(bridge)

    def _name_of(self, partition: int, item: Item) -> str:
        return f"record {self._bridge.topic}-{partition}@{item.position}"

    def _source(self, what: str) -> str:
        """Another source than the topic: who takes it may take that too, or the like of others.

        A digest, as the name of a source has a limit that topic and target together may exceed.
        """
        target = hashlib.sha256(self._bridge.target.encode()).hexdigest()[:32]
        return f"{self._reader.source}/{what}/{target}"

    def run(self) -> None:
        looks_at = 0.0
        while not self._bridge.stopping.is_set():
            if time.monotonic() >= looks_at:
                looks_at = time.monotonic() + PARTITIONS_SECONDS
                self._look()
            found = self._reader.read(READ_SECONDS)
            at_end = self._reader.at_end
            is_last = self._bridge.until_end and at_end.keys() >= set(self._partitions)
            if found or is_last:
                # After the read: what was read is of the topic that is there now.
                self._bridge.check_source(self._reader.source_now())
            for partition, records in found.items():
                self._take(partition, records)
            for partition, position in at_end.items():
                self._bridge.passed[partition] = (self._taken(partition), position - 1)
            if is_last:
                return

    def _look(self) -> None:
        """Begins to read all partitions, if there are others than before."""
        self._bridge.check_source(self._reader.source_now())
        found = self._reader.partitions()
        if found != self._partitions:
            self._reader.assign({one: self._start(one) for one in found})
            self._partitions = found

    def _start(self, partition: int) -> int:
        """The first position to read; RecordsLostError if it is there no longer."""
        low, high = self._reader.ends(partition)
        by_target, taken = self._taker.taken.get(partition), self._taken(partition)
        if taken is None:
            return low
        taken_then, passed = self._bridge.passed.get(partition, (None, -1))
        # The queue manager may have been restored to an earlier moment.
        if taken == taken_then:
            taken = max(taken, passed)
        where = f"partition {partition} of {self._bridge.topic}"
        if taken + 1 > high:
            raise RecordsLostError(
                f"{where} ends before position {high}, and all up to {taken} was taken: records "
                "were lost on Kafka, and others stand at their positions. What comes there up to "
                f"{taken} is never taken: write it to another topic and bridge that, or make this "
                "one anew, which is another source then"
            )
        if taken + 1 < low:
            self._skip(partition, taken + 1, low, where)
        # A target that was made anew takes again what `bad` has still.
        return low if by_target is None else max(low, by_target + 1)

    def _taken(self, partition: int) -> int | None:
        """What either has taken last, all before it is taken: they are filled in turn."""
        takers = [self._taker] if self._bad is None else [self._taker, self._bad]
        return max((one.taken[partition] for one in takers if partition in one.taken), default=None)

    def _skip(self, partition: int, first: int, low: int, where: str) -> None:
        """Notes what was lost, so that it is skipped once; RecordsLostError: it is not to be."""
        notes = Taker(self._connection, "queue:" + LOST, self._source("lost"), self._name_of)
        first = max(first, notes.taken.get(partition, -1) + 1)
        if first >= low:
            return
        text = f"what was at positions {first} to {low - 1} of {where} was deleted before it was "
        text += (
            f"taken to {self._bridge.target}, if records were: ends of transactions and what was "
        )
        text += "aborted have positions, too"
        if not self._bridge.skip_lost:
            raise RecordsLostError(f"{text}. To go on behind them, run it with --skip-lost")
        text += ". They are skipped"
        with suppress(DestinationExistsError):
            self._connection.admin.create_queue(LOST, description="records that bridges skipped")
        notes.take(partition, [Item(low - 1, make_message(notes.target, text, Sending()))])
        self._bridge.tell(text)

    def _take(self, partition: int, records: list[Record]) -> None:
        """Takes records in their order, so that all before the last one that was taken is, too."""
        taker, items = self._taker, list[Item]()
        for record in records:
            try:
                goal, item = self._item(record)
            except RecordInvalidError:
                # What came before it is taken first: it goes on from there.
                taker.take(partition, items)
                raise
            if goal is not taker:
                taker.take(partition, items)
                taker, items = goal, []
            items.append(item)
        taker.take(partition, items)

    def _item(self, record: Record) -> tuple[Taker, Item]:
        """Who takes a record, and as what; RecordInvalidError: nobody does."""
        offset = record.offset()
        assert offset is not None, "a record has a position"
        try:
            message = message_of(record, self._body_of, self._taker.target)
        except RecordInvalidError as error:
            if self._bad is None:
                error.add_note("run it with --bad, and such records go to a queue for them")
                raise
            told = bad_message_of(record, str(error), self._bad.target)
            return self._bad, Item(offset, told)
        return self._taker, Item(offset, message)


def _body_of(bridge: BridgeIn) -> BodyOf:
    if bridge.body != "avro":
        return BODIES[bridge.body]
    # Here, as it takes packages that nothing else of a bridge needs.
    from ledgermq.relay.avro_bodies import AvroBodies

    return AvroBodies(bridge.schema_registry)
