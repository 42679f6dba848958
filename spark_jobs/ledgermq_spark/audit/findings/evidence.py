"""Evidence: one finding of the audit, expected and found; and which of all are listed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

# A comparison looks at so many findings, the first ones.
EVIDENCE_MAX: Final = 200
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


def judge(primary: list[Evidence], secondary: list[Evidence]) -> tuple[list[Evidence], int]:
    """Anomalies to list, and how many further findings merely follow from them.

    A finding of a second opinion follows from a primary one that concerns the same message, place
    or session. Of second opinions that follow from one another only the first is listed.
    """
    order = {kind: at for at, kind in enumerate(ANOMALY_KINDS)}
    listed = sorted(primary, key=lambda one: (order[one.kind], one.position, one.index))
    consequences = 0
    for one in sorted(secondary, key=lambda one: (order[one.kind], one.position, one.index)):
        if any(_follows(one, earlier) for earlier in listed):
            consequences += 1
        else:
            listed.append(one)
    return listed, consequences


def _follows(one: Evidence, earlier: Evidence) -> bool:
    """Whether a finding is explained by an earlier one."""
    if one.source == earlier.source and one.field != earlier.field:
        return False
    if one.message_id and one.message_id in earlier.message_id:
        return True
    if one.session >= 0 and one.session == earlier.session:
        return True
    if one.message_id or one.session >= 0:
        # Another message is passed over, or resident, because one of the same queue is astray.
        return one.source in ("laws", "moves") and bool(one.queue) and one.queue == earlier.queue
    if one.queue:
        return earlier.queue in ("", one.queue)
    return one.position == earlier.position


def beyond_these(compared: Mapping[str, Sequence[Evidence]]) -> list[str]:
    """Of which comparisons there may be more findings than these, which are the first ones."""
    return [
        f"{what}: only the first {len(found):,} were looked at, there may be more"
        for what, found in compared.items()
        if len(found) >= EVIDENCE_MAX
    ]
