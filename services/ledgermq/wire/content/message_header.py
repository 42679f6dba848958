"""The header of a message: what its sender gave beside the content, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgermq.protocol.operations import Group, Header, PropertyValue
from ledgermq.protocol.outcomes import EMPTY_HEADER, DeliveredHeader, DeliveredMessage
from ledgermq.wire.content.content import ContentError, checked_value


def make_header(
    properties: Mapping[str, PropertyValue] | None,
    correlation_id: str | None,
    type_: str | None,
    *,
    time_to_live_ms: int = 0,
    delivery_delay_ms: int = 0,
    age_ms: int = 0,
    group: Group | None = None,
    redelivery_limit: int = -1,
) -> Header | None:
    """The header of a message, None if there is nothing in it; ContentError names what is wrong."""
    timed = time_to_live_ms or delivery_delay_ms or redelivery_limit >= 0
    if not properties and correlation_id is None and type_ is None and not timed and group is None:
        return None
    return {
        "properties": {
            name: _checked(f"property {name!r}", name, value)
            for name, value in (properties or {}).items()
        },
        "correlation_id": _checked_text("correlation_id", correlation_id),
        "type": _checked_text("type", type_),
        "time_to_live_ms": time_to_live_ms,
        "delivery_delay_ms": delivery_delay_ms,
        "age_ms": age_ms,
        "group": group,
        "redelivery_limit": redelivery_limit,
    }


def _checked(what: str, name: Any, value: Any) -> PropertyValue:
    checked: PropertyValue = checked_value(what, name, value, with_bytes=False)
    _checked_text(f"the name of {what}", name)
    if isinstance(checked, str):
        _checked_text(what, checked)
    return checked


def _checked_text(what: str, text: Any) -> str | None:
    if text is None:
        return None
    if not isinstance(text, str):
        raise ContentError(f"{what} is {type(text).__name__}: it must be str or None")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ContentError(f"{what} is no text that can be written: {error}") from error
    return text


def header_of(message: DeliveredMessage) -> DeliveredHeader:
    """The header of a delivered message; all empty where there is none."""
    return message.get("header", EMPTY_HEADER)
