"""What bears witness of a log beside the log itself: lanes, checkpoints, backups, noted anchors.

It is read and looked at whatever the log holds, and also where that holds nothing at all.

Nothing stands on lanes or checkpoints, or in an anchor, before its record stands on the log. So a
position at or above the end, whoever tells of it, says that the log was cut by its tail, emptied or
made anew, or that somebody else's record was put there. It says so whatever the log holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from ledgermq_spark.audit.anchors import ARCHIVE, CHECKPOINT, GIVEN, OUTCOMES, SOURCES, Anchor
from ledgermq_spark.audit.findings.evidence import Evidence
from ledgermq_spark.audit.headers import check_outcome_records
from ledgermq_spark.jobs.work import Work
from ledgermq_spark.journal.archive import Archive
from ledgermq_spark.laws.engines.engine import Frame
from ledgermq_spark.log.other_partitions import records_elsewhere
from ledgermq_spark.log.positions import partition_ranges
from ledgermq_spark.pages.page import counted
from ledgermq_spark.rebuild.checkpoints import Checkpoints
from ledgermq_spark.tables.traffic import LISTED_MAX

ANSWERS, LIVE_STATE = "answers", "live state"
WHO = SOURCES | {ANSWERS: "the answer to a question", LIVE_STATE: "the live state"}
ABOVE: Final = f"""
SELECT source, count(*) AS total, min(at) AS lowest, max(at) AS highest
FROM (
    SELECT IF(kind = 'Answer', '{ANSWERS}', '{OUTCOMES}') AS source,
        IF(kind = 'Answer', number, position) AS at
    FROM {{rows}}
)
"""
BY_SOURCE: Final = "GROUP BY source ORDER BY source"


class Seen(NamedTuple):
    """How many positions above the end a source has seen, the lowest and the highest."""

    source: str
    total: int
    lowest: int
    highest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Above:
    """The log ends before position `end`, and records are told of from `lowest` to `highest`."""

    end: int
    seen: tuple[Seen, ...]

    @property
    def lowest(self) -> int:
        """The lowest position above the end that is told of."""
        return min(one.lowest for one in self.seen)

    def evidence(self, gap: Evidence | None = None) -> Evidence:
        """The finding; a missing operation that alignment found up there names its messages."""
        first = min(self.seen, key=lambda one: one.lowest)
        highest = max(one.highest for one in self.seen)
        counts = ", ".join(f"{one.total:,} {one.source}" for one in self.seen)
        what = "the log was cut at its end" if self.end else "the log holds nothing, but did"
        also = "" if gap is None or not gap.message_id else f". Gone with it: {gap.summary}"
        return Evidence(
            kind="altered operations",
            source="chain",
            field="chain",
            position=self.end,
            queue="" if gap is None else gap.queue,
            message_id="" if gap is None else gap.message_id,
            summary=f"{what}: {WHO[first.source]} at position {first.lowest} tells of records that "
            f"are not there ({counts} above its end){also}",
            expected=f"records up to position {highest}",
            found=f"the last one at position {self.end - 1}" if self.end else "no record",
        )


def recorded_above(
    recorded: Frame,
    end: int,
    anchors: Sequence[Anchor],
    live_position: int | None = None,
) -> Above | None:
    """What lanes, anchors and the worker's answer to the audit tell above the end of the log.

    Args:
        recorded: The records of the lanes, as read, with answers.
        end: The position after the last record of the log.
        anchors: Those of checkpoints and archives, and those that were given.
        live_position: The position of the live state that a worker told.
    """
    seen = [Seen(**row) for row in recorded.rows(f"{ABOVE} WHERE at >= {end} {BY_SOURCE}")]
    for source in (GIVEN, CHECKPOINT, ARCHIVE):
        places = [one.position for one in anchors if one.source == source and one.position >= end]
        if places:
            seen.append(Seen(source, len(places), min(places), max(places)))
    if live_position is not None and live_position >= end:
        seen.append(Seen(LIVE_STATE, 1, live_position, live_position))
    return Above(end=end, seen=tuple(seen)) if seen else None


def archive_anchors(directory: Path | None, queue_manager: str) -> list[Anchor]:
    """The digest chains that backups of the journal noted, each of the log below its `through`.

    Raises:
        JournalArchiveError: A manifest cannot be read.
    """
    if directory is None:
        return []
    return [
        Anchor(one.through - 1, bytes.fromhex(one.manifest["chain"]), ARCHIVE)
        for one in Archive(directory).backups(queue_manager)
        if one.through > 0
    ]


# Records of the lanes that are neither chunk nor answer.
UNREADABLE: Final = f"""
SELECT lane_partition, lane_offset, detail, count(*) OVER () AS in_all
FROM {{rows}} WHERE kind = 'Unreadable'
ORDER BY lane_partition, lane_offset LIMIT {LISTED_MAX}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """What was brought to the audit: anchors, and the position that a worker told of."""

    anchors: Sequence[Anchor] = ()
    live_position: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Witnesses:
    """What they tell.

    `outcomes` are the rows of the lanes that hold outcomes; `anchors` all that lie below the end of
    the log, `above` what is told of from there on. `findings` concern the lanes and the registry,
    `of_headers` the headers on the lanes.
    """

    outcomes: Frame
    anchors: list[Anchor]
    above: Above | None
    findings: list[Evidence] = field(default_factory=list)
    of_headers: list[Evidence] = field(default_factory=list)


def hear(work: Work, lanes: Frame, checkpoints: Checkpoints, noted: Noted) -> Witnesses:
    """Looks at the lanes as they were read, at checkpoints and at what was noted elsewhere."""
    end = now = work.log.end
    if max(checkpoints.manifests, default=-1) >= end:
        # Checkpoints were read after the end was pinned: what they tell of may have come since.
        now = partition_ranges(work.bootstrap, work.log.topic, [work.log.partition])[0].end
    anchors = [
        Anchor(position, manifest["chain"], CHECKPOINT)
        for position, manifest in checkpoints.manifests.items()
        if position < end or position >= now
    ]
    anchors.extend(noted.anchors)
    return Witnesses(
        outcomes=lanes.where("position >= 0"),
        anchors=[one for one in anchors if one.position < end],
        above=recorded_above(lanes, end, anchors, noted.live_position),
        findings=[
            *_unreadable_chunks(lanes),
            *records_elsewhere(work.bootstrap, work.topics, work.claim),
        ],
        of_headers=check_outcome_records(lanes),
    )


def _unreadable_chunks(recorded: Frame) -> list[Evidence]:
    """Records of the lanes that are neither chunk nor answer; the last says how many others are."""
    rows = recorded.rows(UNREADABLE)
    more = rows[-1]["in_all"] - len(rows) if rows else 0
    others = f", nor can {counted(more, 'more records')}" if more else ""
    return [
        Evidence(
            kind="altered outcome",
            source="outcomes",
            summary=f"record {row['lane_offset']} of outcomes partition {row['lane_partition']} "
            f"cannot be read{others if row is rows[-1] else ''}",
            found=row["detail"] or "",
        )
        for row in rows
    ]
