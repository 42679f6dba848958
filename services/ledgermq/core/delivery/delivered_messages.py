"""Messages as outcomes and pages of answers have them; the shell adds their contents."""

from __future__ import annotations

from ledgermq.core.puts.grouping import group_record
from ledgermq.core.state.held_header import NOTHING_SAID
from ledgermq.core.state.records import GroupedMessage, Message
from ledgermq.protocol.outcomes import EMPTY_HEADER, DeliveredHeader, DeliveredMessage


def delivered_message(message: Message) -> DeliveredMessage:
    record: DeliveredMessage = {
        "sequence": message.sequence,
        "put_position": message.put_position,
        "put_index": message.put_index,
        "message_id": message.message_id,
        "priority": message.priority,
        "persistent": message.persistent,
        "backout_count": message.backout_count,
        "enqueued_at": message.enqueued_at,
        "content": b"",
    }
    if message.body is not None:
        record["body"] = message.body
    if (
        message.header is not None
        or message.times is not None
        or message.origin is not None
        or message.group is not None
    ):
        header = _delivered_header(message)
        if header != EMPTY_HEADER:
            record["header"] = header
    return record


def _delivered_header(message: Message) -> DeliveredHeader:
    header, times = message.header or NOTHING_SAID, message.times
    return {
        "properties": header.properties,
        "correlation_id": header.correlation_id,
        "type": header.type,
        "expires_at": -1 if times is None else times.expires_at,
        "deliver_at": -1 if times is None else times.deliver_at,
        "group": group_record(message) if isinstance(message, GroupedMessage) else None,
        "origin": message.origin,
    }
