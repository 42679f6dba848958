"""How administration reaches the queue manager: operations on the log, questions to its worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ledgermq.client.engine.engine import Engine
from ledgermq.client.link.questions import Answer, Questions
from ledgermq.protocol.operations import SessionOperation
from ledgermq.protocol.outcomes import Administered


class AdminLink:
    """The control session of a connection, and its questions, each within one time-out."""

    def __init__(
        self, control: Callable[[], Engine], questions: Questions, timeout_seconds: float
    ) -> None:
        self._control = control
        self._questions = questions
        self.timeout_seconds = timeout_seconds

    def ask(self, kind: str, not_before: int = -1, **more: Any) -> Answer:
        """The whole answer to a question."""
        return self._questions.ask(
            kind, timeout_seconds=self.timeout_seconds, not_before=not_before, **more
        )

    def pages(self, kind: str, not_before: int) -> Iterator[Answer]:
        """The answer to a question page by page, each true at a position of its own."""
        return self._questions.pages(
            kind, timeout_seconds=self.timeout_seconds, not_before=not_before
        )

    def change(
        self, operation: type[SessionOperation], *, about: str | None = None, **fields: Any
    ) -> int:
        """Writes an operation about a destination or none; the log position of its outcome."""
        engine = self._control()
        steps = engine.administer(operation, about, fields, result=lambda reply: reply.position)
        return engine.run(steps).position

    def administer(
        self, operation: type[SessionOperation], *, about: str | None = None, **fields: Any
    ) -> Administered:
        """Writes an operation that touches messages; what it did."""
        engine = self._control()
        reply = engine.run(engine.administer(operation, about, fields))
        assert isinstance(reply, Administered), "operations by hand are answered by Administered"
        return reply


class AdminPart:
    """One kind of administration; it may be of the same object as the others."""

    def __init__(self, link: AdminLink) -> None:
        self._link = link
