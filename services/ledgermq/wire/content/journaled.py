"""A message of the journal, as a reader of the log or of an archive has it (PROTOCOL.md §21)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ledgermq.wire.framing.codec import decode_record


@dataclass(frozen=True, slots=True, kw_only=True)
class JournaledMessage:
    """A message as it was put, and where in the journal and in the archive it stands.

    Attributes:
        position: Log position of the entry that gave it its number: there it came in.
        put_position: Log position of its Put; `put_index` its place therein.
        destination: Where it was put to, under the number `sequence`.
        message_id: 32 hexadecimal digits.
        enqueued_at: Log time at which it got its number.
        expires_at: When it expires in the journal, by the lifetime that was then; None: never.
        expired: Whether it had, when the journal was last looked at.
        priority: 0 to 9.
        persistent: Delivery mode as its sender asked for it.
        header: A `message.Header` as its sender gave it; None: there was none.
        content: A framed `message.Content`, as its sender wrote it.
        is_live: Whether it is in the journal still; None: nobody looked.
        backup: Number of the backup, its `through`, that has it; None: none.
    """

    position: int
    put_position: int
    put_index: int
    destination: str
    sequence: int
    message_id: str
    enqueued_at: datetime
    expires_at: datetime | None
    expired: bool
    priority: int
    persistent: bool
    header: dict[str, Any] | None
    content: bytes
    is_live: bool | None
    backup: int | None

    @classmethod
    def from_row(
        cls, row: Mapping[str, Any], *, is_live: bool | None, backup: int | None
    ) -> JournaledMessage:
        """From a row of `journal.JOURNAL_COLUMNS`."""
        told = {name: row[name] for name in cls.__dataclass_fields__ if name in row}
        header = row["header"]
        return cls(
            **told
            | {
                "header": None if header is None else decode_record(bytes(header))[1],
                "content": bytes(row["content"]),
                "enqueued_at": _aware(row["enqueued_at"]),
                "expires_at": None if row["expires_at"] is None else _aware(row["expires_at"]),
                "is_live": is_live,
                "backup": backup,
            }
        )

    @property
    def properties(self) -> dict[str, Any]:
        """What its sender gave along."""
        return {} if self.header is None else dict(self.header["properties"])


def _aware(moment: datetime) -> datetime:
    """Files of older backups have times without a zone; those are in UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
