"""States that are too large for one record: each part of them is made by plain operations."""

from __future__ import annotations

from typing import Any

from ledgermq.core.apply import apply, new_state
from ledgermq.protocol import operations as op
from ledgermq.protocol.operations import NO_HEADER
from ledgermq.protocol.outcomes import Enqueued, Opened, Outcome

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
        found = self.apply(
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
        return self.apply(kind(**common | more))

    def put(
        self, session: int, destination: str, count: int = 1, size: int = 1, **properties: Any
    ) -> list[Outcome]:
        """Puts messages of some size with properties, or without a header."""
        header: op.Header | None = {**NO_HEADER, "properties": properties} if properties else None
        messages = [_message(index, size, header) for index in range(count)]
        return self.do(op.Put, session, destination=destination, messages=messages)

    def grouped(
        self, session: int, destination: str, group_id: bytes, number: int, **more: Any
    ) -> Outcome:
        """Puts one message of a group; `more` are other fields of its group."""
        group: op.Group = {
            "group_id": group_id,
            "group_sequence": number,
            "offset": 0,
            "length": 0,
            "in_group": True,
            "last_in_group": False,
            "segment": False,
            "last_segment": False,
            "logical_order": False,
            **more,  # type: ignore[typeddict-item]
        }
        return self._put_grouped(session, destination, group, 1)

    def segment(self, session: int, destination: str, number: int, of: int, size: int) -> None:
        """Puts one segment of a logical message, the first of them with number 0."""
        group: op.Group = {
            "group_id": bytes(23) + b"s",
            "group_sequence": 1,
            "offset": number * size,
            "length": size,
            "in_group": False,
            "last_in_group": False,
            "segment": True,
            "last_segment": number == of - 1,
            "logical_order": False,
        }
        found = self._put_grouped(session, destination, group, size)
        assert isinstance(found, Enqueued), f"{found} is not expected"

    def _put_grouped(self, session: int, destination: str, group: op.Group, size: int) -> Outcome:
        message = _message(0, size, {**NO_HEADER, "group": group})
        (found,) = self.do(op.Put, session, destination=destination, messages=[message])
        return found

    def apply(self, operation: op.Operation) -> list[Outcome]:
        """Applies an operation; its outcomes."""
        found = apply(self.state, operation, self.position, START_US + 1_000 * self.position)
        self.position += 1
        return [one.outcome for one in found]


def _message(index: int, size: int, header: op.Header | None) -> op.PutMessage:
    message: op.PutMessage = {
        "message_id": index.to_bytes(16, "big"),
        "priority": 4,
        "persistent": True,
        "content": bytes(size),
    }
    if header is not None:
        message["header"] = header
    return message
