"""Where the lanes begin and end: what has expired from them, and what may still come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ledgermq_spark.jobs.work import Work
from ledgermq_spark.laws.engines.engine import Frame
from ledgermq_spark.rebuild.checkpoints import Checkpoint

# The lowest position that each lane tells of in its first record.
FIRST_OF_LANES: Final = """
SELECT lane, min_by(position, lane_offset) AS position
FROM (
    SELECT lane, lane_offset, max(position) AS position FROM {rows} GROUP BY lane, lane_offset
)
GROUP BY lane
"""


def answered_until(recorded: Frame, live: Checkpoint | None) -> int | None:
    """Above which position outcomes may still come; None where the live state says that none will.

    That is the highest that any was recorded of, -1 if there is none.
    """
    if live is not None:
        return None
    (row,) = recorded.rows("SELECT max(position) AS highest FROM {rows}")
    return -1 if row["highest"] is None else int(row["highest"])


def lane_floors(
    work: Work, recorded: Frame, lanes_from: Sequence[int] | None = None
) -> dict[int, int]:
    """Lanes that have lost their oldest records, and the position up to which that matters.

    What lies below the offsets that they are read from does not.
    """
    firsts = lanes_from or [0] * len(work.lanes)
    lanes = enumerate(zip(work.lanes, firsts, strict=True))
    expired = [at for at, (lane, first) in lanes if lane.start > first]
    if not expired:
        return {}
    told = {row["lane"]: row["position"] for row in recorded.rows(FIRST_OF_LANES)}
    floors = {lane: told.get(lane, 2**62) for lane in expired}
    return floors | {-1: max(floors.values())}
