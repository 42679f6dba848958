"""What the sender of a message said beside its content, as a message that waits has it."""

from __future__ import annotations

from sys import intern
from typing import Final, NamedTuple

from ledgermq.protocol.operations import NO_HEADER, Header, PropertyValue


class HeldHeader(NamedTuple):
    """A header without its place in a group, in a third of the room of the record that it came in.

    A deep queue has one for each message, and most of these have properties of the same names.
    """

    properties: dict[str, PropertyValue]
    correlation_id: str | None
    type: str | None
    time_to_live_ms: int
    delivery_delay_ms: int
    age_ms: int
    redelivery_limit: int


# Shared by all that have none; nobody changes them.
_NO_PROPERTIES: Final[dict[str, PropertyValue]] = {}


def held_header(header: Header) -> HeldHeader:
    found = header["properties"]
    return HeldHeader(
        {intern(name): value for name, value in found.items()} if found else _NO_PROPERTIES,
        header["correlation_id"],
        header["type"],
        header["time_to_live_ms"],
        header["delivery_delay_ms"],
        header["age_ms"],
        header.get("redelivery_limit", -1),
    )


NOTHING_SAID: Final = held_header(NO_HEADER)
