"""Contents that are not those that were put: as the lanes delivered them, as Relocates wrote them.

The fold keeps no contents: what a worker delivered, or wrote again (PROTOCOL.md §22, H24), is held
against the Put itself.
"""

from __future__ import annotations

from typing import Final

from ledgermq_spark.audit.findings.evidence import EVIDENCE_MAX, Evidence, hexadecimal, shown
from ledgermq_spark.laws.engines.engine import Frame

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


FIELDS = ("message_id", "priority", "persistent", "size_bytes", "content_digest", "header")
# Messages as entries have them, by their index there.
MESSAGES: Final = """
message_ids[at] AS message_id, priorities[at] AS priority, persistent[at] AS persistent,
sizes_bytes[at] + headers_bytes[at] AS size_bytes, content_digests[at] AS content_digest,
get(headers, at) AS header
"""
# Copies of Relocates that count, and what was put, as far as that is on the log.
ALTERED_COPIES: Final = f"""
WITH
entries AS (
    SELECT *, from_json(settings,
        'put_positions ARRAY<BIGINT>, put_indexes ARRAY<BIGINT>') AS told
    FROM {{rows}} LEFT SEMI JOIN {{counting}} USING (position)
    WHERE kind = 'Relocate'
),
copies AS (
    SELECT position, at, put_position, told.put_indexes[at] AS put_index, {MESSAGES}
    FROM entries LATERAL VIEW posexplode(told.put_positions) AS at, put_position
),
wanted AS (SELECT DISTINCT put_position AS position FROM copies),
puts AS (
    SELECT position AS put_position, at AS put_index, {MESSAGES}
    FROM (SELECT * FROM {{rows}} LEFT SEMI JOIN wanted USING (position) WHERE kind = 'Put')
        LATERAL VIEW posexplode(message_ids) AS at, id
)
SELECT copy.position, copy.at, put_position, original.message_id AS put_message_id,
    {", ".join(f"copy.{name} <=> original.{name} AS same_{name}" for name in FIELDS)}
FROM copies AS copy JOIN puts AS original USING (put_position, put_index)
WHERE NOT ({" AND ".join(f"copy.{name} <=> original.{name}" for name in FIELDS)})
ORDER BY copy.position, copy.at LIMIT {EVIDENCE_MAX}
"""


def altered_copies(operations: Frame, outcomes: Frame) -> list[Evidence]:
    """Copies that are not what was put, as far as that is on the log; of Relocates that count.

    `outcomes` are those that follow from the operations.
    """
    if not operations.rows("SELECT position FROM {rows} WHERE kind = 'Relocate' LIMIT 1"):
        return []
    counting = outcomes.where("kind = 'Administered'")
    return [
        Evidence(
            kind="altered copy",
            source="operations",
            summary=f"what was written again is not what was put at position {row['put_position']}",
            message_id=hexadecimal(row["put_message_id"]),
            position=row["position"],
            index=row["at"],
            field=next(one for one in FIELDS if not row[f"same_{one}"]),
        )
        for row in operations.rows(ALTERED_COPIES, counting=counting)
    ]
