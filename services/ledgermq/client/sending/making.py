"""Messages as a Put carries them, made of what the application sends."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ledgermq.client.arguments import check_flag, check_number, wrong_type
from ledgermq.client.destinations import checked_destination
from ledgermq.client.messages.message_kinds import Sendable
from ledgermq.client.messages.property_access import PropertyAccess, check_property_names
from ledgermq.client.messages.typed_message import TypedMessage
from ledgermq.client.sansio.sizes import MESSAGE_BYTES_MAX, encoded_bytes
from ledgermq.client.tracing import with_context
from ledgermq.errors import MessageFormatError, MessageTooLargeError
from ledgermq.errors.shown import shown
from ledgermq.protocol.header_size import header_bytes
from ledgermq.protocol.limits import (
    CONTENT_BYTES_MAX,
    HEADER_BYTES_MAX,
    MESSAGE_ID_BYTES,
    PRIORITY_MAX,
    TIMING_MS_MAX,
)
from ledgermq.protocol.operations import Group, PropertyValue, PutMessage
from ledgermq.wire.content.bodies import StreamBody
from ledgermq.wire.content.content import ContentError, encode_content
from ledgermq.wire.content.conversion import plain
from ledgermq.wire.content.message_header import make_header


class Sending(NamedTuple):
    """What is said of a message beside its body; times in seconds, 0: none."""

    properties: Mapping[str, PropertyValue] | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    type: str | None = None
    priority: int = 4
    persistent: bool = True
    time_to_live: float = 0
    delivery_delay: float = 0
    redelivery_limit: int = -1


def unwrapped(message: PropertyAccess, sending: Sending) -> tuple[Any, Sending]:
    """Body and fields of a message that is sent, its own where none were given.

    One that was received goes on with what it has, whoever asks for no reply that could come.
    """
    own = ("properties", "correlation_id", "reply_to", "type")
    missing = {name: getattr(message, name) for name in own if getattr(sending, name) is None}
    if isinstance(message, TypedMessage) and missing.get("reply_to") is not None:
        checked_destination(missing["reply_to"])
    return message.unloaded_body, sending._replace(**missing)


def make_message(
    destination: str, body: Sendable, sending: Sending, group: Group | None = None
) -> PutMessage:
    """Checks and encodes one message, with its place in a group if it has one.

    Save where a reply goes: a message that was received goes on with what it has there.
    """
    properties, correlation_id, reply_to, type_, priority, persistent = sending[:6]
    priority = checked_priority(priority, destination)
    check_flag("persistent", persistent)
    times_ms = _times_ms(destination, sending.time_to_live, sending.delivery_delay)
    if isinstance(body, PropertyAccess):
        body, sending = unwrapped(body, sending)
        properties, correlation_id, reply_to, type_ = sending[:4]
    properties = with_context(properties)
    try:
        if properties:
            check_property_names(properties)
        header = make_header(
            properties,
            correlation_id,
            type_,
            group=group,
            redelivery_limit=sending.redelivery_limit,
            **times_ms,
        )
        encoded = encode_content(body, reply_to, time.time_ns() // 1000)
    except (ContentError, MessageFormatError) as error:
        raised = error.raised if isinstance(error, ContentError) else type(error)
        raise raised(
            f"message to {destination} was not sent: {error}", destination=destination
        ) from error
    message: PutMessage = {
        "message_id": os.urandom(MESSAGE_ID_BYTES),
        "priority": priority,
        "persistent": persistent,
        "content": encoded,
    }
    if header is not None:
        message["header"] = header
    _check_sizes(destination, message)
    return message


def checked_priority(priority: object, destination: str | None) -> int:
    """A priority that a message can have, as a plain number."""
    number = priority if type(priority) is int else plain(priority)
    if type(number) is not int or not 0 <= number <= PRIORITY_MAX:
        raise MessageFormatError(
            f"priority is {shown(priority)}, must be a whole number from 0 to {PRIORITY_MAX}",
            destination=destination,
        )
    return number


def checked_timing(name: str, seconds: float, destination: str | None) -> float:
    """So many seconds from the send, of a time to live or a delivery delay."""
    if type(seconds) not in (int, float):
        check_number(name, seconds, " of seconds")
    if not 0 <= seconds <= TIMING_MS_MAX / 1000:
        raise MessageFormatError(
            f"{name} is {shown(seconds)}, must be 0 to {TIMING_MS_MAX // 1000} seconds",
            destination=destination,
        )
    return seconds


def check_bodies(bodies: Iterable[Sendable]) -> None:
    """Refuses one body in place of several: its names or values would be sent one by one."""
    if isinstance(bodies, Mapping | StreamBody):
        raise wrong_type("bodies", bodies, "several bodies, in a list even if there is one")


def _check_sizes(destination: str, message: PutMessage) -> None:
    encoded, header = message["content"], message.get("header")
    if len(encoded) > CONTENT_BYTES_MAX:
        raise MessageTooLargeError(
            f"message to {destination} has {len(encoded):,} bytes, at most "
            f"{CONTENT_BYTES_MAX:,} can be sent; nothing was sent. Send text or bytes in "
            "segments, with segmentation_allowed=True or send_segmented(...), or a reference",
            destination=destination,
        )
    if header is not None and header_bytes(header) > HEADER_BYTES_MAX:
        raise MessageTooLargeError(
            f"message to {destination} has {header_bytes(header):,} bytes of properties, "
            f"correlation id and type, at most {HEADER_BYTES_MAX:,} can be sent; put them in "
            "the body",
            destination=destination,
        )
    if encoded_bytes(message) > MESSAGE_BYTES_MAX:
        raise MessageTooLargeError(
            f"message to {destination} has {len(encoded):,} bytes of content and "
            f"{header_bytes(header):,} of properties, correlation id and type, more than one "
            "operation of the log can hold together; nothing was sent. Send text or bytes in "
            "segments, with segmentation_allowed=True or send_segmented(...), or a reference",
            destination=destination,
        )


def _times_ms(destination: str, time_to_live: float, delivery_delay: float) -> dict[str, int]:
    """When the message may be delivered; its age counts from now."""
    checked_timing("time_to_live", time_to_live, destination)
    checked_timing("delivery_delay", delivery_delay, destination)
    if time_to_live == 0 and delivery_delay == 0:
        return {}
    return {
        "time_to_live_ms": _milliseconds(time_to_live),
        "delivery_delay_ms": _milliseconds(delivery_delay),
        "age_ms": -(time.monotonic_ns() // 1_000_000),
    }


def _milliseconds(seconds: float) -> int:
    """Whole milliseconds; what is above 0 stays so, because 0 means never."""
    return max(1, round(seconds * 1000)) if seconds else 0


def aged(messages: list[PutMessage]) -> list[PutMessage]:
    """The messages as they are written now, each with its age since it was sent (SES-66).

    Until then `age_ms` is the negative of the monotonic clock at the send.
    """
    now = time.monotonic_ns() // 1_000_000
    for message in messages:
        header = message.get("header")
        if header is not None and header["age_ms"] < 0:
            header["age_ms"] += now
    return messages
