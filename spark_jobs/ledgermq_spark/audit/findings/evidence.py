"""Evidence: one finding of the audit, with what was expected and what was found where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# An anomaly that concerns many messages names this many of them.
MESSAGES_NAMED_MAX = 5

# The audit's words, in the order in which a report lists them.
ANOMALY_KINDS = (
    "altered operations",
    "altered copy",
    "gap",
    "lost",
    "duplicated",
    "unexpected",
    "reordered",
    "torn transaction",
    "altered outcome",
    "state mismatch",
    "digest mismatch",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One anomaly: what it is, which message it concerns, where it shows, expected and found.

    `position` and `index` name the outcome (or the operation) where it shows; `source` says which
    comparison found it. Empty or -1: not known or not applicable.
    """

    kind: str
    summary: str
    source: str
    queue: str = ""
    message_id: str = ""
    position: int = -1
    index: int = -1
    session: int = -1
    field: str = ""
    expected: str = ""
    found: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, for JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


def hexadecimal(identifier: bytes | bytearray | None) -> str:
    """An identifier as people read it."""
    return "" if identifier is None else bytes(identifier).hex()


def shown(value: Any) -> str:
    """A value as evidence shows it."""
    if isinstance(value, bytes | bytearray):
        return hexadecimal(value)
    return "" if value is None else str(value)
