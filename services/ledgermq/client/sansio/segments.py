"""Delivered messages in groups: where they stand, and the segments of one joined into one."""

from __future__ import annotations

from ledgermq.errors.warnings import (
    IncompleteGroupWarning,
    IncompleteMessageWarning,
    LedgerMQWarning,
)
from ledgermq.protocol.operations import Group
from ledgermq.protocol.outcomes import DeliveredMessage
from ledgermq.wire.content.message_header import header_of


class JoinedMessage(DeliveredMessage):
    """The first segment of a logical message that was got complete, with the others."""

    further: list[DeliveredMessage]


def group_of(message: DeliveredMessage) -> Group | None:
    """Where a message stands in a group or logical message; None: in none."""
    return header_of(message).get("group")


def further_of(message: DeliveredMessage) -> list[DeliveredMessage]:
    """The segments behind the first one of a message that was got complete."""
    return message.get("further", [])  # type: ignore[return-value]


def is_joined(message: DeliveredMessage) -> bool:
    return "further" in message


def ends_unit(segments: list[DeliveredMessage]) -> bool:
    """Whether these are all that comes as one: a message, or a logical message from its beginning.

    Who is inside a logical message gets the rest of it segment by segment.
    """
    group = group_of(segments[-1])
    if group is None or not group["segment"] or group["last_segment"]:
        return True
    return len(segments) == 1 and bool(group["offset"])


def join(segments: list[DeliveredMessage]) -> DeliveredMessage:
    """One message of all segments of a logical message; their bodies are joined when read.

    A message that is no segment stays as it is, and so does a segment that comes alone from within.
    """
    first, *further = segments
    group = group_of(first)
    if group is None or not group["segment"] or group["offset"]:
        return first
    joined: JoinedMessage = {**first, "further": further}
    return joined


def join_all(messages: list[DeliveredMessage]) -> list[DeliveredMessage]:
    """The same, where the segments of each logical message follow one another."""
    joined: list[DeliveredMessage] = []
    segments: list[DeliveredMessage] = []
    for message in messages:
        segments.append(message)
        if ends_unit(segments):
            joined.append(join(segments))
            segments = []
    return joined


def left_open(message: DeliveredMessage) -> type[LedgerMQWarning] | None:
    """What whoever got a message last has left open: a logical message, a group, or nothing."""
    group = group_of(message)
    if group is None:
        return None
    if group["segment"] and not group["last_segment"] and not is_joined(message):
        return IncompleteMessageWarning
    if group["in_group"] and not group["last_in_group"]:
        return IncompleteGroupWarning
    return None
