"""From a topic of Kafka to a queue or topic here: each record becomes one message, once.

The queue manager remembers how far the destination has taken each partition; nothing else is
remembered anywhere, so this may be stopped anywhere, and be run several times at once.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from typing import Final

from confluent_kafka import Message as Record

from ledgermq.client.connection import Connection
from ledgermq.errors import LedgerMQError
from ledgermq.relay.records import BODIES, BodyOf, RecordInvalidError, bad_message_of, message_of
from ledgermq.relay.running import Tell, keep_going
from ledgermq.relay.taking import Item, Pace, Taker
from ledgermq.relay.topic_reader import TopicReader

READ_SECONDS: Final = 0.5
# How often it looks for partitions that were added.
PARTITIONS_SECONDS: Final = 30.0


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
    _source: str = ""
    _pace: Pace = field(default_factory=Pace)
    _bad_pace: Pace = field(default_factory=Pace)

    @property
    def put(self) -> int:
        """How many messages were put to the target."""
        return self._pace.done

    @property
    def put_bad(self) -> int:
        """How many records were put to `bad`."""
        return self._bad_pace.done

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
            named = self._name_of
            taker = Taker(connection, self.target, reader.source, named, self._pace)
            bad = None
            if self.bad is not None:
                source = self._bad_source(reader.source)
                bad = Taker(connection, self.bad, source, named, self._bad_pace)
            _Crossing(self, reader, taker, bad).run()

    def _name_of(self, partition: int, item: Item) -> str:
        return f"record {self.topic}-{partition}@{item.position}"

    def check_source(self, source: str) -> None:
        """RecordsLostError if a source is another than the one that this run began with."""
        self._source = self._source or source
        if source != self._source:
            raise RecordsLostError(
                f"topic {self.topic} of Kafka was deleted and made again while it was read: what "
                f"{self.target} had not taken of the former one is lost; to take the new one from "
                "its beginning, run it again"
            )

    def _bad_source(self, source: str) -> str:
        """Another source than the topic: `bad` may take that too, or what is bad of other targets.

        And another for each body: killed before the target took the same part, it may be run again
        with another one, by which other records of that part are bad.
        A digest, as the name of a source has a limit that topic and target together may exceed.
        """
        target = hashlib.sha256(self.target.encode()).hexdigest()[:32]
        return f"{source}/bad/{target}/{self.body}"


class _Crossing:
    """One connection's part of the way."""

    def __init__(
        self, bridge: BridgeIn, reader: TopicReader, taker: Taker, bad: Taker | None
    ) -> None:
        self._bridge = bridge
        self._reader = reader
        self._taker = taker
        self._bad = bad
        self._partitions: list[int] = []
        self._body_of = _body_of(bridge)

    def run(self) -> None:
        looked_at = 0.0
        while not self._bridge.stopping.is_set():
            if not looked_at or time.monotonic() - looked_at > PARTITIONS_SECONDS:
                looked_at = time.monotonic()
                self._look()
            found = self._reader.read(READ_SECONDS)
            is_last = self._bridge.until_end and self._reader.at_end.issuperset(self._partitions)
            if found or is_last:
                # After the read: what was read is of the topic that is there now.
                self._bridge.check_source(self._reader.source_now())
            for partition, records in found.items():
                self._take(partition, records)
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
        by_target = self._taker.taken.get(partition)
        aside = None if self._bad is None else self._bad.taken.get(partition)
        # What either has taken last, all before it is taken: they are filled in turn.
        taken = max((one for one in (by_target, aside) if one is not None), default=None)
        if taken is None:
            return low
        where = f"partition {partition} of {self._bridge.topic}"
        if taken + 1 > high:
            raise RecordsLostError(
                f"{where} ends before position {high}, and all up to {taken} was taken: records "
                "were lost on Kafka, and others stand at their positions"
            )
        if taken + 1 < low:
            lost = f"positions {taken + 1} to {low - 1} of {where}"
            if not self._bridge.skip_lost:
                raise RecordsLostError(
                    f"{lost} were deleted before they were taken; to go on behind them, run it "
                    "with --skip-lost"
                )
            self._bridge.tell(f"{lost} were deleted before they were taken, and are skipped")
        # A target that was made anew takes again what `bad` has still.
        return low if by_target is None else max(low, by_target + 1)

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
