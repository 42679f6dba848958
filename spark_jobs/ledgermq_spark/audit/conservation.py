"""Conservation: every put that was ever accepted is current, pending or removed (INF-19, §11).

What was accepted, the operations tell; of what came from elsewhere, the pass over where messages
were. What became of it, the tables tell, message by message. So a message that is lost between
these, or is there twice, is found, whoever is wrong. The counts of the rebuilt state must add up as
well: those are the fold's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from ledgermq_spark.audit.evidence import Evidence
from ledgermq_spark.derivation.destinations import TOPIC_PREFIX

if TYPE_CHECKING:
    from ledgermq_spark.derivation.tables import Tables


CONSERVATION = "INF-19 conservation"
PENDING = ("in_flight", "unborn", "delayed", "uncommitted")
REMOVED = ("consumed", "expired", "moved", "dropped", "removed", "purged", "rolled_back")
# What a status counts as gone.
GONE = ("sent_and_committed", "expired", "removed_by_administration", "moved", "dropped")

KINDS = ("queue", "topic", "subscription")

Total = dict[str, Any]


class Kept(NamedTuple):
    """What became of everything that a queue, topic or subscription was given, in messages.

    `created` is the position where it was made; `removed` counts by the reason. `accepted` of a
    queue or topic are its puts and what came from elsewhere, of a subscription its numbers.
    """

    kind: str
    name: str
    created: int
    accepted: int
    current: int
    pending: int
    removed: Mapping[str, int]

    @property
    def holds(self) -> bool:
        """Whether each of them is in exactly one place."""
        return self.accepted == self.current + self.pending + sum(self.removed.values())


def kept_by(tables: Tables, totals: Iterable[Total], subscriptions: Iterable[Total]) -> list[Kept]:
    """What became of the puts, place by place; the totals are those of the tables."""
    accepted = _accepted(tables)
    places = [(one["kind"], one["queue"], one["queue_created"], -1, one) for one in totals]
    places += [
        ("subscription", one["topic"], one["topic_created"], one["created_position"], one)
        for one in subscriptions
    ]
    kept = [
        _kept(kind, name, created if holder < 0 else holder, accepted.pop(key, 0), total)
        for kind, name, created, holder, total in places
        for key in ((name, created, holder),)
    ]
    # What was accepted where nothing stood.
    astray = sorted(accepted.items(), key=str)
    return kept + [
        _kept("place", name, -1 if created is None else created, number, {})
        for (name, created, _), number in astray
    ]


def _accepted(tables: Tables) -> dict[tuple[str, int, int], int]:
    """How many messages each queue and topic was given, and how many numbers a subscription has."""
    keys = ["queue", "queue_created", "holder"]
    nobody = f.lit(-1).cast("long").alias("holder")
    parts = [
        tables.puts.select("queue", "queue_created", nobody, f.col("count").alias("number")),
        tables.copies.groupBy("queue", "queue_created", f.col("subscription").alias("holder")).agg(
            f.count_distinct("sequence").alias("number")
        ),
    ]
    if tables.facts.walk is not None:
        came = tables.facts.walk.where("what = 'numbered' AND stay > 0")
        parts.append(came.select("queue", "queue_created", nobody, f.lit(1).alias("number")))
    given = reduce(DataFrame.unionByName, parts).groupBy(*keys).agg(f.sum("number").alias("number"))
    return {tuple(row[key] for key in keys): int(row["number"]) for row in given.collect()}


def _kept(kind: str, name: str, created: int, accepted: int, total: Total) -> Kept:
    there = sum(total.get(one, 0) for one in PENDING if one != "uncommitted")
    return Kept(
        *(kind, name, created, accepted),
        current=total.get("resident", 0) - there,
        pending=there + total.get("uncommitted", 0),
        removed={one: total[one] for one in REMOVED if one in total},
    )


def summary_of(kept: Iterable[Kept]) -> Total:
    """The law and its counts for the report, over all queues, topics and subscriptions each."""
    told: Total = {"rule": CONSERVATION, "holds": all(one.holds for one in kept)}
    for kind in KINDS:
        those = [one for one in kept if one.kind == kind]
        told[kind + "s"] = {
            "accepted": sum(one.accepted for one in those),
            "current": sum(one.current for one in those),
            "pending": sum(one.pending for one in those),
            "removed": {
                reason: sum(one.removed.get(reason, 0) for one in those)
                for reason in REMOVED
                if any(reason in one.removed for one in those)
            },
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


def check_kept(kept: Iterable[Kept], position: int) -> list[Evidence]:
    """Places of which the tables have more messages, or fewer, than the operations put there."""
    return [
        _broken(
            "tables",
            f"{one.kind} {one.name} made at {one.created}",
            (one.name, position),
            f"{one.accepted} accepted",
            _sum_of(one.current, one.pending, one.removed),
        )
        for one in kept
        if not one.holds
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
