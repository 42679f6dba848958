"""Histories of groups that keep their order while messages of theirs are delayed (§15)."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from ledgermq.protocol import operations as op
from support.generators.generators import BUSY, Entry, Writer
from support.generators.naive_operations import sample_message
from support.model.moves import SETTINGS

STEPS = (
    *("fill", "fill", "fill", "receive", "receive", "back", "back", "back", "back", "back"),
    *("settle", "settle", "close_consumer", "close", "worker", "worker", "worker", "change"),
    *("correct", "handle", "handle", "open_one", "lose", "hand_over", "fail", "fail"),
)
DELAYS_MS = (1_000, 1_000, 5_000, 20_000)

PAUSES_US = (0, 0, 1_000, 1_000_000, 5_000_000)


class GroupOrderWriter(Writer):
    """Draws operations on a queue or a topic whose groups keep their order."""

    busy = BUSY
    dead: tuple[str, ...] = ()

    def begin(self) -> None:
        """A queue with messages of a few groups, and sessions that take them."""
        for _ in range(self.one((2, 3))):
            self.open()
        self.busy = self.one((BUSY, "topic:t"))
        first = self.model.sessions[0]
        self.write(op.CreateQueue(**self.common(first), queue="old"))
        self.dead = self.one(((), (*("queue:old",) * 5, "")))
        told = {"group_affinity": self.one((False, False, False, True))}
        told["unacknowledged_max"] = self.one((0, 0, 0, 2))
        self.write(op.CreateQueue(**self.common(first), queue="q", settings=self.kept(), **told))
        self.write(op.CreateTopic(**self.common(first), topic="t", settings=self.kept()))
        if self.dead and self.one((True, False, False)):
            # What comes too often goes in a circle.
            circle = self.kept() | {"error_destination": self.busy}
            self.write(op.AlterQueue(**self.common(first), queue="old", settings=circle))
        self.fill(first)
        for session in self.model.sessions[:]:
            self.receive(session)
        self.fill(first)
        if self.dead:
            self.fail(first)

    def kept(self) -> dict[str, Any]:
        """Settings that keep the order of groups, most often."""
        return dict.fromkeys(SETTINGS) | {
            "keeps_group_order": self.one((True, True, True, True, False)),
            "redelivery_delay_override_ms": self.one(DELAYS_MS),
            "redelivery_limit": self.one((0, 0, 1, None) if self.dead else (None, None, 1)),
            "error_destination": self.one(self.dead or (None,)),
            "fifo_mode": self.one((None, None, None, "PROTECTED", "SERIALIZED")),
        }

    def fill(self, session: dict[str, Any]) -> None:
        """Messages of some groups, and of none."""
        place = len(self.history) * 10
        messages = []
        for one in range(self.one((1, 3, 5))):
            color = self.one(("", "red"))
            message = sample_message(place + one, self.one((4, 4, 4, 9, 0)), 1, color)
            name = self.one(("x", "x", "y", None))
            if name is not None:
                header = message.setdefault("header", sample_message(0, 4, 1, "red")["header"])
                header["properties"] = {**header["properties"], "JMSXGroupID": name}
            messages.append(message)
        self.write(op.Put(**self.common(session), destination=self.busy, messages=messages))
        if session["mode"] == "TRANSACTED":
            puts = len(self.model.open_puts(session))
            self.write(op.Commit(**self.common(session), deliveries=[], puts=puts))

    def receive(self, session: dict[str, Any]) -> None:
        """A consumer with some credit; some of those of the queue select."""
        told: dict[str, Any] = {}
        destination = self.one((self.busy, self.busy, self.busy, "queue:old"))
        if destination.startswith("topic:"):
            told = {"subscription": "s", "durable": True, "shared": True}
        number = max((one["number"] for one in self.model.consumers_of(session)), default=0) + 1
        selector = "" if told else self.one(("", "", "", "color = 'red'"))
        opened = {"consumer": number, "destination": destination, "selector": selector, **told}
        self.write(op.OpenConsumer(**self.common(session), **opened))
        credit = self.one((1, 1, 2, 9))
        self.write(op.Get(**self.common(session), consumer=number, credit=credit))

    def fail(self, session: dict[str, Any]) -> None:
        """All that a session holds comes back twice: messages of groups are parked, if ever."""
        kind = op.Rollback if session["mode"] == "TRANSACTED" else op.Recover
        self.receive(session)
        for _ in range(2):
            seen = [{"first": one, "last": one} for one in self.flights(session)]
            self.write(kind(**self.common(session), seen=seen))

    def change(self, session: dict[str, Any]) -> None:
        """Other settings."""
        if self.model.queue("q") is not None:
            self.write(op.AlterQueue(**self.common(session), queue="q", settings=self.kept()))
        if self.model.topic("t") is not None and self.one((False, True)):
            self.write(op.AlterTopic(**self.common(session), topic="t", settings=self.kept()))

    def open_one(self, session: dict[str, Any]) -> None:
        """One session more, that takes messages."""
        del session
        self.open()
        self.receive(self.model.sessions[-1])

    def step(self) -> None:
        """One entry or a few."""
        self.step_among(STEPS, PAUSES_US)


@st.composite
def group_order_histories(draw: st.DrawFn, steps: int = 30) -> list[Entry]:
    """Histories in which messages wait for delayed ones of their groups."""
    writer = GroupOrderWriter(draw)
    writer.begin()
    for _ in range(draw(st.integers(1, steps))):
        writer.step()
    return writer.history
