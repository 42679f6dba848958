"""Histories of topics: who wants what, what nobody wants, what goes on by bindings."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from ledgermq.protocol import operations as op
from support.generators.generators import Entry, Writer
from support.generators.naive_operations import TIMINGS, sample_message
from support.model.moves import SETTINGS

TOPICS = ("t", "u")
# Where a topic may send what nobody wants: to the other one, to a queue, nowhere.
TARGETS = ("topic:t", "topic:u", "queue:q", "queue:q", "")
STEPS = (
    *("publish", "publish", "publish", "publish", "publish", "change", "change", "change"),
    *("subscribe", "subscribe", "receive", "settle", "settle", "back", "close_consumer"),
    *("close", "open_one", "unsubscribe", "manage", "come_back", "handle", "worker", "temporary"),
)
PAUSES_US = (0, 0, 1_000, 1_000_000)
# Names of several words, and patterns of which most take some of them in.
WORDY = ("t", "t.a", "t.a/b", "u", "u/b")
PATTERNS = (*WORDY, "t.*", "*", "#", "#", "t.#", "#/b", "t.#.a", "t.#/b", "*.a/#", "t*", "#.#")
BINDING_STEPS = (*STEPS, *("bind",) * 6, "unbind", "unbind", "delete_topic")


class UnroutedWriter(Writer):
    """Draws operations on two topics and the queue that what nobody wants may go to."""

    names: tuple[str, ...] = TOPICS
    kinds: tuple[str, ...] = STEPS

    def begin(self) -> None:
        """Sessions, the queue, and both topics, of which one sends somewhere."""
        self.open()
        self.open()
        first = self.model.sessions[0]
        self.write(op.CreateQueue(**self.common(first), queue="q"))
        for topic in TOPICS:
            self.write(op.CreateTopic(**self.common(first), topic=topic))
        self.change(first)
        self.publish(first)

    def publish(self, session: dict[str, Any]) -> None:
        """Messages that some subscriptions select, in a unit of work where there are such."""
        place = len(self.history) * 10
        messages = [
            sample_message(
                place + one, self.one((4, 9)), 1, self.one(("", "red")), self.one(TIMINGS)
            )
            for one in range(self.one((1, 2, 3)))
        ]
        topic = "topic:" + self.one(self.names)
        self.write(op.Put(**self.common(session), destination=topic, messages=messages))

    def change(self, session: dict[str, Any]) -> None:
        """Whether a topic moves what nobody wants, and where to."""
        topic = self.one(TOPICS)
        target = self.one([one for one in (*TARGETS, None) if one != f"topic:{topic}"])
        if target and self.model.place(target) is None:
            target = None
        settings = dict.fromkeys(SETTINGS) | {"error_destination": target}
        moves = self.one((True, True, True, None, False))
        told = {"settings": settings, "moves_unrouted": moves}
        if self.model.topic(topic) is None:
            told = {"settings": settings, "moves_unrouted": bool(moves)}
            self.write(op.CreateTopic(**self.common(session), topic=topic, **told))
        else:
            self.write(op.AlterTopic(**self.common(session), topic=topic, **told))

    def manage(self, session: dict[str, Any]) -> None:
        """What topics inherit that name no error destination."""
        target = self.one(("queue:q", "topic:u", ""))
        if target and self.model.place(target) is None:
            target = ""
        told = dict.fromkeys(self.redelivery()) | {"error_destination": target}
        self.write(op.AlterQueueManager(**self.common(session), redelivery=told))

    def come_back(self, session: dict[str, Any]) -> None:
        """A message of the queue comes back too often, and goes to a topic from there."""
        target = self.one(("topic:t", "topic:u"))
        if self.model.place("queue:q") is None or self.model.place(target) is None:
            return
        told = {"error_destination": target, "redelivery_limit": 0}
        settings = dict.fromkeys(SETTINGS) | told
        self.write(op.AlterQueue(**self.common(session), queue="q", settings=settings))
        self.put(session, "queue:q")

    def open_one(self, session: dict[str, Any]) -> None:
        """One session more, that subscribes."""
        self.open()
        self.subscribe(self.model.sessions[-1])

    def step(self) -> None:
        """One entry or a few."""
        self.step_among(self.kinds, PAUSES_US)


class BindingWriter(UnroutedWriter):
    """Draws bindings of topics to others and to queues as well."""

    names = WORDY
    kinds = BINDING_STEPS

    def begin(self) -> None:
        """What others begin with, a second queue, and a binding."""
        super().begin()
        first = self.model.sessions[0]
        self.write(op.CreateQueue(**self.common(first), queue="r"))
        self.bind(first)
        self.publish(first)

    def bind(self, session: dict[str, Any]) -> None:
        """Topics are bound, or bound otherwise; seldom to what is not there."""
        destinations = ("queue:q", "queue:r", "queue:r", "topic:t", "topic:u", "topic:x", "q")
        selectors = ("", "", "color = 'red'", "JMSPriority > 5", "color =")
        told = {"topics": self.one(PATTERNS), "destination": self.one(destinations)}
        self.write(op.Bind(**self.common(session), **told, selector=self.one(selectors)))

    def unbind(self, session: dict[str, Any]) -> None:
        """A binding is ended, seldom one that is not there."""
        told = [(one["topics"], one["destination"]) for one in self.model.bindings]
        topics, destination = self.one([*told, *told, ("t", "queue:x")])
        told = {"topics": topics, "destination": destination}
        self.write(op.Unbind(**self.common(session), **told))

    def delete_topic(self, session: dict[str, Any]) -> None:
        """A topic goes, if nothing keeps it; it is made again by its next use."""
        topic, purge = self.one(self.names), self.one((True, True, False))
        self.write(op.DeleteTopic(**self.common(session), topic=topic, purge=purge))


@st.composite
def binding_histories(draw: st.DrawFn, steps: int = 20) -> list[Entry]:
    """Histories in which it matters what bindings hand on."""
    return _written_by(BindingWriter(draw), steps)


@st.composite
def unrouted_histories(draw: st.DrawFn, steps: int = 20) -> list[Entry]:
    """Histories in which it matters what becomes of messages that nobody wants."""
    return _written_by(UnroutedWriter(draw), steps)


def _written_by(writer: UnroutedWriter, steps: int) -> list[Entry]:
    writer.begin()
    for _ in range(steps):
        writer.step()
    return writer.history
