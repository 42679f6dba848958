"""Messages as a reader of the journal, or of a stretch of the log, has them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ledgermq.wire.content.content import encode_content
from ledgermq.wire.content.journaled import JournaledMessage
from ledgermq.wire.content.message_header import make_header

ORIGINAL = "0a" * 16
ENQUEUED = datetime(2026, 1, 1, tzinfo=UTC)


def journaled(
    body: Any,
    *,
    destination: str = "queue:q",
    position: int = 7,
    number: int = 0,
    enqueued_at: datetime = ENQUEUED,
    **header: Any,
) -> JournaledMessage:
    """A message that came in at a position; its number is also its id, but for 0."""
    properties = header.pop("properties", None)
    plain = (header.pop(name, None) for name in ("correlation_id", "type"))
    made = make_header(properties, *plain, **header)
    return JournaledMessage(
        position=position,
        put_position=position,
        put_index=number,
        destination=destination,
        sequence=number,
        message_id=ORIGINAL if not number else f"{number:032x}",
        enqueued_at=enqueued_at,
        expires_at=None,
        expired=False,
        priority=7,
        persistent=False,
        header=made,
        content=encode_content(body, reply_to="queue:answers", client_time=0),
        is_live=True,
        backup=None,
    )
