"""Histories of groups: items of a few group ids, consumers with get options, and what ends both.

Mostly what comes next in a group is put and got, so that groups are completed and got; now and
then something is put twice, behind the last, in the wrong unit of work, or with another priority.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from ledgermq.protocol import operations as op
from ledgermq.protocol.settings import given_settings
from support.generators.generators import BUSY, Entry, SeededWriter, Writer
from support.generators.naive_operations import sample_message
from support.scripts.verbs import group_id, identifier

Row = dict[str, Any]
AFFINE = "queue:s"
IDS = tuple(group_id(name) for name in "GHS")
FLAGS = ("logical_order", "all_messages_available", "all_segments_available", "complete_message")
# Which of the flags, and which fields to match, consumers ask for.
WAYS = (
    *((), ("logical_order",), ("logical_order",), ("logical_order", "all_messages_available")),
    *(("all_messages_available",), ("all_segments_available",), ("complete_message",)),
    *(("logical_order", "complete_message"), ("logical_order", "all_segments_available")),
    ("logical_order", "all_messages_available", "complete_message"),
)
MATCHED = ("group_id", "group_sequence", "offset", "sequence", "message_id", "correlation_id")
MODES = (*(("CLIENT", "TRANSACTED") * 4), "AUTO", "INDIVIDUAL")
TIMINGS = (*((None,) * 8), (1_000, 0, 0), (0, 1_000, 0), (2_000, 1_000, 0))
SELECTORS = (*(("",) * 5), "color = 'red'", "JMSXGroupSeq = 1", "JMSXGroupID IS NULL")


class GroupWriter(Writer):
    """Draws operations with groups that suit the model's state."""

    def chance(self, of: int) -> bool:
        """Once in so many times."""
        return bool(self.one((True,) + (False,) * (of - 1)))

    def some_of(self, numbers: list[int]) -> list[op.DeliveryRange]:
        """All of the numbers, their beginning, or some of them."""
        kind = self.one(("all", "all", "beginning", "some", "none"))
        if kind in ("beginning", "none"):
            numbers = numbers[: self.one((1, 2)) if kind == "beginning" else 0]
        if kind == "some":
            numbers = [number for number in numbers if self.one((True, False))]
        return [{"first": number, "last": number} for number in numbers]

    def prelude(self) -> None:
        """Sessions with consumers of a queue of groups, and of one with group affinity."""
        for _ in range(3):
            self.open()
        first = self.model.sessions[0]
        affine = AFFINE.removeprefix("queue:")
        common = self.common(first)
        self.write(op.CreateQueue(**common, queue=affine, group_affinity=True))
        for session in list(self.model.sessions):
            self.consume(session)
            self.consume(session)

    def step(self) -> None:
        """One entry."""
        self.time += self.one((0, 0, 0, 0, 1_000, 500_000, 1_000_000))
        kind = self.one(self.weights or WEIGHTS)
        sessions = self.model.sessions
        if not sessions or (kind == "open" and len(sessions) < 6):
            self.open()
        elif kind == "tick":
            self.write(op.Tick(worker="w"))
        elif kind == "again":
            self.write(self.one(self.history).value or b"\0")
        elif kind != "open":
            self.act(kind, self.one(sessions))

    def act(self, kind: str, session: Row) -> None:
        """An operation of a session; for one without an effect, credit or messages instead."""
        holds = bool(self.flights(session))
        idle = not holds and not self.model.open_puts(session)
        if kind in ("settle", "back", "reject") and idle and not self.chance(10):
            kind = self.one(("put", "consume"))
        doubts = [self.model.doubt(one) for one in self.model.consumers_of(session)]
        if kind == "hand_over" and not any(doubts):
            kind = "consume"
        getattr(self, kind)(session)

    def put(self, session: Row, destination: str | None = None) -> None:
        """Some messages, most of them of groups."""
        destination = destination or self.one((BUSY, BUSY, BUSY, AFFINE))
        messages: list[op.PutMessage] = []
        for number in range(self.one((1, 1, 2, 3))):
            timing, color = self.one(TIMINGS), self.one(("", "red"))
            place = len(self.history) * 10 + number
            message = sample_message(place, self.one((4, 4, 4, 4, 9)), 1, color, timing)
            if not self.chance(5):
                header = message.setdefault("header", sample_header())
                header["group"] = self.group(session, destination, messages)
            if self.chance(4):
                header = message.setdefault("header", sample_header())
                header["correlation_id"] = self.one("ab")
            if self.chance(8):
                header = message.setdefault("header", sample_header())
                header["properties"] = {"JMSXGroupID": self.one(("x", "y", 7))}
            messages.append(message)
        if self.chance(60):
            destination = "topic:t"
        self.write(op.Put(**self.common(session), destination=destination, messages=messages))
        if session["mode"] == "TRANSACTED" and self.one((True, False)):
            self.settle(session)

    def group(self, session: Row, destination: str, before: list[op.PutMessage]) -> op.Group:
        """What comes next in a group, or seldom anything."""
        name = self.one(IDS)
        store = destination.removeprefix("queue:")
        known = [one["group"] for one in self.model.items(store, name)]
        mine = [one["group"] for one in self.model.open_puts(session) if one["queue"] == store]
        mine += [one["header"].get("group") for one in before if "header" in one]
        known += [one for one in mine if one is not None and one["group_id"] == name]
        number = max((one["group_sequence"] for one in known), default=0)
        here = [one for one in known if one["group_sequence"] == number]
        is_open = bool(here) and here[-1]["segment"]
        is_open = is_open and not any(one["last_segment"] for one in here)
        if name == IDS[-1]:
            offset = max((one["offset"] + one["length"] for one in known), default=0)
            return self.segment(name, 1, offset, in_group=False, last=False)
        if is_open:
            offset = max(one["offset"] + one["length"] for one in here)
            last = here[-1]["last_in_group"]
            return self.segment(name, number, offset, in_group=True, last=last)
        if any(one["last_in_group"] for one in known) or self.chance(5):
            # What is missing, what is there, or what lies behind.
            number = self.one((0, 1, 2, 3))
        last = self.chance(3)
        if self.chance(3):
            return self.segment(name, number + 1, 0, in_group=True, last=last)
        return item(name, number + 1, last=last, ordered=self.chance(4))

    def segment(
        self, name: bytes, number: int, offset: int, *, in_group: bool, last: bool
    ) -> op.Group:
        """A segment, mostly the one that comes next."""
        offset = self.one((*((offset,) * 10), 0, 5, offset + 5))
        found = item(name, number, last=last, ordered=self.chance(5))
        found |= {"in_group": in_group, "segment": True, "offset": offset}
        found |= {"length": self.one((5, 5, 5, 5, 5, 7)), "last_segment": self.chance(2)}
        return found

    def consume(self, session: Row) -> None:
        """A consumer, and credit with options for it."""
        mine = [one["number"] for one in self.model.consumers_of(session) if one["open"]]
        if mine and not self.chance(5):
            self.get(session)
            return
        used = [one["number"] for one in self.model.consumers_of(session)]
        number = max(used, default=0) + 1
        self.write(
            op.OpenConsumer(
                **self.common(session),
                consumer=number,
                destination=self.one((BUSY, BUSY, BUSY, AFFINE)),
                selector=self.one(SELECTORS),
                redelivery_delay_ms=self.one((-1, -1, 0, 500)),
            )
        )
        if any(one is session for one in self.model.sessions):
            self.get(session, number)

    def segmented(self, session: Row) -> None:
        """A whole logical message in segments, in a group or in none, in any order."""
        in_group, number = self.one((True, False)), self.one((1, 2))
        name = self.one(IDS[:2]) if in_group else IDS[-1]
        messages = []
        for offset in self.one(((0, 5), (5, 0), (0, 5, 10))):
            found = item(name, number if in_group else 1, last=False, ordered=False)
            found |= {"in_group": in_group, "segment": True, "offset": offset, "length": 5}
            found["last_segment"] = False
            message = sample_message(len(self.history) * 10 + offset, 4, 1)
            message["header"] = sample_header() | {"group": found}  # type: ignore[assignment]
            messages.append(message)
        highest = max(messages, key=lambda one: one["message_id"])
        group = highest["header"]["group"]
        assert group is not None
        group["last_segment"] = True
        self.write(op.Put(**self.common(session), destination=BUSY, messages=messages))
        if session["mode"] == "TRANSACTED":
            self.settle(session)

    def contest(self, session: Row) -> None:
        """Two units of work that put the same to a group: what is numbered later clashes."""
        rivals = [one for one in self.model.sessions if one["mode"] == "TRANSACTED"][:2]
        name, number = self.one(IDS[:2]), self.one((1, 2, 3))
        for rival in rivals:
            message = sample_message(len(self.history) * 10, 4, 1, "", self.one(TIMINGS))
            header = message.setdefault("header", sample_header())
            header["group"] = item(name, number, last=self.chance(2), ordered=False)
            common = self.common(rival)
            self.write(op.Put(**common, destination=BUSY, messages=[message]))
        for rival in rivals:
            if any(one is rival for one in self.model.sessions):
                self.settle(rival)

    def get(self, session: Row, number: int | None = None) -> None:
        """Credit for a consumer, often with other options."""
        mine = [one for one in self.model.consumers_of(session) if one["open"]]
        if not mine:
            return
        consumer = next((one for one in mine if one["number"] == number), self.one(mine))
        options = None if self.chance(2) and number is None else self.options(consumer)
        self.write(
            op.Get(
                **self.common(session),
                consumer=consumer["number"],
                credit=self.one((0, 1, 1, 2, 5)),
                options=options,
            )
        )

    def options(self, consumer: Row) -> op.GetOptions:
        """Flags, and seldom fields of a message that is there to match."""
        found = dict.fromkeys(FLAGS, False) | dict.fromkeys(self.one(WAYS), True)
        found |= {"message_id": b"", "correlation_id": None, "group_id": b""}
        found |= {"group_sequence": 0, "offset": -1, "sequence": -1}
        wanted = self.model.available(consumer["queue"])
        if wanted and self.chance(3):
            message = self.one(wanted)
            group = message["group"] or {}
            values = {
                "message_id": message["message_id"],
                "correlation_id": self.one((None, "a", "b")),
                "sequence": message["sequence"],
                "group_id": group.get("group_id", b""),
                "group_sequence": group.get("group_sequence", 1),
                "offset": group.get("offset", 0),
            }
            names = {self.one(MATCHED), self.one(MATCHED)}
            found |= {name: values[name] for name in sorted(names)}
        place = consumer["place"]
        if place is not None and self.one((True, False)):
            # What comes next, or what does not.
            number = place[1] + self.one((0, 0, 1))
            found |= {"group_id": place[0], "group_sequence": number, "offset": place[2]}
            found["logical_order"] = True
        return found  # type: ignore[return-value]

    def alter(self, session: Row) -> None:
        """Group affinity, suspension and limits of a queue."""
        queue = self.one((BUSY, AFFINE))
        self.write(
            op.AlterQueue(
                **self.common(session),
                queue=queue.removeprefix("queue:"),
                group_affinity=self.one((None, True, True, False)),
                gets_disabled=self.one((None, False, False, True)),
                unacknowledged_max=self.one((None, 0, 0, 2)),
                settings=given_settings(
                    {
                        "redelivery_limit": self.one((None, -1, 0, 1)),
                        "error_destination": self.one((None, "", AFFINE)) if queue == BUSY else "",
                    }
                ),
            )
        )

    def open(self) -> None:
        """A session of one of four connections, few of them INDIVIDUAL."""
        name = self.one("abcd")
        self.write(
            op.Open(
                connection=identifier(name),
                lane=0,
                session_key=identifier(str(len(self.history))),
                acknowledge_mode=self.one(MODES),
                suspect_timeout_ms=1_000,
                redelivery_delay_ms=self.one((0, 0, 0, 1_000)),
            )
        )

    def receive(self, session: Row) -> None:
        """What follows the loss of a session: a consumer with options."""
        self.consume(session)


