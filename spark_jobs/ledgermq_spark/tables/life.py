"""The lives of messages, step by step, with positions, times and reasons."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from ledgermq.protocol.instants import iso_time
from ledgermq_spark.laws.facts import Facts
from ledgermq_spark.tables.events import LOST, OUT_OF_TIME, PUT_BACK, SENT_AWAY

Row = Mapping[str, Any]
# A number as people write it; and as JSON writes one that is no whole number.
NUMBER: Final = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
FLOAT: Final = "^-?[0-9]+([.][0-9]+([eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)$"


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeStep:
    """Something that happened to a message at a log position; `time` in µs since 1970 UTC.

    `place` is the queue, topic or subscription, `before` and `after` are the message's states there
    (`new`: it comes, `gone`: it leaves); None is what does not apply.
    """

    position: int
    time: int
    what: str
    reason: str
    place: str | None = None
    before: str | None = None
    after: str | None = None
    session: int | None = None
    consumer: int | None = None
    delivery: int | None = None
    unit_of_work: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """A message and what happened to it, in the order of the log.

    `queue` is the name of its queue, or `topic:NAME`, the last one if it was moved; `backout_count`
    is that there, of a topic message that of all its copies.
    """

    queue_manager: str
    message_id: str
    queue: str
    sequence: int | None
    priority: int
    fate: str
    put_position: int
    put_index: int
    backout_count: int
    steps: list[LifeStep]
    group_id: str | None = None
    correlation_id: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, for JSON: times as ISO 8601."""
        document = asdict(self)
        for step in document["steps"]:
            step["time"] = iso_time(step["time"])
        return document


# The first of some puts of a queue manager, without those of an operation that was refused.
CHOSEN: Final = """
SELECT queue_manager, put_position, put_index
FROM {{some}} LEFT SEMI JOIN {{events}} USING (queue_manager, put_position, put_index)
WHERE {condition}
ORDER BY put_position, put_index LIMIT {{most}}
"""
# All that happened to them, and where they were written again for a trim.
EVENTS: Final = """
SELECT one.* FROM {events} AS one JOIN {chosen} USING (queue_manager, put_position, put_index)
"""
WRITTEN_AGAIN: Final = """
SELECT DISTINCT again.* FROM {chosen} JOIN (
    SELECT queue_manager, position, time_us, actor, why, put_position,
        told.put_indexes[at] AS put_index
    FROM (
        SELECT *, from_json(settings, 'put_positions ARRAY<BIGINT>, put_indexes ARRAY<BIGINT>')
            AS told
        FROM {applied} JOIN {clock} USING (queue_manager, position)
        WHERE kind = 'Relocate' AND reply = 'Administered'
    ) LATERAL VIEW posexplode(told.put_positions) AS at, put_position
) AS again USING (queue_manager, put_position, put_index)
"""


def meant(
    *,
    message_id: bytes | None = None,
    correlation_id: str | None = None,
    group_id: bytes | None = None,
    properties: Mapping[str, str] | None = None,
) -> str:
    """Which messages are meant, a condition over `puts`: all that is given must be true of one.

    The values of properties are told as JSON tells them: `5`, `true`, the text of a string. A
    number with a fraction or an exponent may be told otherwise: `250` for `250.0`, `1e16`.
    """
    conditions = ["TRUE"]
    if message_id is not None:
        conditions.append(_is("message_id", message_id))
    if correlation_id is not None:
        conditions.append(_is("correlation_id", correlation_id))
    if group_id is not None:
        conditions.append(_is("group_id", group_id.hex()))
    told = "map_entries(from_json(get_json_object(header, '$.p'), 'MAP<STRING, STRING>'))"
    conditions += [
        f"size(filter({told}, one -> {_is('one.key', name)} AND ({_has('one.value', value)}))) > 0"
        for name, value in (properties or {}).items()
    ]
    return " AND ".join(conditions)


def _is(column: str, value: str | bytes) -> str:
    """A condition for any value, whatever characters are in it."""
    encoded = value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")
    return f"hex({column}) = '{encoded.hex().upper()}'"


def _has(column: str, value: str) -> str:
    """A condition for a value of a property."""
    number = float(value) if NUMBER.fullmatch(value) else math.inf
    if not math.isfinite(number):
        return _is(column, value)
    # How a number with a point or an exponent is written is JSON's own affair.
    equal = f"try_cast({column} AS DOUBLE) = CAST('{number!r}' AS DOUBLE)"
    return f"{_is(column, value)} OR {column} RLIKE '{FLOAT}' AND {equal}"


def lives_meant(facts: Facts, queue_manager: str, condition: str, most: int) -> list[Life]:
    """Tell the lives of the messages that a condition over `puts` means: see `meant`."""
    puts = facts.query(f"SELECT * FROM {{puts}} WHERE {condition}")
    return lives_of(facts, queue_manager, puts, most)


