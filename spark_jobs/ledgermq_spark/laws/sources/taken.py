"""Law P: what a destination takes of a source, it takes once and without leaving anything out."""

from __future__ import annotations

from typing import Final

from ledgermq_spark.laws.law import Breach, Law
from ledgermq_spark.laws.sources.source_frames import LAST

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
