"""States that are too large for one record: each part of them is made by plain operations."""

from __future__ import annotations

from typing import Any

from ledgermq.core import operations as op
from ledgermq.core.apply import apply, new_state
from ledgermq.core.grouping import NO_HEADER
from ledgermq.core.outcomes import Opened, Outcome

__all__ = ["CONNECTION", "LargeState"]

START_US = 1_790_000_000_000_000
CONNECTION = bytes(15) + b"\x01"


class LargeState:
    """A state that grows by operations of one connection; time goes on by a millisecond each.

    Attributes:
        state: The state.
        position: Where the next operation will stand on the log.
        keeps_replies: Whether the client never says that it has read a reply.
    """

    def __init__(self) -> None:
        self.state = new_state()
        self.position = 0
        self.keeps_replies = False
        self._numbers: dict[int, int] = {}

    def open(self, mode: str = "CLIENT", connection: bytes = CONNECTION, **more: Any) -> int:
        """Opens a session; its handle."""
        found = self._apply(
            op.Open(
                connection=connection,
                lane=0,
                session_key=self.position.to_bytes(16, "big"),
                acknowledge_mode=mode,
                suspect_timeout_ms=10_000,
                **more,
            )
        )
        (opened,) = found
        assert isinstance(opened, Opened), f"{opened} is not expected"
        self._numbers[opened.session] = 0
        return opened.session

    def do(self, kind: type[op.Operation], session: int, **more: Any) -> list[Outcome]:
        """Applies an operation of a session; its outcomes."""
        number = self._numbers[session] = self._numbers[session] + 1
        through = 0 if self.keeps_replies else number - 1
        common = {"session": session, "session_sequence": number, "answered_through": through}
        return self._apply(kind(**common | more))

    def put(
        self, session: int, destination: str, count: int = 1, **properties: Any
    ) -> list[Outcome]:
        """Puts messages with properties, or without a header."""
        return self.do(
            op.Put,
            session,
            destination=destination,
            messages=[_message(index, properties) for index in range(count)],
        )

    def _apply(self, operation: op.Operation) -> list[Outcome]:
        found = apply(self.state, operation, self.position, START_US + 1_000 * self.position)
        self.position += 1
        return [one.outcome for one in found]


def _message(index: int, properties: dict[str, Any]) -> op.PutMessage:
    message: op.PutMessage = {
        "message_id": index.to_bytes(16, "big"),
        "priority": 4,
        "persistent": True,
        "content": b"x",
    }
    if properties:
        message["header"] = {**NO_HEADER, "properties": properties}
    return message
