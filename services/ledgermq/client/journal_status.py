"""What is told of the last backup of the journal."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ledgermq.client.instants import datetime_from

__all__ = ["JournalBackup"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalBackup:
    """A backup of the journal, as the log tells it.

    Attributes:
        position: Log position of the operation that told of it.
        time: Log time there.
        through: It archived everything that came into the journal below this position.
        kept_from: What came in below this position left the journal, expired.
        needed_from: From where on the journal needs the log since.
    """

    position: int
    time: datetime
    through: int
    kept_from: int
    needed_from: int

    @classmethod
    def from_document(cls, document: dict[str, Any] | None) -> JournalBackup | None:
        """From the worker's document."""
        if document is None:
            return None
        told = {name: document[name] for name in cls.__dataclass_fields__}
        return cls(**told | {"time": datetime_from(document["time"])})
