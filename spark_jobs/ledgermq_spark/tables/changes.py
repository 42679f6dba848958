"""What changed between two positions, destination by destination, and through which operations."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Final

from ledgermq.protocol.instants import iso_time
from ledgermq_spark.laws.facts import Facts

PLACE: Final = "kind, destination, subscription"
# How many numbered messages each held before, what came and went, how many it holds at the end.
RESIDENT: Final = f"""
SELECT {PLACE},
    count_if(numbered_position <= {{since}} AND NOT coalesce(gone_position <= {{since}}, FALSE))
        AS before,
    count_if(numbered_position > {{since}}) AS came, count_if(gone_position > {{since}}) AS went,
    count_if(gone_position IS NULL) AS after
FROM {{{{message_stays}}}} WHERE numbered_position IS NOT NULL
GROUP BY ALL
"""
# What was made or came to its end, both in turn if it was made anew.
MADE: Final = f"""
SELECT {PLACE}, bool_or(made_at > {{since}}) AS is_made, bool_or(gone_at IS NOT NULL) AS is_gone
FROM {{{{stores}}}} WHERE made_at > {{since}} OR gone_at > {{since}}
GROUP BY ALL
"""
EVENTS: Final = f"""
SELECT {PLACE}, event, count(*) AS messages FROM {{{{events}}}} WHERE position > {{since}}
GROUP BY ALL
"""
THROUGH: Final = f"""
SELECT {PLACE}, entry, count(DISTINCT position) AS operations
FROM (
    SELECT {PLACE}, entry, position FROM {{{{events}}}}
    UNION ALL
    SELECT place.kind, destination, place.subscription, one.kind AS entry, position
    FROM (
        SELECT queue_manager, {PLACE}, made_at AS position FROM {{{{stores}}}}
        UNION ALL
        SELECT queue_manager, {PLACE}, gone_at AS position FROM {{{{stores}}}}
    ) AS place
    JOIN {{{{operations}}}} AS one USING (queue_manager, position)
)
WHERE position > {{since}}
GROUP BY ALL
"""
OPERATIONS: Final = """
SELECT kind, count(*) AS operations FROM {{operations}} WHERE position > {since} GROUP BY kind
"""
ENDS: Final = """
SELECT coalesce(max(position), -1) AS position, coalesce(max(time_us), -1) AS time_us,
    coalesce(max(IF(position <= {since}, time_us, NULL)), -1) AS since_us
FROM {{clock}}
"""
REFUSED: Final = """
SELECT reason, count(*) AS refusals FROM {{outcomes}}
WHERE kind = 'Refused' AND position > {since} GROUP BY reason
"""


@dataclass(slots=True, kw_only=True)
class PlaceChanges:
    """What happened in a queue, topic or subscription.

    Of the messages that have numbers, `before` and `after` were there, `came` and `went` between.
    `events` counts what happened to messages by its name, `operations` the entries at which it
    happened, or at which the place was made or ended, by their kind.
    """

    destination: str
    subscription: str | None
    made: bool = False
    gone: bool = False
    before: int = 0
    came: int = 0
    went: int = 0
    after: int = 0
    events: dict[str, int] = field(default_factory=dict)
    operations: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What changed after one position, up to another: where anything did, and what was asked for.

    `position` is the later one, `since_us` and `time_us` are the times of both in µs since 1970
    UTC, -1 where there is none; `operations` counts all entries by kind, `refused` what was refused
    by reason.
    """

    position: int
    since_us: int
    time_us: int
    places: list[PlaceChanges]
    operations: dict[str, int]
    refused: dict[str, int]

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, for JSON: both times as ISO 8601, None where there is none."""
        document = asdict(self)
        times = {name: document.pop(f"{name}_us") for name in ("since", "time")}
        told = {name: iso_time(one) if one >= 0 else None for name, one in times.items()}
        return told | document


def changes_since(facts: Facts, since: int) -> Changes:
    """What changed after a position, to the end of what the facts tell; -1: from the start."""
    places: dict[tuple[Any, ...], PlaceChanges] = {}

    def key_of(row: Any) -> tuple[Any, ...]:
        return row["kind"], row["destination"], row["subscription"]

    def at(row: Any) -> PlaceChanges:
        names = {"destination": row["destination"], "subscription": row["subscription"]}
        return places.setdefault(key_of(row), PlaceChanges(**names))

    for row in facts.rows(MADE.format(since=since)):
        one = at(row)
        one.made, one.gone = row["is_made"], row["is_gone"]
    for row in facts.rows(EVENTS.format(since=since)):
        at(row).events[row["event"]] = row["messages"]
    for row in facts.rows(THROUGH.format(since=since)):
        at(row).operations[row["entry"]] = row["operations"]
    for row in facts.rows(RESIDENT.format(since=since)):
        # What nothing happened in is of no interest, however much is in it.
        if (found := places.get(key_of(row))) is not None:
            found.before, found.came = row["before"], row["came"]
            found.went, found.after = row["went"], row["after"]
    ends = facts.rows(ENDS.format(since=since))[0]
    asked = facts.rows(OPERATIONS.format(since=since))
    refused = facts.rows(REFUSED.format(since=since))
    return Changes(
        position=ends["position"],
        since_us=ends["since_us"],
        time_us=ends["time_us"],
        places=sorted(places.values(), key=lambda one: (one.destination, one.subscription or "")),
        operations={row["kind"]: row["operations"] for row in asked},
        refused={row["reason"]: row["refusals"] for row in refused},
    )
