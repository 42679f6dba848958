"""Made-up audit reports and lives of messages, for tests of what their pages show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ledgermq_spark.audit.audit import AuditReport
from ledgermq_spark.audit.conservation import summary_of
from ledgermq_spark.tables.life import Life, LifeStep
from ledgermq_spark.tables.totals import FATES

START_US = 1_760_000_000_000_000
SECOND = 1_000_000


def total_of(name: str, store: int, kind: str = "queue", **changes: Any) -> dict[str, Any]:
    """Return the totals of a place to which five messages came and from which two went."""
    names = (
        "came",
        "in_flight",
        "unborn",
        "delayed",
        "uncommitted",
        "backouts",
        *(one.replace(" ", "_") for one in FATES),
    )
    place = {"kind": kind, "destination": name, "subscription": None, "store": store}
    counts = dict.fromkeys(names, 0) | {"put": 5, "resident": 3, "consumed": 2, "numbered": 5}
    return place | counts | {"deliveries": 2, "balances": True} | changes


def law_of(letter: str, *, holds: bool = True) -> dict[str, Any]:
    """Return what is told of a law that was asked."""
    rows = {"moves": 12_000, "operations": 345}
    return {"letter": letter, "sentence": f"Law {letter}.", "holds": holds, "looked_at": rows}


def proof_of(
    position: int,
    *,
    since: int = 0,
    start: str = "the beginning of the log",
    laws: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """What an audit proved: the positions from a start on, and the laws that were asked."""
    return {"since": since, "until": position, "start": start, "laws": [*laws]}


def report_of(**changes: Any) -> AuditReport:
    """Return a report on one queue, in which everything agrees."""
    totals = [total_of("queue:q", 1)]
    line = [(START_US, 0), (START_US + 30 * SECOND, 3), (START_US + 60 * SECOND, 1)]
    fields: dict[str, Any] = {
        "queue_manager": "QM1",
        "position": 99,
        "time": START_US + 60 * SECOND,
        "verdict": "agrees",
        "anomalies": [],
        "consequences": 0,
        "unproven": [],
        "notes": [],
        "compared": {"operations": 100},
        "totals": totals,
        "subscription_totals": [],
        "refusals": {},
        "refused_records": [],
        "corrections": [],
        "digest": "ab" * 32,
        "chain": "cd" * 32,
        "conservation": summary_of(totals),
        "proven": proof_of(99, laws=[law_of("A"), law_of("B")]),
        "slowest_settlements": [settlement_of()],
        "depth": {"q": line},
        "oldest_age_seconds": {"q": line},
        "redeliveries": {"q": line},
    }
    return AuditReport(**fields | changes)


def settlement_of(**changes: Any) -> dict[str, Any]:
    """Return a delivery that was acknowledged after 90 seconds."""
    return {
        "message_id": "0f" * 16,
        "messages": 1,
        "destination": "queue:q",
        "subscription": None,
        "session": 3,
        "consumer": 1,
        "delivery": 1,
        "position": 7,
        "delivered_at": START_US,
        "settled_position": 9,
        "settled_at": START_US + 90 * SECOND,
        "settled": "consumed",
        "seconds": 90.0,
    } | changes


def step_of(at_seconds: float, what: str, states: str, **changes: Any) -> LifeStep:
    """Return a step of a life; `states` are those before and after it, with an arrow between."""
    before, after = states.split(" -> ")
    return LifeStep(
        **{
            "position": int(at_seconds * 10),
            "time": START_US + int(at_seconds * SECOND),
            "what": what,
            "reason": f"queue q: {what}",
            "place": "queue q",
            "before": before,
            "after": after,
        }
        | changes
    )


def life_of(*steps: LifeStep, **changes: Any) -> Life:
    """Return the life of a message with these steps."""
    return Life(
        **{
            "queue_manager": "QM1",
            "message_id": "0f" * 16,
            "queue": "q",
            "sequence": 0,
            "priority": 4,
            "fate": "consumed",
            "put_position": 0,
            "put_index": 0,
            "backout_count": 0,
            "steps": list(steps),
        }
        | changes
    )
