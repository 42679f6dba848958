"""Histories of one busy queue: its FIFO mode or who is active changes, or who comes first."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from ledgermq.protocol import operations as op
from support.generators.generators import BUSY, Entry, Writer
from support.generators.naive_operations import TIMINGS, sample_message
from support.model.moves import SETTINGS

STRICT = ("PROTECTED", "PROTECTED", "SERIALIZED", "SERIALIZED", "CONCURRENT")
STEPS = (
    *("settle", "settle", "settle", "settle", "settle", "back", "back", "back", "fill", "fill"),
    *("receive", "receive", "close_consumer", "close_consumer", "close", "lose", "correct"),
    *("change", "hand_over", "worker", "open_one", "end_other"),
    *("overtake", "overtake"),
)

PAUSES_US = (0, 0, 1_000, 1_000_000)


class FifoWriter(Writer):
    """Draws operations on a queue that is not fully concurrent."""

    def begin(self) -> None:
        """A queue with messages in a mode, and sessions that take them one or a few at a time."""
        for _ in range(self.one((2, 3))):
            self.open()
        first = self.model.sessions[0]
        self.write(op.CreateQueue(**self.common(first), queue="q", settings=self.mode()))
        self.fill(first)
        for session in self.model.sessions[:]:
            self.receive(session)

    def mode(self) -> dict[str, Any]:
        """Settings that name a mode."""
        return dict.fromkeys(SETTINGS) | {"fifo_mode": self.one(STRICT)}

    def fill(self, session: dict[str, Any]) -> None:
        """Messages for the queue, in a unit of work where there are such."""
        place = len(self.history) * 10
        priorities = self.one(((4, 4, 4), (4, 4), (4, 9, 4), (0, 4, 9), (4, 4, 4, 4, 4)))
        messages = [self.message(place + one, each) for one, each in enumerate(priorities)]
        self.write(op.Put(**self.common(session), destination=BUSY, messages=messages))

    def message(self, number: int, priority: int) -> op.PutMessage:
        """A message, which may be red or have times."""
        return sample_message(number, priority, 1, self.one(("", "", "red")), self.one(TIMINGS))

    def change(self, session: dict[str, Any]) -> None:
        """Another mode."""
        self.write(op.AlterQueue(**self.common(session), queue="q", settings=self.mode()))

    def receive(self, session: dict[str, Any]) -> None:
        """A consumer of the queue with some credit; some select, some take segments whole."""
        number = max((one["number"] for one in self.model.consumers_of(session)), default=0) + 1
        selector = self.one(("", "", "", "color = 'red'"))
        told = {"destination": BUSY, "selector": selector, **self.asked()}
        self.write(op.OpenConsumer(**self.common(session), consumer=number, **told))
        self.write(op.Get(**self.common(session), consumer=number, credit=self.one((1, 1, 2, 9))))

    def asked(self) -> dict[str, Any]:
        """What else a consumer asks for."""
        return {}

    def settle(self, session: dict[str, Any]) -> None:
        """The first that the session holds, or the last, or some."""
        held = self.flights(session)
        kind = self.one(("first", "first", "last", "some"))
        if not held or kind == "some":
            super().settle(session)
            return
        number = held[0] if kind == "first" else held[-1]
        named: list[op.DeliveryRange] = [{"first": number, "last": number}]
        if session["mode"] == "TRANSACTED":
            puts = len(self.model.open_puts(session))
            self.write(op.Commit(**self.common(session), deliveries=named, puts=puts))
        else:
            self.write(op.Acknowledge(**self.common(session), deliveries=named))

    def overtake(self, session: dict[str, Any]) -> None:
        """A message that comes before what is held, which then goes back; others wait for both."""
        message = sample_message(len(self.history) * 10, 9, 1)
        common = self.common(session)
        self.write(op.Put(**common, destination=BUSY, messages=[message]))
        if self.model.sessions:
            self.receive(self.one(self.model.sessions))
            self.back(session)

    def open_one(self, session: dict[str, Any]) -> None:
        """One session more, that takes messages."""
        self.open()
        self.receive(self.model.sessions[-1])

    def step(self) -> None:
        """One entry or a few."""
        self.step_among(STEPS, PAUSES_US)


class SingleActiveWriter(FifoWriter):
    """Draws operations on a queue that, mostly, delivers to one consumer at a time."""

    active: tuple[bool, ...] = (True, True, True, False)

    def mode(self) -> dict[str, Any]:
        """Settings that seldom name a mode."""
        modes = (None, None, None, "SERIALIZED", "PROTECTED")
        return dict.fromkeys(SETTINGS) | {"fifo_mode": self.one(modes)}

    def fill(self, session: dict[str, Any]) -> None:
        """The setting is there before the first messages."""
        if not self.model.messages:
            self.change(session)
        super().fill(session)

    def message(self, number: int, priority: int) -> op.PutMessage:
        """A message, perhaps of a group."""
        message, group = super().message(number, priority), self.one((None, None, "x", "y"))
        if group is not None:
            header = message.get("header") or sample_message(0, 4, 1, "red")["header"]
            properties = header["properties"] | {"JMSXGroupID": group}
            message["header"] = header | {"properties": properties}
        return message

    def change(self, session: dict[str, Any]) -> None:
        """Whether one is active, group affinity, and a limit of what a session may hold."""
        on, most = self.one(self.active), self.one((None, None, 0, 2))
        common = self.common(session)
        told = {"single_active_consumer": on, "unacknowledged_max": most}
        told["group_affinity"] = self.one((None, None, True, False))
        self.write(op.AlterQueue(**common, queue="q", settings=self.mode(), **told))


class ConsumerPriorityWriter(SingleActiveWriter):
    """Draws operations on a queue some of whose consumers come before others."""

    active = (False, False, False, True)

    def asked(self) -> dict[str, Any]:
        """A priority of the consumer, as close to another one and as far as there is."""
        return {"consumer_priority": self.one((0, 0, 1, 1, 5, -1, -(2**31), 2**31 - 1))}


@st.composite
def fifo_histories(
    draw: st.DrawFn, kind: type[FifoWriter] = FifoWriter, steps: int = 20
) -> list[Entry]:
    """Histories in which it matters who is in turn, by a kind of writer."""
    writer = kind(draw)
    writer.begin()
    for _ in range(steps):
        writer.step()
    return writer.history


def single_active_histories() -> st.SearchStrategy[list[Entry]]:
    """Histories in which it matters who is active."""
    return fifo_histories(SingleActiveWriter)


def consumer_priority_histories() -> st.SearchStrategy[list[Entry]]:
    """Histories in which it matters whose priority is higher."""
    return fifo_histories(ConsumerPriorityWriter)
