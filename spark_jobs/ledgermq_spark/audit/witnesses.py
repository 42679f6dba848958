"""What bears witness of a log beside the log itself: lanes, checkpoints, backups, noted anchors.

It is read and looked at whatever the log holds, and also where that holds nothing at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from ledgermq_spark.audit.above import Above, recorded_above
from ledgermq_spark.audit.anchors import CHECKPOINT, Anchor
from ledgermq_spark.audit.findings.evidence import Evidence
from ledgermq_spark.audit.headers import check_outcome_records
from ledgermq_spark.jobs.work import Work
from ledgermq_spark.laws.engines.engine import Frame
from ledgermq_spark.log.other_partitions import records_elsewhere
from ledgermq_spark.log.positions import partition_ranges
from ledgermq_spark.rebuild.checkpoints import Checkpoints
from ledgermq_spark.tables.traffic import LISTED_MAX

# Records of the lanes that are neither chunk nor answer.
UNREADABLE: Final = f"""
SELECT lane_partition, lane_offset, detail FROM {{rows}} WHERE kind = 'Unreadable'
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
    """Records of the lanes that are neither chunk nor answer."""
    return [
        Evidence(
            kind="altered outcome",
            source="outcomes",
            summary=f"record {row['lane_offset']} of outcomes partition {row['lane_partition']} "
            "cannot be read",
            found=row["detail"] or "",
        )
        for row in recorded.rows(UNREADABLE)
    ]
