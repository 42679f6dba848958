"""The frame of puts that name sources, each with what its destination had taken before."""

from __future__ import annotations

from typing import Final

# A position at which one more can be added, whatever is told.
LAST: Final = "CAST(taken_before AS DECIMAL(20, 0))"
# `store` is -1 where there was no destination, and none was made.
PUT_PARTS: Final = """
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
FRAMES: Final = {"put_parts": PUT_PARTS}
