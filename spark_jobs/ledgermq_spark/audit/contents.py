"""Contents as the lanes delivered them against contents as they were put.

The fold keeps no contents: what a worker delivered is held against the Put itself.
"""

from __future__ import annotations

from typing import Final

from ledgermq_spark.audit.findings.evidence import Evidence, hexadecimal, shown
from ledgermq_spark.laws.engines.frame import Frame

EVIDENCE_MAX = 200
# Deliveries that were told again are one.
ALTERED: Final = f"""
WITH
puts AS (
    SELECT position AS put_position, put_index, put_digest
    FROM (SELECT * FROM {{operations}} WHERE kind = 'Put')
        LATERAL VIEW posexplode(content_digests) AS put_index, put_digest
),
told AS (
    SELECT position, index, session, destination, put_positions[at] AS put_position,
        put_indexes[at] AS put_index, message_ids[at] AS message_id, digest
    FROM (SELECT * FROM {{rows}} WHERE kind = 'Delivered')
        LATERAL VIEW posexplode(content_digests) AS at, digest
)
SELECT position, index, put_position, put_index, any_value(session) AS session,
    any_value(destination) AS destination, any_value(message_id) AS message_id,
    any_value(put_digest) AS put_digest, min(digest) AS digest
FROM told JOIN puts USING (put_position, put_index)
WHERE digest <> put_digest
GROUP BY position, index, put_position, put_index
ORDER BY position, index, put_position, put_index LIMIT {EVIDENCE_MAX}
"""


def altered_contents(operations: Frame, recorded: Frame) -> list[Evidence]:
    """Deliveries on the lanes whose content or header is not that of the Put that they name."""
    return [
        Evidence(
            kind="altered outcome",
            source="outcomes",
            summary=f"what was delivered is not what was put at position {row['put_position']}",
            queue=(row["destination"] or "").removeprefix("queue:"),
            message_id=hexadecimal(row["message_id"]),
            position=row["position"],
            index=row["index"],
            session=row["session"],
            field="content_digest",
            expected=shown(row["put_digest"]),
            found=shown(row["digest"]),
        )
        for row in recorded.rows(ALTERED, operations=operations)
    ]
