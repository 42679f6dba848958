"""Law P: what a destination takes of a source, another log, once and without a gap."""

from __future__ import annotations

from typing import Final

from ledgermq_spark.laws.law import Breach, Law

FRAMES: dict[str, str] = {}

# A position at which one more can be added, whatever is told.
LAST: Final = "CAST(taken_before AS DECIMAL(20, 0))"
# `store` is -1 where there was no destination, and none was made.
FRAMES["put_parts"] = """
WITH
asked AS (
    SELECT one.queue_manager, one.position, one.session, coalesce(place.store, -1) AS store,
        source, source_partition, source_first, source_last,
        is_applied AND coalesce(told = 'Enqueued', FALSE) AS is_taken
    FROM {conduct} AS one LEFT JOIN {destinations} AS place
        ON place.queue_manager = one.queue_manager AND place.destination = one.target
        AND made_at <= one.position AND coalesce(one.position < gone_at, TRUE)
    WHERE one.kind = 'Put' AND source IS NOT NULL
),
parts AS (
    SELECT *, max(IF(is_taken, source_last, NULL)) OVER (
        PARTITION BY queue_manager, store, source, source_partition ORDER BY position
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS taken_before
    FROM asked
)
SELECT *, count_if(is_taken AND taken_before IS NULL) OVER (
    PARTITION BY queue_manager, store ORDER BY position
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS sources_before
FROM parts
"""
FOUND: Final = """
SELECT queue_manager, position, store, -1 AS sequence, session, '{summary}' AS summary,
    concat_ws(' ', source, source_partition, {last} + 1) AS expected,
    concat_ws(' ', source, source_partition, source_first) AS found
FROM {put_parts} WHERE is_taken AND source_first {differs} {last} + 1
"""


def _breach(kind: str, summary: str, differs: str) -> Breach:
    query = FOUND.replace("{summary}", summary).replace("{differs}", differs)
    return Breach(kind, query.replace("{last}", LAST))


LAW: Final = Law(
    letter="P",
    sentence="Of a partition of a source a destination takes each position once, and the next one "
    "after the last.",
    breaches=(
        _breach("duplicated", "positions of a source were taken twice", "<"),
        _breach("lost", "positions of a source were left out", ">"),
    ),
)
