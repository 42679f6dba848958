"""Random histories of puts that come twice: at once, late, waiting, in units of work (§5)."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from ledgermq.protocol import operations as op
from ledgermq.protocol.settings import given_settings
from support.generators.generators import WEIGHTS, Entry, Writer
from support.generators.naive_operations import sample_message

DEDUPLICATION_WEIGHTS = (
    *(one for one in WEIGHTS if one not in ("administer", "naive", "subscribe", "temporary")),
    *("put",) * 16,
    *(
        "settle",
        "settle",
        "settle",
        "back",
        "alter",
        "alter",
        "limit",
        "make_room",
        "crowd",
        "delete",
    ),
)
PLACES = ("queue:q", "queue:q", "queue:q", "queue:r", "topic:t")
IDS = ("a", "a", "b", "b", "c", "d")


class DeduplicationWriter(Writer):
    """Draws puts of few ids to destinations that remember few of them, and not for long."""

    weights = DEDUPLICATION_WEIGHTS

    def prelude(self) -> None:
        """Destinations that look for puts that come twice, and sessions of both kinds."""
        self.open()
        first = self.model.sessions[0]
        for make in (self.alter, self.alter_other, self.alter_topic):
            make(first)
        super().prelude()

    def put(self, session: dict[str, Any], destination: str | None = None) -> None:
        """A put of one of few ids, sometimes of none, sometimes to be refused, or to wait."""
        name = self.one((*IDS * 3, None, None, "", "x" * 129))
        blocking_ms = self.one((0, 0, 0, 1_000, 60_000))
        self._put(session, destination or self.one(PLACES), name, blocking_ms)

    def _put(
        self, session: dict[str, Any], destination: str, name: str | None, blocking_ms: int
    ) -> None:
        place = len(self.history) * 10
        count, priority = self.one((1, 1, 2, 3)), self.one((4,) * 12 + (11,))
        self.write(
            op.Put(
                **self.common(session),
                destination=destination,
                messages=[sample_message(place + one, priority, 1) for one in range(count)],
                blocking_ms=blocking_ms,
                deduplication_id=name,
            )
        )

    def window(self) -> dict[str, int | None]:
        """A window of a moment or of long, or of as many ids as are drawn, or more."""
        given = self.one(((50, 9), (1_000, 9), (60_000, 1), (60_000, 2), (60_000, 9), (0, 0)))
        window_ms, ids_max = self.one((given, given, given, (None, 2), (60_000, None), (5, 0)))
        return {"deduplication_window_ms": window_ms, "deduplication_ids_max": ids_max}

    def alter(self, session: dict[str, Any]) -> None:
        """Another window; the queue is made first, if it is not there."""
        self._alter(session, "q")

    def alter_other(self, session: dict[str, Any]) -> None:
        """Another window of the other queue."""
        self._alter(session, "r")

    def _alter(self, session: dict[str, Any], queue: str) -> None:
        kind = op.AlterQueue if self.model.queue(queue) else op.CreateQueue
        given = self.window()
        if kind is op.CreateQueue:
            given = {name: value or 0 for name, value in given.items()}
        self.write(kind(**self.common(session), queue=queue, **given))

    def alter_topic(self, session: dict[str, Any]) -> None:
        """Another window of the topic."""
        kind = op.AlterTopic if self.model.topic("t") else op.CreateTopic
        given = {name: value or 0 for name, value in self.window().items()}
        self.write(kind(**self.common(session), topic="t", **given))

    def limit(self, session: dict[str, Any]) -> None:
        """A queue has no room for much, or takes no puts, or is as it was."""
        settings = {
            "puts_disabled": self.one((True, False, False)),
            "messages_max": self.one((0, 0, 1, 3)),
        }
        given = given_settings(settings)
        self.write(op.AlterQueue(**self.common(session), queue="q", settings=given))

    def crowd(self, session: dict[str, Any]) -> None:
        """Puts of one id wait for a quota, of several sessions, until there is room."""
        self._room(session, 3)
        for name in (None, None, "e", "e"):
            self._put(self.one(self.model.sessions), "queue:q", name, 60_000)
        if self.draw(st.booleans()):
            self.make_room(session)

    def make_room(self, session: dict[str, Any]) -> None:
        """A queue has room again."""
        self._room(session, 0)

    def _room(self, session: dict[str, Any], messages_max: int) -> None:
        settings = {
            "messages_max": messages_max,
        }
        given = given_settings(settings)
        self.write(op.AlterQueue(**self.common(session), queue="q", settings=given))

    def delete(self, session: dict[str, Any]) -> None:
        """A queue goes, with what it remembers."""
        self.write(op.DeleteQueue(**self.common(session), queue=self.one("qr"), purge=True))


@st.composite
def deduplication_histories(draw: st.DrawFn, steps: int = 40) -> list[Entry]:
    """Histories in which puts come twice."""
    return DeduplicationWriter(draw).history_of(steps)
