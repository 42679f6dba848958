"""Conservation: every put that was ever accepted is current, pending or removed (INF-19, §11).

What was accepted and what became of it, the moves tell, place by place. The counts of the rebuilt
state must add up as well; that both are the same is law N.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ledgermq_spark.audit.findings.evidence import Evidence
from ledgermq_spark.tables.totals import FATES

CONSERVATION = "INF-19 conservation"
PENDING = ("in_flight", "unborn", "delayed")
REMOVED = tuple(one.replace(" ", "_") for one in FATES)
# What a status counts as gone.
GONE = (
    "sent_and_committed",
    "expired",
    "displaced",
    "removed_by_administration",
    "moved",
    "dropped",
)
KINDS = ("queue", "topic", "subscription")
TOPIC_PREFIX = "topic:"

Total = dict[str, Any]


def summary_of(totals: Iterable[Total]) -> Total:
    """The law and its counts for the report, over all queues, topics and subscriptions each."""
    totals = list(totals)
    told: Total = {"rule": CONSERVATION, "holds": all(one["balances"] for one in totals)}
    for kind in KINDS:
        those = [one for one in totals if one["kind"] == kind]
        there = sum(one[name] for one in those for name in PENDING)
        told[kind + "s"] = {
            "accepted": sum(one["put"] for one in those),
            "current": sum(one["resident"] for one in those) - there,
            "pending": there + sum(one["uncommitted"] for one in those),
            "removed": {reason: sum(one[reason] for one in those) for reason in REMOVED},
        }
    return told


def told_of(summary: Total) -> list[str]:
    """The summary in words, a sentence for each kind of place that was given anything."""
    verdict = "holds" if summary["holds"] else "is broken"
    return [
        f"{summary['rule']} {verdict}: {kind}s: {one['accepted']:,} accepted = "
        + _sum_of(one["current"], one["pending"], one["removed"])
        for kind in KINDS
        for one in (summary[kind + "s"],)
        if one["accepted"]
    ]


def check_counts(
    queues: Iterable[Total], topics: Iterable[Total], subscriptions: Iterable[Total], position: int
) -> list[Evidence]:
    """Places whose counts in the rebuilt state do not add up."""
    places = [(one, one["name"], one["next_sequence"]) for one in queues]
    places += [(one, TOPIC_PREFIX + one["name"], one["next_sequence"]) for one in topics]
    places += [(one, TOPIC_PREFIX + one["topic"], one["added"]) for one in subscriptions]
    told = []
    for status, name, accepted in places:
        there, gone = status["message_count"], {one: status.get(one, 0) for one in GONE}
        parts = f"{there} there"
        whole = there + sum(gone.values()) == accepted
        if "current" in status:
            pending = status["pending"] - status.get("uncommitted_puts", 0)
            parts = f"{status['current']} current + {pending} pending of {there} there"
            whole = whole and status["current"] + pending == there
        if not whole:
            found = " + ".join([parts, *(f"{number} {one}" for one, number in gone.items())])
            where = f"{name} made at {status['created_position']}"
            told.append(_broken("rebuild", where, (name, position), f"{accepted} numbered", found))
    return told


def _sum_of(current: int, pending: int, removed: Mapping[str, int]) -> str:
    parts = {"current": current, "pending": pending} | {
        reason.replace("_", " "): number for reason, number in removed.items() if number
    }
    return " + ".join(f"{number:,} {what}" for what, number in parts.items())


def _broken(source: str, where: str, place: tuple[str, int], expected: str, found: str) -> Evidence:
    name, position = place
    return Evidence(
        kind="state mismatch",
        source=source,
        summary=f"{CONSERVATION}: not every put of {where} is in exactly one place",
        queue=name,
        position=position,
        field=CONSERVATION,
        expected=expected,
        found=found,
    )
