"""What the laws find, as evidence that the audit lists."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from ledgermq_spark.audit.findings.evidence import EVIDENCE_MAX, Evidence, hexadecimal
from ledgermq_spark.laws.facts import Facts
from ledgermq_spark.laws.law import ORDER, Law

# Which message had a number somewhere.
NUMBERED = """
SELECT DISTINCT store, sequence, destination, message_id
FROM {{moves}} JOIN {{puts}} USING (queue_manager, put_position, put_index)
WHERE struct(store, sequence) IN ({places})
"""
# What was made at some positions.
MADE = """
SELECT DISTINCT store, destination, subscription FROM {{stores}} WHERE store IN ({stores})
"""


def breaches(facts: Facts, laws: tuple[Law, ...]) -> tuple[list[Evidence], list[dict[str, Any]]]:
    """What breaks laws, the first of it; `field` names the law. And each law, with what it asked.

    Of a law `looked_at` counts the rows of the frames that its queries rest on, by frame.
    """
    found = facts.judge(laws, EVIDENCE_MAX)
    broken = {row["law"] for row in found}
    counts = facts.counts() if laws else {}
    asked = [
        {
            "letter": law.letter,
            "sentence": law.sentence,
            "holds": law.letter not in broken,
            "looked_at": {
                name: counts[name] for name in sorted(frozenset().union(*_frames_of(facts, law)))
            },
        }
        for law in laws
    ]
    rows = sorted(found, key=itemgetter(*ORDER))[:EVIDENCE_MAX]
    places = {(row["store"], row["sequence"]) for row in rows if row["sequence"] >= 0}
    known = {}
    if places:
        listed = ", ".join(f"struct({store}L, {number}L)" for store, number in sorted(places))
        for one in facts.rows(NUMBERED.format(places=listed)):
            queue = one["destination"].removeprefix("queue:")
            known[one["store"], one["sequence"]] = (queue, hexadecimal(one["message_id"]))
    made = _made(facts, {row["store"] for row in rows if row["sequence"] < 0 <= row["store"]})
    told = []
    for row in rows:
        queue, message_id = known.get((row["store"], row["sequence"]), ("", ""))
        told.append(
            Evidence(
                kind=row["kind"],
                source="laws",
                summary=row["summary"] + (made.get(row["store"], "") if not queue else ""),
                queue=queue,
                message_id=message_id,
                position=row["position"],
                session=row["session"],
                field=f"law {row['law']}",
                expected=row["expected"] or "",
                found=row["found"] or "",
            )
        )
    return told, asked


def _made(facts: Facts, stores: set[int]) -> dict[int, str]:
    """Queues, topics and subscriptions in words, by the position at which each was made."""
    if not stores:
        return {}
    text = MADE.format(stores=", ".join(map(str, sorted(stores))))
    return {
        one["store"]: f" ({' '.join(filter(None, (one['destination'], one['subscription'])))}, "
        f"made at {one['store']})"
        for one in facts.rows(text)
    }


def _frames_of(facts: Facts, law: Law) -> list[frozenset[str]]:
    return [facts.rests_on(one.query) for one in law.breaches]
