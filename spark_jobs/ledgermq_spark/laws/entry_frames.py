"""Frames of entries: each with state time after it, and with the entries beside it."""

from __future__ import annotations

from typing import Final

# No task goes through a whole log in its order: it is looked at in stretches of positions, each of
# which is told the last entry before it and the first one behind it.
POSITIONS_OF_A_STRETCH: Final = 8192
ENTRIES: Final = f"""
WITH
stretched AS (
    SELECT *, position DIV {POSITIONS_OF_A_STRETCH} AS stretch FROM {{clock}}
),
ends AS (
    SELECT queue_manager, stretch, lag(last) OVER by_stretch AS last,
        lead(first) OVER by_stretch AS first
    FROM (
        SELECT queue_manager, stretch, min(position) AS first,
            max_by(struct(position, time_us, reference_us), position) AS last
        FROM stretched GROUP BY queue_manager, stretch
    )
    WINDOW by_stretch AS (PARTITION BY queue_manager ORDER BY stretch)
),
beside AS (
    SELECT *, lag(struct(position, time_us, reference_us)) OVER entry AS one_before,
        lead(position) OVER entry AS one_behind
    FROM stretched WINDOW entry AS (PARTITION BY queue_manager, stretch ORDER BY position)
)
SELECT queue_manager, position, time_us, reference_us, coalesce(one_before, last) AS before_it,
    coalesce(one_behind, first) AS next_position
FROM beside JOIN ends USING (queue_manager, stretch)
"""
# From when the deadlines of each operation count (§6), with state time before and after it.
OPERATION_TIMES: Final = """
SELECT queue_manager, position, time_us, before_it.time_us AS before_us,
    greatest(time_us, IF(trusted, append_time_us, time_us)) AS begins_us
FROM {operations} JOIN {entries} USING (queue_manager, position)
"""
LOG_END: Final = """
SELECT queue_manager, max(position) AS end_at, max(time_us) AS end_us FROM {clock}
GROUP BY queue_manager
"""
FRAMES: Final = {"entries": ENTRIES, "operation_times": OPERATION_TIMES, "log_end": LOG_END}
