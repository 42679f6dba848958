"""What the log had delivered before: tells a delivery too many from one that nothing calls for."""

from __future__ import annotations

from typing import Final

from ledgermq_spark.audit.compare import Differences
from ledgermq_spark.audit.findings.classify import Holders, Identity, holder_of
from ledgermq_spark.laws.engines.frame import Frame
from ledgermq_spark.laws.facts import Facts
from ledgermq_spark.log.rows import LONG

# Which subscription the consumers of topics get from, as far as they got anything.
HOLDERS: Final = """
SELECT DISTINCT session, consumer, store FROM {moves}
WHERE delivery > 0 AND kind = 'subscription'
"""
# Deliveries of some messages.
DELIVERED: Final = """
SELECT position, session, consumer, put_position, put_index
FROM (
    SELECT position, session, consumer, put_position, put_indexes[at] AS put_index
    FROM (SELECT * FROM {rows} WHERE kind = 'Delivered')
        LATERAL VIEW posexplode(put_positions) AS at, put_position
)
    LEFT SEMI JOIN {suspects} USING (put_position, put_index)
"""


def holders_in(facts: Facts) -> Holders:
    """Which subscription the consumer of a session gets from."""
    rows = facts.rows(HOLDERS)
    return {(row["session"], row["consumer"]): row["store"] for row in rows}


def delivered_before(expected: Frame, found: Differences, holders: Holders) -> set[Identity]:
    """Of the messages that are delivered too often: those the log had delivered before."""
    suspects: dict[Identity, int] = {}
    rows = [*found.extra.values(), *(row for _, told in found.differing.values() for row in told)]
    for row in rows:
        holder = holder_of(row, holders)
        for put in zip(row["put_positions"] or (), row["put_indexes"] or (), strict=True):
            identity = (*put, holder)
            suspects[identity] = max(row["position"], suspects.get(identity, -1))
    if not suspects:
        return set()
    columns = (("put_position", LONG), ("put_index", LONG))
    puts = sorted({identity[:2] for identity in suspects})
    frame = expected.beside("suspects", columns, puts)
    earlier = expected.rows(DELIVERED, suspects=frame)
    called = [
        ((row["put_position"], row["put_index"], holder_of(row, holders)), row["position"])
        for row in earlier
    ]
    return {identity for identity, at in called if at <= suspects.get(identity, -1)}
