"""The life of one message, step by step, with positions, times and reasons, from the tables."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from ledgermq_spark.audit.evidence import hexadecimal
from ledgermq_spark.audit.relocations import relocations_of
from ledgermq_spark.derivation.destinations import is_topic, plain_name
from ledgermq_spark.derivation.directory import Subscription

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ledgermq_spark.derivation.tables import Tables


# Subscriptions that a step names.
NAMED_MAX = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeStep:
    """Something that happened to a message at a log position; `time` in µs since 1970 UTC."""

    position: int
    time: int
    what: str
    reason: str


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

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, for JSON."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        steps = [{name: getattr(one, name) for name in one.__slots__} for one in self.steps]
        return plain | {"steps": steps}


def life_of(tables: Tables, queue_manager: str, message_id: bytes) -> Life | None:
    """Tell the life of the message with that id; the first put, should two bear it.

    A message that was moved is told from its Put to where it is now.
    """
    rows = (
        tables.messages.where(f.col("message_id") == f.lit(message_id))
        .orderBy("put_position", "put_index", "stay")
        .collect()
    )
    if not rows:
        return None
    put = (rows[0]["put_position"], rows[0]["put_index"])
    stays = [row for row in rows if (row["put_position"], row["put_index"]) == put]
    same = (f.col("put_position") == put[0]) & (f.col("put_index") == put[1])
    deliveries = tables.deliveries.where(same).orderBy("position", "index", "offset").collect()
    subscriptions = {one.created: one for one in tables.facts.directory.subscriptions}
    steps: list[LifeStep] = []
    for message in stays:
        steps.extend(_births(tables, message))
        steps.extend(_birth(tables, message))
        if is_topic(message["queue"]):
            its = f.col("stay") == message["stay"]
            copies = tables.copies.where(same & its).orderBy("subscription").collect()
            steps.extend(_copies(tables, message, copies, subscriptions, stays))
        for row in deliveries:
            if row["stay"] == message["stay"]:
                steps.extend(_delivery_steps(row, subscriptions))
        steps.extend(_corrections(tables, message))
        if message is stays[0]:
            steps.extend(_relocations(tables, *put))
        # Of a topic message the copies tell it, but that its time was over.
        if not is_topic(message["queue"]) or message["fate"] == "expired":
            steps.extend(_departure(tables, message, stays))
    order = sorted(range(len(steps)), key=lambda at: (steps[at].position, at))
    message = stays[-1]
    return Life(
        queue_manager=queue_manager,
        message_id=hexadecimal(message["message_id"]),
        queue=message["queue"],
        sequence=message["sequence"],
        priority=message["priority"],
        fate=_fate(message),
        put_position=message["put_position"],
        put_index=message["put_index"],
        backout_count=message["backout_count"],
        steps=[steps[at] for at in order],
    )


def _fate(message: Any) -> str:
    if message["fate"] != "resident":
        return str(message["fate"])
    return "delivered, not settled" if message["held"] else "available"


def _births(tables: Tables, message: Any) -> Iterator[LifeStep]:
    """How a message came to be where it stays; of one that was moved, that it left tells it."""
    unit = message["unit_of_work"]
    if message["origin"] is not None:
        return
    where = _where(message["queue"])
    session = f"session {message['session']}"
    if unit is None:
        yield LifeStep(
            position=message["put_position"],
            time=message["put_at"],
            what="put",
            reason=f"to {where} by {session}; number {message['sequence']} at once",
        )
        return
    yield LifeStep(
        position=message["put_position"],
        time=message["put_at"],
        what="put",
        reason=f"to {where} in unit of work {unit} of {session}; uncommitted",
    )
    if message["unit_position"] is None:
        return
    if message["numbered_position"] is not None:
        yield LifeStep(
            position=message["unit_position"],
            time=message["enqueued_at"],
            what="committed",
            reason=f"unit of work {unit} of {session}; number {message['sequence']}",
        )
        return
    yield LifeStep(
        position=message["unit_position"],
        time=_time_at(tables, message["unit_position"]),
        what="rolled back",
        reason=_ENDS.get(message["unit_end"], message["unit_end"]) + "; it never had a number",
    )


def _birth(tables: Tables, message: Any) -> Iterator[LifeStep]:
    """Where a delayed message came to be available."""
    if message["birth_position"] is not None:
        yield LifeStep(
            position=message["birth_position"],
            time=_time_at(tables, message["birth_position"]),
            what="born",
            reason="its delivery delay was over",
        )


def _expiry(tables: Tables, gone: Any, held_by: str = "") -> LifeStep:
    """That its own time was over, or the maximum lifetime, and where it went."""
    where = gone["fate_position"]
    time, own = _time_at(tables, where), gone["expires_at"]
    over = "its time to live" if own is not None and own <= time else "the maximum lifetime"
    told = f"{held_by}{over} was over"
    if gone["moved_to"] is not None:
        told += f"; moved to {gone['moved_to']} as number {gone['moved_to_sequence']}"
    return LifeStep(position=where, time=time, what="expired", reason=told)


def _departure(
    tables: Tables, gone: Any, stays: list[Any], held_by: str = ""
) -> Iterator[LifeStep]:
    """Why it is where it stayed no longer, if nobody consumed it."""
    fate, where = gone["fate"], gone["fate_position"]
    if fate == "expired":
        yield _expiry(tables, gone, held_by)
    if fate not in ("moved", "removed", "dropped"):
        return
    rule = _BY_RULE.get(_reason_of_move(gone, stays)) if fate == "moved" else None
    if fate == "dropped":
        rule = "it came back more often than its redelivery limit allows, or followed one that did"
    told = rule or _by_hand(tables, where)
    if told is None:
        return
    if fate == "moved":
        told += f"; to {gone['moved_to']} as number {gone['moved_to_sequence']}"
    yield LifeStep(
        position=where, time=_time_at(tables, where), what=fate, reason=f"{held_by}{told}"
    )


_BY_RULE = {
    "redelivery-limit": "it came back more often than its redelivery limit allows",
    "group-parked": "it followed a message of its group that exceeded its redelivery limit",
}


def _reason_of_move(gone: Any, stays: list[Any]) -> str:
    """What the message says of why it was moved, where it came to."""
    for one in stays:
        place = one["queue"] if is_topic(one["queue"]) else f"queue:{one['queue']}"
        if (place, one["sequence"]) == (gone["moved_to"], gone["moved_to_sequence"]):
            return str(json.loads(one["origin"])["reason"]) if one["origin"] else ""
    return ""


def _by_hand(tables: Tables, position: int) -> str | None:
    """Who asked for it, and why; None of a correction, which is told for itself."""
    entry = tables.facts.operations.where(f.col("position") == position).first()
    if entry is None or entry["kind"] == "Correct":
        return None
    asked = json.loads(entry["settings"] or "{}")
    actor, reason = asked.get("actor", ""), asked.get("reason", "")
    how = "sent back to where it came from by" if asked.get("to_origin") else "by"
    return f"{how} {actor}: {reason}"


def _where(queue: str) -> str:
    return f"topic {plain_name(queue)}" if is_topic(queue) else f"queue {queue}"


def _called(one: Subscription) -> str:
    """A subscription as people read it."""
    if one.kind == "consumer":
        session, _, number = one.name.partition("/")
        return f"that of consumer {number} of session {session}"
    of_client = f" of client id {one.client_id}" if one.client_id else ""
    return f"{one.kind} subscription {one.name}{of_client}"


def _copies(
    tables: Tables,
    message: Any,
    copies: list[Any],
    subscriptions: dict[int, Subscription],
    stays: list[Any],
) -> Iterator[LifeStep]:
    """Which subscriptions got a topic message, and where they let go of it unconsumed."""
    if message["numbered_position"] is None:
        return
    names = ", ".join(_called(subscriptions[one["subscription"]]) for one in copies[:NAMED_MAX])
    more = ", ..." if len(copies) > NAMED_MAX else ""
    told = "no subscription wanted it" if not copies else f"{len(copies)} in all: {names}{more}"
    yield LifeStep(
        position=message["numbered_position"],
        time=message["enqueued_at"],
        what="published" if copies else "dropped",
        reason=told,
    )
    for copy in copies:
        one = subscriptions[copy["subscription"]]
        over = one.ended if one.stopped is None else one.stopped
        if copy["fate"] != "dropped" or over is None or copy["fate_position"] < over:
            yield from _departure(tables, copy, stays, f"in {_called(one)}: ")
        else:
            yield LifeStep(
                position=copy["fate_position"],
                time=_time_at(tables, copy["fate_position"]),
                what="dropped",
                reason=f"{_called(one)} ended: {one.why}",
            )


_ENDS = {
    "rollback": "its unit of work was rolled back",
    "Rollback": "its session rolled back",
    "Recover": "its session recovered",
    "close": "its session was closed",
    "CloseConsumer": "its consumer was closed before the application saw it",
    "lost": "its session was lost: nothing was heard of its client in time",
    "unconfirmed": "its session was never confirmed",
    "taken over": "another connection took over its session's client id",
    "ended": "its session was ended by administration",
    "rolled back": "its unit of work was rolled back by administration",
    "vanished": "the temporary destination ended with its connection",
    "released": "released by a correction",
}


def _delivery_steps(row: Any, subscriptions: dict[int, Subscription]) -> Iterator[LifeStep]:
    held = subscriptions.get(row["subscription"])
    whose = "" if held is None else f"; {_called(held)}"
    nth = row["backout_count"] + 1
    yield LifeStep(
        position=row["position"],
        time=row["delivered_at"],
        what="delivered" if nth == 1 else "redelivered",
        reason=f"to consumer {row['consumer']} of session {row['session']}, its delivery "
        f"{row['delivery']}; delivery count {nth}{whose}",
    )
    if row["settled_position"] is None or row["settled"] == "removed":
        return
    what = {"acknowledged": "acknowledged", "committed": "get committed"}.get(row["settled"])
    if what is not None:
        reason = f"by session {row['session']}: consumed{whose}"
    else:
        what = "returned"
        counted = "counts as a backout" if row["seen"] else "not seen, no backout"
        if row["blame"] == "uncounted":
            counted += ", but not against it: nobody was known to be handed it"
        reason = f"{_ENDS.get(row['how'], row['how'])}; {counted}"
    yield LifeStep(
        position=row["settled_position"], time=row["settled_at"], what=what, reason=reason
    )


def _corrections(tables: Tables, message: Any) -> Iterator[LifeStep]:
    for one in tables.facts.directory.corrections:
        key = (one.queue, one.created, one.sequence)
        if key == (message["queue"], message["queue_created"], message["sequence"]):
            done = "removed" if one.action == "REMOVE" else "released"
            yield LifeStep(
                position=one.position,
                time=_time_at(tables, one.position),
                what=f"{done} by administration",
                reason=f"{one.actor}: {one.reason}",
            )
    if message["fate"] == "purged":
        yield LifeStep(
            position=message["fate_position"],
            time=_time_at(tables, message["fate_position"]),
            what="purged",
            reason=f"{_where(message['queue'])} was deleted with what it held",
        )


def _relocations(tables: Tables, put_position: int, put_index: int) -> Iterator[LifeStep]:
    """Where its body was written again, so that the log below could be trimmed."""
    for position, actor, reason in relocations_of(tables, put_position, put_index):
        yield LifeStep(
            position=position,
            time=_time_at(tables, position),
            what="written again",
            reason=f"{actor}: {reason}; the message is what and where it was",
        )


def _time_at(tables: Tables, position: int) -> int:
    row = tables.facts.timeline.where(f.col("position") == position).first()
    return -1 if row is None else int(row["state_time"])
