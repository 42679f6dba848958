"""The kinds of message, and what can be sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ledgermq.client.messages.property_access import PropertyAccess
from ledgermq.wire.content.bodies import StreamBody
from ledgermq.wire.content.content import Body
from ledgermq.wire.content.objects import ObjectBody

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
