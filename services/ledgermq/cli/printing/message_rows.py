"""How messages are printed: as a table, as bodies alone, or as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import click

from ledgermq.cli.options.bodies import body_document, body_line
from ledgermq.cli.printing.output import Column, Output, plain
from ledgermq.client.messages.message import Message
from ledgermq.errors import MessageUndecodableError

GROUP_DIGITS_SHOWN: Final = 12

COLUMNS: Final = (
    Column(key="sequence", heading="SEQUENCE", number=True),
    Column(key="priority", heading="PRI", number=True),
    Column(key="delivery_count", heading="DELIVERY", number=True),
    Column(key="timestamp", heading="ENQUEUED", whole=True),
    Column(key="message_id", heading="MESSAGE ID", whole=True),
    Column(key="group", heading="GROUP", whole=True, detail=True),
    Column(key="body", heading="BODY", cut=True),
)


def print_messages(output: Output, messages: Iterable[Message], *, body_only: bool) -> int:
    """Print messages as they come and return how many; a table for people is printed at the end."""
    rows: list[dict[str, Any]] = []
    found = 0
    for message in messages:
        found += 1
        if output.as_json:
            output.line(message_document(message))
        elif body_only:
            try:
                body = body_line(message.unloaded_body)
            except MessageUndecodableError as error:
                # Beside the bodies: it hides none.
                output.remark(str(error))
                continue
            # What goes on to a program is the body itself.
            click.echo(plain(body) if output.for_people else body)
        else:
            rows.append(_row(message, for_people=output.for_people))
    if rows:
        again = any(row["delivery_count"] > 1 for row in rows) or not output.for_people
        output.table([one for one in COLUMNS if again or one.key != "delivery_count"], rows)
    return found


def _row(message: Message, *, for_people: bool) -> dict[str, Any]:
    enqueued = message.timestamp
    return {
        "sequence": message.sequence,
        "priority": message.priority,
        "delivery_count": message.delivery_count,
        # The day is left out where room is dear; --json has all of it.
        "timestamp": f"{enqueued:%H:%M:%S} UTC" if for_people else enqueued,
        "message_id": message.message_id,
        "group": _group(message, for_people=for_people),
        "body": shown_body(message),
    }


def shown_body(message: Message) -> str:
    """The body as a line of a table, or why it cannot be read: that hides no other message."""
    try:
        return body_line(message.unloaded_body)
    except MessageUndecodableError as error:
        return f"({error})"


def _group(message: Message, *, for_people: bool) -> str:
    """Group id and number, `+` and the offset of a segment; a group's last message ends in `!`."""
    if message.group_id is None:
        return ""
    group_id = message.group_id.hex()
    last = "!" if message.group_status == "LAST_MESSAGE_IN_GROUP" else ""
    offset = "" if message.segment_status == "NOT_A_SEGMENT" else f"+{message.offset}"
    shown = group_id[:GROUP_DIGITS_SHOWN] if for_people else group_id
    return f"{shown}:{message.group_sequence}{offset}{last}"


def message_document(message: Message) -> dict[str, Any]:
    """All of a message for JSON; `undecodable` says why, in place of what cannot be read."""
    try:
        content = {"reply_to": message.reply_to, **body_document(message.unloaded_body)}
    except MessageUndecodableError as error:
        content = {"undecodable": str(error)}
    return {
        "message_id": message.message_id,
        "queue": message.destination.removeprefix("queue:"),
        "sequence": message.sequence,
        "priority": message.priority,
        "persistent": message.persistent,
        "delivery_count": message.delivery_count,
        "redelivered": message.redelivered,
        "enqueued_at": message.timestamp,
        "deliver_at": message.deliver_at,
        "expires_at": message.expires_at,
        "put_position": message.put_position,
        "put_index": message.put_index,
        "correlation_id": message.correlation_id,
        "type": message.type,
        "group_id": None if message.group_id is None else message.group_id.hex(),
        "group_sequence": message.group_sequence,
        "group_status": message.group_status,
        "offset": message.offset,
        "segment_status": message.segment_status,
        "properties": dict(message.properties),
        **content,
    }
