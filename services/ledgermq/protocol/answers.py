"""What a question to a queue manager is answered with (PROTOCOL.md §9)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ledgermq.protocol.outcomes import Delivered, DeliveredMessage, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a question is answered with; contents of messages are for the caller to fill in.

    `reason` and `detail` are those of a refusal, else empty. `next` says from where to ask on, if
    this is not all. `is_large`: contents may be more than one record takes.
    """

    document: Any = None
    messages: list[DeliveredMessage] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    reason: str = ""
    detail: str = ""
    next: str = ""
    is_large: bool = False

    @property
    def unfilled(self) -> list[list[DeliveredMessage]]:
        """All messages of the answer, whose contents the caller fills in."""
        delivered = [one.messages for one in self.outcomes if isinstance(one, Delivered)]
        return [self.messages, *delivered]
