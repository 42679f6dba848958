"""Records whose headers deny their values (`log.record_headers`), as findings of the audit."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from ledgermq_spark.audit.findings.evidence import EVIDENCE_MAX, Evidence
from ledgermq_spark.laws.engines.engine import Frame
from ledgermq_spark.log.record_headers import CHAIN, CONNECTION, LANE, SOURCE, Denial

# Headers of a session's operation, what they say, and what its Open says.
OF_SESSION = (
    (SOURCE, "header_source", "connection"),
    (CONNECTION, "header_connection", "connection"),
    (LANE, "header_lane", "lane"),
)
DENIED: Final = f"""
SELECT position, denials FROM {{rows}} WHERE denials IS NOT NULL
ORDER BY position LIMIT {EVIDENCE_MAX}
"""
DENIED_BY_OPEN: Final = f"""
WITH opens AS (
    SELECT position AS session, lower(hex(connection)) AS connection, CAST(lane AS STRING) AS lane
    FROM {{rows}} WHERE kind = 'Open'
),
sent AS (
    SELECT position, session, header_source, header_connection, header_lane FROM {{rows}}
    WHERE header_source IS NOT NULL OR header_connection IS NOT NULL OR header_lane IS NOT NULL
)
SELECT position, connection, lane, header_source, header_connection, header_lane
FROM sent JOIN opens USING (session)
WHERE header_connection <> connection OR header_source <> connection OR header_lane <> lane
ORDER BY position LIMIT {EVIDENCE_MAX}
"""
DENIED_ON_LANES: Final = f"""
SELECT position, lane_partition, lane_offset, denials FROM {{rows}} WHERE denials IS NOT NULL
ORDER BY position, lane_partition, lane_offset LIMIT {EVIDENCE_MAX}
"""


def check_operation_headers(operations: Frame) -> list[Evidence]:
    """Operations whose key or headers deny their value, or what their session's Open says."""
    found: dict[int, list[Denial]] = {}
    for row in operations.rows(DENIED):
        found[row["position"]] = json.loads(row["denials"])
    for row in operations.rows(DENIED_BY_OPEN):
        pairs = found.setdefault(row["position"], [])
        for name, column, due in OF_SESSION:
            differs = row[column] is not None and row[column] != row[due]
            if differs and name not in [one[0] for one in pairs]:
                pairs.append((name, row[due], row[column]))
    return [
        _evidence(
            "altered operations",
            f"headers or key of the record at position {position} say something else than its "
            "operation",
            position,
            pairs,
        )
        for position, pairs in sorted(found.items())
    ]


def check_outcome_records(recorded: Frame) -> list[Evidence]:
    """Records of the lanes whose headers deny what they hold; chunks without their digest chain."""
    found = []
    for row in recorded.rows(DENIED_ON_LANES):
        place = f"record {row['lane_offset']} of outcomes partition {row['lane_partition']}"
        pairs = json.loads(row["denials"])
        kind, position = "altered outcome", row["position"]
        of_chain = [pair for pair in pairs if pair[0] == CHAIN]
        if of_chain:
            why = f"{place} lacks the digest chain, which its worker owes"
            found.append(_evidence(kind, why, position, of_chain))
        of_headers = [pair for pair in pairs if pair[0] != CHAIN]
        if of_headers:
            why = f"headers of {place} say something else than its outcomes"
            found.append(_evidence(kind, why, position, of_headers))
    return found


def _evidence(kind: str, summary: str, position: int, pairs: Iterable[Denial]) -> Evidence:
    names, expected, found = zip(*pairs, strict=True)
    return Evidence(
        kind=kind,
        source=CHAIN if names == (CHAIN,) else "headers",
        summary=summary,
        position=position,
        field=", ".join(names),
        expected=", ".join(expected),
        found=", ".join(one or "nothing" for one in found),
    )
