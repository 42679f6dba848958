"""What a copy that a replay put says of itself, as properties: of what, and by which replay."""

from __future__ import annotations

from typing import Final

from ledgermq.wire.content.journaled import JournaledMessage

MESSAGE_ID: Final = "LedgerMQ_ReplayedMessageId"
FROM: Final = "LedgerMQ_ReplayedFrom"
REPLAY: Final = "LedgerMQ_Replay"


def put_named(queue_manager: str, put_position: int, put_index: int) -> str:
    """The value of `FROM`: where the original was put, and which message of its Put it was."""
    return f"{queue_manager}@{put_position}/{put_index}"


def marks_of(queue_manager: str, one: JournaledMessage, replay: str) -> dict[str, str]:
    """The properties that a copy of a message has of a replay of this name."""
    put = put_named(queue_manager, one.put_position, one.put_index)
    return {MESSAGE_ID: one.message_id, FROM: put, REPLAY: replay}
