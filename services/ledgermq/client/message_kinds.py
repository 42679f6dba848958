"""The kinds of message: told by the body, and made from a message that was received."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ledgermq.client.bytes_message import BytesMessage
from ledgermq.client.map_message import MapMessage
from ledgermq.client.property_access import PropertyAccess
from ledgermq.client.stream_message import StreamMessage
from ledgermq.client.typed_message import (
    ObjectMessage,
    PlainMessage,
    TextMessage,
    TypedMessage,
)
from ledgermq.wire.bodies import StreamBody
from ledgermq.wire.content import Body
from ledgermq.wire.objects import ObjectBody

if TYPE_CHECKING:
    from ledgermq.client.message import Message

__all__ = ["EMPTY", "Sendable", "kind_of", "typed_message"]

# What can be sent: a body, or a message with its body, properties and header fields.
Sendable = Body | PropertyAccess

EMPTY: Final[Mapping[str, Body]] = {
    "map": {},
    "text": "",
    "bytes": b"",
    "stream": StreamBody(),
    "object": ObjectBody(None),
    "plain": None,
}


def kind_of(body: Body) -> str:
    """The kind of message that a body makes."""
    if isinstance(body, Mapping):
        return "map"
    if isinstance(body, str):
        return "text"
    if body is None:
        return "plain"
    if isinstance(body, StreamBody):
        return "stream"
    return "object" if isinstance(body, ObjectBody) else "bytes"


def typed_message(message: Message, *, allow_pickle: bool) -> TypedMessage:
    """The message as an object of its kind, read-only."""
    body = message.unloaded_body
    made: TypedMessage
    if isinstance(body, Mapping):
        made = MapMessage(body)
    elif isinstance(body, str):
        made = TextMessage(body)
    elif body is None:
        made = PlainMessage()
    elif isinstance(body, StreamBody):
        made = StreamMessage(body)
    elif isinstance(body, ObjectBody):
        made = ObjectMessage(body)
        made.allow_pickle = allow_pickle
    else:
        made = BytesMessage(body)
    made.correlation_id = message.correlation_id
    made.reply_to = message.reply_to
    made.type = message.type
    return made._received(message.properties, message._provided())
