"""How a consumer gets and a browser looks: in which order, what must be there, what must match."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from ledgermq.client.arguments import wrong_type
from ledgermq.errors import GetOptionsError
from ledgermq.errors.shown import shown
from ledgermq.protocol.get_options import Options, check
from ledgermq.protocol.limits import GROUP_ID_BYTES, MESSAGE_ID_BYTES


class Order(StrEnum):
    """In which order messages come, within each priority (GRP-01, GRP-06).

    PHYSICAL: by sequence number, wherever they stand in groups (GRP-02).
    LOGICAL: the messages and segments of a group one after the other, in their order, where the
    group's first message stands; a group whose first message is not there is left out (GRP-03,
    GRP-14). Inside a group, what comes next is waited for, and nobody else gets of the group.
    """

    PHYSICAL = "PHYSICAL"
    LOGICAL = "LOGICAL"


class GroupStatus(StrEnum):
    """Where a message stands in its group (GRP-22)."""

    NOT_IN_GROUP = "NOT_IN_GROUP"
    MESSAGE_IN_GROUP = "MESSAGE_IN_GROUP"
    LAST_MESSAGE_IN_GROUP = "LAST_MESSAGE_IN_GROUP"


class SegmentStatus(StrEnum):
    """Whether a message is part of a longer one."""

    NOT_A_SEGMENT = "NOT_A_SEGMENT"
    SEGMENT = "SEGMENT"
    LAST_SEGMENT = "LAST_SEGMENT"


@dataclass(frozen=True, slots=True, kw_only=True)
class GetMatch:
    """Values that a message must have to be got or shown; None: any (GRP-34).

    Attributes:
        message_id: Its identity, 16 bytes, or as `Message.message_id` has it.
        correlation_id: Its correlation id.
        group_id: The group that it is in, 24 bytes.
        group_sequence: Its number in its group, from 1; 1 also outside of groups.
        offset: Where its data begin in their logical message; 0 unless it is a segment.
        sequence: Its sequence number in the queue.
    """

    message_id: bytes | str | None = None
    correlation_id: str | None = None
    group_id: bytes | None = None
    group_sequence: int | None = None
    offset: int | None = None
    sequence: int | None = None


TYPES: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "message_id": ((bytes, str), "bytes or text"),
    "correlation_id": ((str,), "text"),
    "group_id": ((bytes,), "bytes"),
    "group_sequence": ((int,), "a whole number"),
    "offset": ((int,), "a whole number"),
    "sequence": ((int,), "a whole number"),
}
LOWEST: Final = {"group_sequence": 1, "offset": 0, "sequence": 0}
# What a record of the log can hold.
NUMBER_MAX: Final = 2**63 - 1
FLAGS: Final = ("all_messages_available", "all_segments_available", "complete_message")


def options_of(*given: Mapping[str, Any]) -> Options:
    """What a consumer or browser, and a call behind it, ask for, as the protocol has it.

    What is said later goes before; None says nothing.

    Raises:
        GetOptionsError: an order that is none, or a value to match that no message has.
        ArgumentTypeError: a value to match is of another type.
    """
    said = {name: one for some in given for name, one in some.items() if one is not None}
    order, match = said.get("order", Order.PHYSICAL), said.get("match")
    try:
        logical_order = Order(order) is Order.LOGICAL
    except ValueError:
        raise GetOptionsError(f"{shown(order)} is no order; there are {', '.join(Order)}") from None
    flags = [said.get(name, False) for name in FLAGS]
    matched: dict[str, Any] = {} if match is None else _matched(match)
    options = Options(logical_order, *flags, **matched)
    wrong = check(options)
    if wrong is not None:
        raise GetOptionsError(f"`match` asks for what no message has: {wrong}")
    return options


def _matched(match: GetMatch) -> dict[str, Any]:
    """What is to be matched, without what may be any."""
    found = {name: getattr(match, name) for name in TYPES if getattr(match, name) is not None}
    for name, given in found.items():
        types, words = TYPES[name]
        if isinstance(given, bool) or not isinstance(given, types):
            raise wrong_type(f"match.{name}", given, f"{words} or None")
    if "message_id" in found:
        found["message_id"] = _message_id(found["message_id"])
    group_id = found.get("group_id")
    # Empty would mean any group to the queue manager.
    if group_id is not None and len(group_id) != GROUP_ID_BYTES:
        raise GetOptionsError(
            f"a group id to match has {GROUP_ID_BYTES} bytes, not {len(group_id)}; leave it out "
            "for any group"
        )
    for name, lowest in LOWEST.items():
        value = found.get(name, lowest)
        if not lowest <= value <= NUMBER_MAX:
            limit = f"least {lowest}" if value < lowest else f"most {NUMBER_MAX}"
            raise GetOptionsError(f"{name} {shown(value)} is to be matched, must be at {limit}")
    return found


def _message_id(given: bytes | str) -> bytes:
    try:
        found = bytes.fromhex(given) if isinstance(given, str) else given
    except ValueError:
        found = b""
    if len(found) != MESSAGE_ID_BYTES:
        raise GetOptionsError(
            f"{shown(given)} is no message id: {MESSAGE_ID_BYTES} bytes, or {2 * MESSAGE_ID_BYTES} "
            "hexadecimal digits"
        )
    return found
