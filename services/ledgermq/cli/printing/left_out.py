"""What a replay or a republishing leaves out, as no copy can be made of it: counted and named."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from ledgermq.cli.printing.output import Output, count_of
from ledgermq.wire.content.journaled import JournaledMessage
from ledgermq.wire.content.replayed import put_named

NAMED_MAX: Final = 10


@dataclass(slots=True, kw_only=True)
class LeftOut:
    """How many messages of a queue manager, and of the first ones where they were put and why."""

    queue_manager: str
    count: int = 0
    named: list[str] = field(default_factory=list)

    def add(self, one: JournaledMessage, why: str) -> None:
        """One more, of which the log still has something."""
        self.count += 1
        if len(self.named) < NAMED_MAX:
            place = put_named(self.queue_manager, one.put_position, one.put_index)
            self.named.append(f"{place}, message {one.message_id}: {why}")

    def say(self, output: Output) -> str:
        """Says which; returns what is to be added to a sentence that says how many were put."""
        for one in self.named:
            output.remark(f"left out: the message put at {one}")
        if self.count > len(self.named):
            more = count_of(self.count - len(self.named), "message")
            output.remark(f"left out: {more} more")
        they = "it" if self.count == 1 else "they"
        why = f", {self.count:,} left out because {they} cannot be put again"
        return why if self.count else ""

    def document(self) -> dict[str, Any]:
        """As members of a JSON document."""
        return {"left_out": self.count, "unreadable": self.named}
