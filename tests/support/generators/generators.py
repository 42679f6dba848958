"""The generator of histories that knows what would be legal; `naive_histories` knows nothing.

It asks the slow model for sessions, deliveries and open puts, so that its histories
get deep; now and then it errs on purpose.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from typing import Any

from hypothesis import strategies as st

from ledgermq.protocol import operations as op
from ledgermq.protocol.limits import TIMING_MS_MAX
from ledgermq.protocol.operations import Operation
from ledgermq.wire.framing.codec import decode_operation, encode_operation
from support.generators.administering import DELAYS_MS, Administering
from support.generators.handling_generators import HandlingWriter
from support.generators.naive_histories import BLIND, LEAPS_US, STEPS_US, Entry, naive_histories
from support.generators.naive_operations import (
    COLORS,
    MODES,
    QUEUES,
    SELECTORS,
    START_US,
    TEMPORARY,
    TIMINGS,
    naive_operations,
    sample_message,
)
from support.model.fold import Model
from support.scripts.verbs import identifier

__all__ = [
    "BUSY",
    "WEIGHTS",
    "Entry",
    "SeededWriter",
    "Writer",
    "informed_histories",
    "naive_histories",
    "naive_operations",
]

# Where much happens, so that what is rare happens to messages in flight too.
BUSY = "queue:q"


@cache
def _index_among(count: int) -> st.SearchStrategy[int]:
    """A strategy that is made once: making one takes longer than drawing from it."""
    return st.integers(0, count - 1)


class Writer(Administering, HandlingWriter):
    """Draws operations that suit the model's state."""

    weights: tuple[str, ...] = ()
    leaps_us = LEAPS_US

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.model = Model()
        self.time = START_US
        self.history: list[Entry] = []

    def one(self, choices: Any) -> Any:
        """One of the choices."""
        return choices[self.draw(_index_among(len(choices)))]

    def history_of(self, steps: int) -> list[Entry]:
        """What it writes in a prelude, and in so many steps or fewer."""
        self.prelude()
        for _ in range(self.draw(st.integers(1, steps))):
            self.step()
        return self.history

    def write(self, operation: Operation | bytes) -> None:
        """Appends an operation and lets the model follow."""
        value = encode_operation(operation) if isinstance(operation, Operation) else operation
        self.model.apply(decode_operation(value), self.model.position + 1, self.time)
        self.history.append(Entry(value, self.time))

    def common(self, session: dict[str, Any]) -> dict[str, Any]:
        """Handle and numbers of the session's next operation."""
        return {
            "session": session["session"],
            "session_sequence": session["last"] + 1,
            "answered_through": self.one((0, 0, session["last"])),
            "handed_through": self.one((0, 0, 0, 0, 0, 1, 3, session["next_delivery"])),
        }

    def step_among(self, kinds: Sequence[str], pauses_us: Sequence[int]) -> None:
        """One step of one of some kinds, by one of the sessions."""
        self.time += self.one(pauses_us)
        if not self.model.sessions:
            self.open()
        kind = self.one(kinds)
        if kind == "worker":
            self.worker()
        else:
            getattr(self, kind)(self.one(self.model.sessions))

    def some_of(self, numbers: list[int]) -> list[op.DeliveryRange]:
        """Ranges of some of the numbers, seldom with one that does not belong there."""
        chosen = [number for number in numbers if self.draw(st.booleans())]
        if self.one((False,) * 9 + (True,)):
            chosen.append(self.draw(st.integers(0, max(numbers, default=0) + 2)))
        found: list[op.DeliveryRange] = []
        for number in chosen:
            if found and found[-1]["last"] == number - 1 and self.draw(st.booleans()):
                found[-1]["last"] = number
            else:
                found.append({"first": number, "last": number})
        return found

    def step(self) -> None:
        """One entry."""
        self.time += self.one(STEPS_US)
        sessions = self.model.sessions
        kind = self.one(self.weights or WEIGHTS)
        if kind == "open" or not sessions:
            self.open()
        elif kind == "worker":
            self.worker()
        elif kind == "again":
            self.write(self.one(self.history).value or b"\0")
        elif kind == "naive":
            self.write(self.draw(BLIND))
        else:
            getattr(self, kind)(self.one(sessions))

    def prelude(self) -> None:
        """Two sessions with consumers and credit, and messages for them."""
        self.open()
        self.open()
        if self.draw(st.booleans()):
            self.configure(self.model.sessions[0])
        for session in self.model.sessions[:2]:
            for _ in range(2):
                self.consume(session)
        self.put(self.model.sessions[0])
        for session in self.model.sessions[:2]:
            self.settle(session)
            self.consume(session)
        for session in self.model.sessions[:2]:
            self.receive(session)
        self.put(self.model.sessions[0], BUSY)

    def receive(self, session: dict[str, Any]) -> None:
        """A consumer that takes whatever the busy queue has."""
        number = max((one["number"] for one in self.model.consumers_of(session)), default=0) + 1
        common = self.common(session)
        self.write(op.OpenConsumer(**common, consumer=number, destination=BUSY, selector=""))
        self.write(op.Get(**self.common(session), consumer=number, credit=10))

    def open(self) -> None:
        """A session of one of three connections; that of c is a client that is known by name."""
        name = self.one("aabcd")
        self.write(
            op.Open(
                connection=identifier(name),
                lane=0,
                session_key=identifier(str(len(self.history))),
                acknowledge_mode=self.one(MODES),
                suspect_timeout_ms=self.one((1_000, 10_000)),
                client_id="client" if name in "cd" else "",
                takeover=b"token" if name in "cd" else b"",
                redelivery_delay_ms=self.one((0, 0, *DELAYS_MS)),
            )
        )

    def worker(self) -> None:
        """What a worker writes."""
        handles = [one["session"] for one in self.model.sessions]
        kind = self.one(("tick", "suspect", "agreed", "leap"))
        if kind == "suspect":
            chosen = [handle for handle in handles if self.draw(st.booleans())]
            self.write(op.Suspect(worker="w", sessions=chosen))
        elif kind == "agreed":
            self.time += self.one(self.leaps_us)
            self.write(op.TimeAgreed(worker="w", writer_time=self.time))
        else:
            self.time += self.one(self.leaps_us) if kind == "leap" else 0
            self.write(op.Tick(worker="w"))

    def put(self, session: dict[str, Any], destination: str | None = None) -> None:
        """Some messages."""
        count = self.one((1, 1, 2, 5))
        place = len(self.history) * 10
        messages = [
            sample_message(
                place + one,
                self.one((4, 4, 4, 9, 0)),
                1,
                self.one(COLORS),
                self.one(TIMINGS),
                self.one((-1, -1, -1, 0, 1)),
            )
            for one in range(count)
        ]
        self.write(
            op.Put(
                **self.common(session),
                destination=destination or self.destination(),
                messages=messages,
            )
        )

    def destination(self) -> str:
        """A queue, a topic, or a temporary one of a connection."""
        kind = self.one(("busy", "busy", "busy", "queue", "queue", "topic", "topic", "temporary"))
        if kind == "busy":
            return BUSY
        if kind == "topic":
            return "topic:" + self.one("tu")
        if kind == "queue":
            return "queue:" + self.one(QUEUES)
        owned = [one for one in (*self.model.queues, *self.model.topics) if one["owner"]]
        if not owned:
            return "queue:" + TEMPORARY + "q"
        chosen = self.one(owned)
        return ("topic:" if chosen in self.model.topics else "queue:") + str(chosen["name"])

    def temporary(self, session: dict[str, Any]) -> None:
        """A temporary queue or topic of the session's connection."""
        name = f"temporary/{session['connection'].hex()}/{self.one('xy')}"
        kind = self.one(("queue:", "topic:"))
        self.write(op.CreateTemporary(**self.common(session), destination=kind + name))

    def unsubscribe(self, session: dict[str, Any]) -> None:
        """The end of a durable subscription, or of a topic."""
        if self.one((True, True, False)):
            self.write(op.Unsubscribe(**self.common(session), subscription=self.one("sr")))
        else:
            topic, purge = self.one("tu"), self.draw(st.booleans())
            self.write(op.DeleteTopic(**self.common(session), topic=topic, purge=purge))

    def subscribe(self, session: dict[str, Any]) -> None:
        """A consumer of a topic, with credit, of one of the four kinds."""
        used = [one["number"] for one in self.model.consumers_of(session)]
        number = max(used, default=0) + 1
        kind = self.one(("alone", "durable", "shared", "both"))
        self.write(
            op.OpenConsumer(
                **self.common(session),
                consumer=number,
                destination="topic:" + self.one("tu"),
                selector=self.one(SELECTORS),
                redelivery_delay_ms=self.one((-1, -1, -1, *DELAYS_MS)),
                no_local=kind in ("alone", "durable") and self.one((False, False, True)),
                subscription="" if kind == "alone" else self.one("ssr"),
                durable=kind in ("durable", "both"),
                shared=kind in ("shared", "both"),
            )
        )
        if session["session"] in [one["session"] for one in self.model.sessions]:
            self.write(op.Get(**self.common(session), consumer=number, credit=self.one((1, 2, 10))))

    def consume(self, session: dict[str, Any]) -> None:
        """A consumer, or credit for one."""
        mine = [one["number"] for one in self.model.consumers_of(session) if one["open"]]
        used = [one["number"] for one in self.model.consumers_of(session)]
        if not mine or self.one((False, False, True)):
            number = max(used, default=0) + 1
            self.write(
                op.OpenConsumer(
                    **self.common(session),
                    consumer=number,
                    destination=self.destination(),
                    selector=self.one(SELECTORS),
                    redelivery_delay_ms=self.one((-1, -1, -1, *DELAYS_MS)),
                )
            )
        else:
            number, credit = self.one(mine), self.one((1, 2, 10))
            self.write(op.Get(**self.common(session), consumer=number, credit=credit))

    def flights(self, session: dict[str, Any], consumer: int | None = None) -> list[int]:
        """Numbers of deliveries in flight."""
        held = self.model.flight(session)
        return [one["delivery"] for one in held if consumer in (None, one["consumer"])]

    def settle(self, session: dict[str, Any]) -> None:
        """Commit or acknowledge of some deliveries."""
        named = self.some_of(self.flights(session))
        if session["mode"] == "TRANSACTED":
            puts = len(self.model.open_puts(session))
            self.write(op.Commit(**self.common(session), deliveries=named, puts=puts))
        else:
            self.write(op.Acknowledge(**self.common(session), deliveries=named))

    def back(self, session: dict[str, Any]) -> None:
        """Rollback or recover, some of it seen."""
        kind = op.Rollback if session["mode"] == "TRANSACTED" else op.Recover
        self.write(kind(**self.common(session), seen=self.some_of(self.flights(session))))

    def reject(self, session: dict[str, Any]) -> None:
        """Some of what one consumer holds goes back, or goes at once; seldom too much is named."""
        consumers = [one["number"] for one in self.model.consumers_of(session)]
        holding = [number for number in consumers if self.flights(session, number)]
        number = self.one(holding or consumers or [1])
        named = self.some_of(self.flights(session, number))
        if self.one((False,) * 9 + (True,)):
            number, named = number + self.one((0, 1)), [{"first": 1, "last": 9}]
        requeue = self.one((False, True))
        delays_ms = (-1, -1, 0, 1_000, 60_000, TIMING_MS_MAX) if requeue else (-1,) * 9
        fields = {
            "deliveries": named,
            "requeue": requeue,
            "reason": self.one(("", "", "", "why", "why", "x" * 1_025)),
            "redelivery_delay_ms": self.one((*delays_ms, -2, 5)),
        }
        self.write(op.Reject(**self.common(session), consumer=number, **fields))

    def close(self, session: dict[str, Any]) -> None:
        """End of a session."""
        self.write(op.Close(**self.common(session), seen=self.some_of(self.flights(session))))

    def hand_over(self, session: dict[str, Any]) -> None:
        """Word of the delivery in doubt, of another one in flight, or of none."""
        doubts = [self.model.doubt(one) for one in self.model.consumers_of(session)]
        told = [one for one in doubts if one] or [*self.flights(session), 0, 1]
        self.write(op.Alive(**self.common(session), handing=self.one(told)))

    def lose(self, session: dict[str, Any]) -> None:
        """A session that is not heard of again, and one that gets what it held."""
        self.write(op.Suspect(worker="w", sessions=[session["session"]]))
        self.time += 10_000_000
        self.write(op.Tick(worker="w"))
        if self.model.sessions:
            self.receive(self.one(self.model.sessions))

    def close_consumer(self, session: dict[str, Any]) -> None:
        """End of a consumer, if there is one, or that it gives something back."""
        mine = [one["number"] for one in self.model.consumers_of(session) if one["open"]]
        # One that holds something, if there is one: most of them do not.
        holding = [number for number in mine if self.flights(session, number)]
        number = self.one(holding or mine or [1])
        unseen = self.some_of(self.flights(session, number))
        kind = self.one((op.CloseConsumer, op.GiveBack))
        self.write(kind(**self.common(session), consumer=number, unseen=unseen))


