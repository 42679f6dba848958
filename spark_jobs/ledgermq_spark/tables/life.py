"""The life of one message, step by step, with positions, times and reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ledgermq_spark.laws.law import Facts


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


# All events of the puts that bear an id, and where the first was written again for a trim.
EVENTS: Final = """
SELECT * FROM {{events}}
WHERE queue_manager = '{queue_manager}' AND message_id = unhex('{message_id}')
"""
WRITTEN_AGAIN: Final = """
SELECT position, time_us, actor, why FROM {{applied}} JOIN {{clock}} USING (queue_manager, position)
WHERE queue_manager = '{queue_manager}' AND kind = 'Relocate' AND reply = 'Administered'
    AND exists(arrays_zip(
        from_json(settings, 'put_positions array<long>').put_positions,
        from_json(settings, 'put_indexes array<long>').put_indexes),
        one -> one.put_positions = {put_position} AND one.put_indexes = {put_index})
ORDER BY position
"""


def life_of(facts: Facts, queue_manager: str, message_id: bytes) -> Life | None:
    """Tell the life of the message with that id; the first put, should two bear it.

    A message that was moved is told from its Put to where it is now.
    """
    named = {"queue_manager": queue_manager, "message_id": message_id.hex()}
    found = facts.query(EVENTS.format(**named)).collect()
    if not found:
        return None
    first = min((row["put_position"], row["put_index"]) for row in found)
    put = dict(zip(("put_position", "put_index"), first, strict=True))
    rows = [row for row in found if (row["put_position"], row["put_index"]) == first]
    rows.sort(key=lambda row: (row["position"], row["step"]))
    steps = [
        LifeStep(
            position=row["position"],
            time=row["time_us"],
            what=row["event"],
            reason=_reason(row, before),
        )
        for before, row in zip([None, *rows], rows, strict=False)
    ]
    steps += [
        LifeStep(
            position=row["position"],
            time=row["time_us"],
            what="written again",
            reason=f"{row['actor']}: {row['why']}; the message is what and where it was",
        )
        for row in facts.query(WRITTEN_AGAIN.format(**named, **put)).collect()
    ]
    last = [row for row in rows if row["kind"] != "subscription"][-1]
    backouts = {row["store"]: row["backouts"] for row in rows if row["store"] is not None}
    is_topic = last["kind"] == "topic"
    return Life(
        queue_manager=queue_manager,
        message_id=message_id.hex(),
        queue=last["destination"].removeprefix("queue:"),
        sequence=last["sequence"],
        priority=last["priority"],
        fate=last["event"] if last["after"] == "gone" else last["after"],
        backout_count=sum(backouts.values()) if is_topic else last["backouts"],
        steps=sorted(steps, key=lambda step: step.position),
        **put,
    )


# What administration does not bring about, though it may follow from what it does.
FOLLOWING: Final = ("added", "born", "delivered", "due", "numbered")


def _reason(row: Any, before: Any) -> str:
    """Where it happened, through whom, and why; `before` is what happened before it."""
    reason = row["reason"]
    if row["event"] == "arrived" and row["entry"] != "CopyMessages" and before is not None:
        reason = f"it came from {_place(before)}"
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
    if row["actor"] and row["event"] not in FOLLOWING:
        told += f"; {row['actor']}: {row['why']}"
    return told


def _place(row: Any) -> str:
    """The queue, topic or subscription of an event."""
    where = row["destination"].replace(":", " ", 1)
    return f"subscription {row['subscription']} of {where}" if row["subscription"] else str(where)
