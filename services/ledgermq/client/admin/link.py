"""How administration reaches the queue manager: operations on the log, questions to its worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ledgermq.client.engine.engine import Engine
from ledgermq.client.link.questions import Answer, Questions
from ledgermq.protocol.operations import SessionOperation
from ledgermq.protocol.outcomes import Administered, Reply


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
        return self._write(operation, about, fields, lambda reply: reply.position).position

    def administer(
        self, operation: type[SessionOperation], *, about: str | None = None, **fields: Any
    ) -> Administered:
        """Writes an operation that touches messages; what it did."""
        reply = self._write(operation, about, fields)
        assert isinstance(reply, Administered), "operations by hand are answered by Administered"
        return reply

    def _write(
        self,
        operation: type[SessionOperation],
        about: str | None,
        fields: dict[str, Any],
        result: Callable[[Reply], Any] | None = None,
    ) -> Reply:
        """Writes an operation and waits for its reply.

        `result` is what resolving it returns, if the wait was given up; None: the reply.
        """
        engine = self._control()
        with engine.lock:
            engine.wait_for_room_locked()
            pending = engine.write_locked(operation, target=about, more=fields)
            pending.result = result
            return engine.await_locked(pending)