def sample_header() -> op.Header:
    """A header with nothing in it."""
    return {**op.NO_HEADER, "properties": {}}


def item(name: bytes, number: int, *, last: bool, ordered: bool) -> Any:
    """A single message of a group."""
    return {
        "group_id": name,
        "group_sequence": number,
        "offset": 0,
        "length": 0,
        "in_group": True,
        "last_in_group": last,
        "segment": False,
        "last_segment": False,
        "logical_order": ordered,
    }


WEIGHTS = (
    *(("put",) * 10),
    *(("consume",) * 8),
    *(("settle",) * 6),
    *("back", "back", "open", "close_consumer", "tick", "hand_over", "hand_over", "correct"),
    *(("put", "consume", "settle") * 4),
    *("lose", "close", "again", "alter", "back", "hand_over", "contest", "contest"),
    *(("segmented",) * 4),
)


@st.composite
def group_histories(draw: st.DrawFn, steps: int = 40, weights: tuple[str, ...] = ()) -> list[Entry]:
    """Histories that are full of groups; `weights`: kinds of steps, as often as they are named."""
    writer = GroupWriter(draw)
    writer.weights = weights
    return writer.history_of(steps)


class SeededGroupWriter(SeededWriter, GroupWriter):
    """Operations of groups for logs that are always the same."""