def lives_of(facts: Facts, queue_manager: str, puts: Any, most: int) -> list[Life]:
    """Tell the lives of messages, at most so many, the first that were put.

    `puts` are some rows of the frame of that name. A message that was moved is told from its Put to
    where it is now. What was put by an operation that was refused has no life.
    """
    chosen = CHOSEN.format(condition=_is("queue_manager", queue_manager))
    places = {"chosen": facts.query(chosen, some=puts, most=most)}
    events: defaultdict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in facts.rows(EVENTS, **places):
        events[row["put_position"], row["put_index"]].append(row)
    again: defaultdict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in facts.rows(WRITTEN_AGAIN, **places):
        again[row["put_position"], row["put_index"]].append(row)
    return [_life(rows, again[put]) for put, rows in sorted(events.items())]


def life_of(facts: Facts, queue_manager: str, message_id: bytes) -> Life | None:
    """Tell the life of the message with that id; the first put, should two bear it."""
    found = lives_meant(facts, queue_manager, meant(message_id=message_id), 1)
    return found[0] if found else None


# What a step has of its event as it is.
CARRIED: Final = ("before", "after", "session", "delivery", "unit_of_work")


def _life(rows: list[Row], again: list[Row]) -> Life:
    rows.sort(key=lambda row: (row["position"], row["step"]))
    steps = [
        LifeStep(
            position=row["position"],
            time=row["time_us"],
            what=row["event"],
            reason=_reason(rows, at),
            place=_place(row),
            consumer=row["consumer"] or None,
            **{name: row[name] for name in CARRIED},
        )
        for at, row in enumerate(rows)
    ]
    steps += [
        LifeStep(
            position=row["position"],
            time=row["time_us"],
            what="written again",
            reason=f"{row['actor']}: {row['why']}; the message is what and where it was",
        )
        for row in sorted(again, key=lambda row: row["position"])
    ]
    last = [row for row in rows if row["kind"] != "subscription"][-1]
    backouts = {row["store"]: row["backouts"] for row in rows if row["store"] is not None}
    is_topic = last["kind"] == "topic"
    return Life(
        queue_manager=last["queue_manager"],
        message_id=last["message_id"].hex(),
        queue=last["destination"].removeprefix("queue:"),
        sequence=last["sequence"],
        priority=last["priority"],
        fate=last["event"] if last["after"] == "gone" else last["after"],
        put_position=last["put_position"],
        put_index=last["put_index"],
        backout_count=sum(backouts.values()) if is_topic else last["backouts"],
        steps=sorted(steps, key=lambda step: step.position),
        group_id=last["group_id"],
        correlation_id=last["correlation_id"],
    )


# What administration does not bring about, though it may follow from what it does.
FOLLOWING: Final = ("added", "born", "delivered", "due", "numbered")


# How a message comes to a place beside others, which it did not leave for it.
COMING: Final = ("added", "arrived")


def _reason(rows: list[Row], at: int) -> str:
    """Where it happened, through whom, and why: one of all things that happened to a message."""
    row, reason = rows[at], rows[at]["reason"]
    if row["event"] == "arrived" and row["entry"] != "CopyMessages":
        earlier = (one for one in reversed(rows[:at]) if one["event"] not in COMING)
        if (left := next(earlier, None)) is not None:
            reason = f"it came from {_place(left)}"
    elif row["event"] == "moved" and row["before"] in ("new", "uncommitted put"):
        targets = [
            _place(one)
            for one in rows[at + 1 :]
            if one["position"] == row["position"]
            and one["before"] == "new"
            and one["kind"] != "subscription"
        ]
        reason = f"no subscription wants it: it goes to {' and '.join(targets) or 'nowhere'}"
    told = f"{_place(row)}: {reason}"
    if row["before"] in ("new", "uncommitted put"):
        told += "" if row["session"] is None else f", session {row['session']}"
        if row["after"] == "uncommitted put":
            return told + "; uncommitted"
        told += "" if row["sequence"] is None else f"; number {row['sequence']}"
    elif row["delivery"] is not None:
        came_back = row["event"] in ("expired", "moved", "dropped")
        delivery = f"delivery {row['delivery']} of session {row['session']}"
        told += f", as {delivery} came back" if came_back else f", {delivery}"
        if row["event"] == "delivered":
            told += f" to consumer {row['consumer']}, delivery count {row['backouts'] + 1}"
        elif row["event"] == "returned":
            told += f"; backout count {row['backouts']}"
            told += f", {row['uncounted']} not against it" if row["uncounted"] else ""
    if row["why"] and reason.startswith((PUT_BACK, SENT_AWAY)):
        told += f": {row['why']}"
    by_time = row["event"] in FOLLOWING or reason in (LOST, OUT_OF_TIME)
    if row["actor"] and not by_time:
        told += f"; {row['actor']}: {row['why']}"
    return told


def _place(row: Any) -> str:
    """The queue, topic or subscription of an event."""
    where = row["destination"].replace(":", " ", 1)
    return f"subscription {row['subscription']} of {where}" if row["subscription"] else str(where)
