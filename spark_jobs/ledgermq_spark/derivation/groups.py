"""The table `groups`: what was ever put of each group, what is missing of it, how long it took.

Worked out from the numbered messages, without the fold. An item counts towards its group for ever;
one that, when it was numbered, clashed with what had not left the queue by then counts as clashing
only (PROTOCOL.md §13).
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from ledgermq_spark.derivation.items import Group, Item
from ledgermq_spark.log.rows import FLAG, LONG, TEXT, arrow_batch, spark_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


# `missing` and `missing_segments` are ranges as text: "2, 5-7" and "3 from 100 to 200", the latter
# without an end where the last segment is missing.
GROUP_COLUMNS = (
    ("queue", TEXT),
    ("queue_created", LONG),
    ("group_id", TEXT),
    ("in_group", FLAG),
    ("messages", LONG),
    ("items", LONG),
    ("last_group_sequence", LONG),
    ("complete", FLAG),
    ("missing", TEXT),
    ("missing_segments", TEXT),
    ("clashing", LONG),
    ("first_sequence", LONG),
    ("last_sequence", LONG),
    ("first_enqueued_at", LONG),
    ("completed_at", LONG),
    ("time_to_completion_us", LONG),
    ("resident", LONG),
    ("consumed", LONG),
    ("first_resident", LONG),
)
KEYS = ("queue", "queue_created", "group_id")
READ = ("sequence", "priority", "header", "numbered_position", "enqueued_at", "fate")
STUCK_MAX = 500


def groups_table(messages: DataFrame) -> DataFrame:
    """One row per queue and group id that ever had a numbered message there."""
    grouped = (
        messages.where("sequence IS NOT NULL AND queue NOT LIKE 'topic:%'")
        .withColumn("group_id", f.get_json_object("header", "$.g.i"))
        .where("group_id IS NOT NULL")
        .select(*KEYS, *READ, "fate_position")
    )
    partitions = int(messages.sparkSession.conf.get("spark.sql.shuffle.partitions") or "2")
    ordered = grouped.repartition(partitions, *KEYS).sortWithinPartitions(*KEYS, "sequence")
    return ordered.mapInArrow(_scan, spark_schema(GROUP_COLUMNS))


def _scan(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    group: _History | None = None
    for batch in batches:
        rows: list[tuple[Any, ...]] = []
        for *key, sequence, priority, header, numbered, at, fate, gone in zip(
            *(column.to_pylist() for column in batch.columns), strict=True
        ):
            if group is None or group.key != key:
                if group is not None:
                    rows.append(group.row())
                group = _History(key)
            item = Item(place=(-priority, sequence), header=json.loads(header))
            group.take(item, numbered, at, fate, gone)
        yield arrow_batch(GROUP_COLUMNS, rows)
    yield arrow_batch(GROUP_COLUMNS, [] if group is None else [group.row()])


class _History:
    """A group while its items are gone through by sequence number."""

    def __init__(self, key: list[Any]) -> None:
        self.key = key
        # All that ever was a member, and what of that had not left the queue.
        self._ever = Group()
        self._here = Group()
        self._leaving: list[tuple[int, int, Item]] = []
        self._items = self._resident = self._consumed = self._clashing = 0
        self._first: tuple[int, int] | None = None
        self._last_sequence = 0
        self._first_resident: int | None = None
        self._completed: int | None = None

    def take(self, item: Item, numbered: int, at: int, fate: str, gone: int | None) -> None:
        while self._leaving and self._leaving[0][0] < numbered:
            self._here.remove(heapq.heappop(self._leaving)[2])
        if self._first is None:
            self._first = (item.place[1], at)
        self._items += 1
        self._last_sequence = item.place[1]
        self._consumed += fate == "consumed"
        if fate == "resident":
            self._resident += 1
            if self._first_resident is None:
                self._first_resident = item.place[1]
        present = Item(place=item.place, header=item.header)
        self._clashing += self._here.clashes(present)
        self._here.add(present)
        if gone is not None:
            heapq.heappush(self._leaving, (gone, item.place[1], present))
        # What was consumed and is put again under its number adds nothing to what there ever was.
        if not self._ever.clashes(item):
            self._ever.add(item)
        if self._completed is None and self._ever.complete:
            self._completed = at

    def row(self) -> tuple[Any, ...]:
        """The row of the table."""
        ever = self._ever
        assert self._first is not None, "a group has an item"
        missing, segments = _missing(ever)
        first, completed = self._first, self._completed
        members = [one for one in ever.items() if one.member]
        return (
            *self.key,
            "g" in members[0].flags,
            len(ever.messages),
            self._items,
            ever.last,
            completed is not None,
            missing,
            segments,
            self._clashing,
            first[0],
            self._last_sequence,
            first[1],
            completed,
            None if completed is None else completed - first[1],
            self._resident,
            self._consumed,
            self._first_resident,
        )


def _missing(group: Group) -> tuple[str, str]:
    """Ranges of group sequences that are not there, and of data of segments."""
    ranges, segments, expected = [], [], 1
    for number, message in sorted(group.messages.items()):
        if number > expected:
            until = "" if number - 1 == expected else f"-{number - 1}"
            ranges.append(f"{expected}{until}")
        expected = number + 1
        if message.whole:
            continue
        begin = 0
        for offset in message.offsets:
            if offset > begin:
                segments.append(f"{number} from {begin} to {offset}")
            begin = message.items[offset].end
        if message.end is None:
            segments.append(f"{number} from {begin}")
    return ", ".join(ranges), ", ".join(segments)


def stuck_groups(groups: DataFrame, messages: DataFrame) -> list[dict[str, Any]]:
    """Groups that are not complete and have messages that wait, oldest first.

    `oldest` says that nothing older waits in the queue: it is what the queue begins with.
    """
    open_groups = groups.where("resident > 0 AND NOT complete")
    if open_groups.isEmpty():
        return []
    heads = (
        messages.where("fate = 'resident' AND copies IS NULL")
        .groupBy("queue", "queue_created")
        .agg(f.min("sequence").alias("head"))
    )
    rows = (
        open_groups.join(heads, ["queue", "queue_created"], how="left")
        .withColumn("oldest", f.col("head") == f.col("first_resident"))
        .drop("head")
        .orderBy("first_enqueued_at", *KEYS)
        .limit(STUCK_MAX)
        .collect()
    )
    return [row.asDict() for row in rows]


def stuck_notes(stuck: list[dict[str, Any]]) -> list[str]:
    """What a report says of such groups beside its table of them."""
    if not stuck:
        return []
    oldest = sum(one["oldest"] for one in stuck)
    behind = f", {oldest} of them the oldest in their queues" if oldest else ""
    return [f"{len(stuck)} groups with messages that wait are not complete{behind}"]
