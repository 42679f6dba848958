"""Down to where a full place drains before puts that wait for its quota go on (§16)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, eq=False, repr=False)
class ResumeMark:
    """When puts that wait for a quota go on: when it has drained to so much (§16); 0: to the quota.

    `holds_up`: one had to wait for it, and it has not drained since.
    """

    messages: int
    bytes: int
    holds_up: bool = False

    def is_reached(self, held_messages: int, held_bytes: int) -> bool:
        """Whether what is held is no more than the marks."""
        too_many = self.messages and held_messages > self.messages
        too_much = self.bytes and held_bytes > self.bytes
        return not (too_many or too_much)
