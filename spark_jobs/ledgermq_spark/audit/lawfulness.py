"""What the laws find, as evidence that the audit lists."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from ledgermq_spark.audit.evidence import Evidence, hexadecimal
from ledgermq_spark.laws.law import ORDER

if TYPE_CHECKING:
    from ledgermq_spark.laws.law import Facts, Law

EVIDENCE_MAX = 200
# Which message had a number somewhere.
NUMBERED = """
SELECT DISTINCT store, sequence, destination, message_id
FROM {{moves}} JOIN {{puts}} USING (queue_manager, put_position, put_index)
WHERE struct(store, sequence) IN ({places})
"""


def breaches(facts: Facts, laws: tuple[Law, ...]) -> list[Evidence]:
    """What breaks laws, the first of it; `field` names the law."""
    found = facts.judge_apart(laws, EVIDENCE_MAX)
    rows = sorted(found, key=itemgetter(*ORDER))[:EVIDENCE_MAX]
    places = {(row["store"], row["sequence"]) for row in rows if row["sequence"] >= 0}
    known = {}
    if places:
        listed = ", ".join(f"struct({store}L, {number}L)" for store, number in sorted(places))
        for one in facts.query(NUMBERED.format(places=listed)).collect():
            queue = one["destination"].removeprefix("queue:")
            known[one["store"], one["sequence"]] = (queue, hexadecimal(one["message_id"]))
    told = []
    for row in rows:
        queue, message_id = known.get((row["store"], row["sequence"]), ("", ""))
        told.append(
            Evidence(
                kind=row["kind"],
                source="laws",
                summary=row["summary"],
                queue=queue,
                message_id=message_id,
                position=row["position"],
                session=row["session"],
                field=f"law {row['law']}",
                expected=row["expected"] or "",
                found=row["found"] or "",
            )
        )
    return told