class SeededWriter(Writer):
    """Chooses by a seed, for histories that are always the same."""

    def __init__(self, seed: int) -> None:
        super().__init__(draw=None)  # type: ignore[arg-type]
        self.random = random.Random(seed)

    def one(self, choices: Any) -> Any:
        """One of the choices."""
        return self.random.choice(choices)

    def grow(self, steps: int) -> list[Entry]:
        """A history of about so many entries."""
        self.prelude()
        for _ in range(steps):
            self.step()
        return self.history


WEIGHTS = (
    *("put", "put", "put", "put", "consume", "consume", "consume", "consume", "consume"),
    *("subscribe", "subscribe", "subscribe", "temporary", "unsubscribe"),
    *("settle", "settle", "settle", "back", "back", "open", "close", "close_consumer"),
    *("worker", "worker", "again", "administer", "administer", "naive", "handle", "handle"),
    *("handle", "handle", "configure", "configure", "back", "back"),
    *("lose", "lose", "hand_over", "hand_over", "hand_over"),
)


# Histories in which much is rejected; apart, so that all others stay what they are.
MUCH_REJECTED = (
    *("put", "put", "put", "consume", "consume", "consume", "configure", "configure"),
    *("reject", "reject", "reject", "reject", "settle", "back", "worker", "close_consumer"),
    *("lose", "hand_over", "again", "naive", "administer"),
)


@st.composite
def informed_histories(
    draw: st.DrawFn, steps: int = 30, weights: tuple[str, ...] = ()
) -> list[Entry]:
    """Histories that reach deep states; `weights`: kinds of steps, as often as they are named."""
    writer = Writer(draw)
    writer.weights = weights
    if draw(st.booleans()):
        writer.prelude()
    for _ in range(draw(st.integers(1, steps))):
        writer.step()
    return writer.history
