"""Holes in the operations log, and what an operator declared skipped (PROTOCOL.md §8).

A declaration stands above what it is about, so whoever comes to a hole, or to an entry that brings
a version, reads on to the end of the log before it goes on: what nobody declared stops every fold.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from confluent_kafka import Message

from ledgermq.protocol.administration import PositionsSkipped
from ledgermq.wire.framing.codec import decode_operation
from ledgermq.wire.framing.confluent import SINGLE_OBJECT, SINGLE_OBJECT_BYTES
from ledgermq.wire.framing.schemas import by_name
from ledgermq.wire.topics.ledger import Ledger
from ledgermq.wire.topics.log_topics import TOPIC_PREFIX_DEFAULT
from ledgermq.wire.topics.reading import PartitionReader

LOG_APPEND_TIME: Final = 2


class Hole(NamedTuple):
    """Positions without a record, first to last."""

    first: int
    last: int


def skip_command(ledger: Ledger, hole: Hole) -> str:
    """The command by which an operator declares positions skipped."""
    through = "" if hole.last == hole.first else f" --through {hole.last}"
    name, prefix = ledger.claim.queue_manager, ledger.topics.prefix
    where = "" if prefix == TOPIC_PREFIX_DEFAULT else f" --topic-prefix {prefix}"
    return (
        f"ledgermq log skip {hole.first}{through} --queue-manager {name}{where} --reason TEXT --yes"
    )


class LookAhead:
    """The log from a position on to its end: its holes, and what was declared skipped.

    Used by one thread at a time. A further look goes on where the last one ended.
    """

    def __init__(
        self, bootstrap: str, topic: str, partition: int, timeout_seconds: float = 30.0
    ) -> None:
        self._bootstrap = bootstrap
        self._place = (topic, partition)
        self._timeout_seconds = timeout_seconds
        self._start = self._end = -1
        self._holes: list[Hole] = []
        # Behind the last record: no entry is above it, so nobody can have declared it skipped.
        self._tail: Hole | None = None
        self.declared: list[PositionsSkipped] = []
        self._frame = SINGLE_OBJECT + by_name("ledgermq.operation.PositionsSkipped").fingerprint

    def look(self, position: int) -> None:
        """Reads from a position on, or from where the last look ended, to the end of the log.

        Raises:
            LogUnreadableError: Kafka did not answer, or the log begins above the position.
        """
        if not self._start <= position <= self._end:
            self._start = self._end = position
            self._holes, self.declared = [], []
        topic, partition = self._place
        with PartitionReader(self._bootstrap, self._timeout_seconds) as reader:
            _, end = reader.ends(topic, partition)
            for record in reader.records(topic, partition, self._end, end):
                self._take(record)
        self._tail = Hole(self._end, end - 1) if self._end < end else None

    def _take(self, record: Message) -> None:
        offset, value = record.offset() or 0, record.value()
        if offset > self._end:
            self._holes.append(Hole(self._end, offset - 1))
        self._end = offset + 1
        if value is None or value[:SINGLE_OBJECT_BYTES] != self._frame:
            return
        operation = decode_operation(value)
        stamped = record.timestamp()[0] == LOG_APPEND_TIME
        if stamped and isinstance(operation, PositionsSkipped) and operation.counts_at(offset):
            self.declared.append(operation)

    def hole_at(self, position: int) -> Hole | None:
        """What is missing from a position on, if the record there is, as the last look saw it."""
        holes = self._holes if self._tail is None else [*self._holes, self._tail]
        for first, last in holes:
            if first <= position <= last:
                return Hole(position, last)
        return None

    def skipped_through(self, hole: Hole) -> int:
        """The last position up to which all of a hole was declared skipped."""
        last = hole.first - 1
        while last < hole.last:
            ends = [one.last for one in self.declared if one.first <= last + 1 <= one.last]
            if not ends:
                break
            last = min(max(ends), hole.last)
        return last

    def skipped(self, position: int) -> bool:
        return any(one.first <= position <= one.last for one in self.declared)
