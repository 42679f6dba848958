"""Which messages a selector matches: the bridge between the language and the state (SES-35)."""

from __future__ import annotations

from collections.abc import Callable

from ledgermq.core.state.records import Message
from ledgermq.protocol.operations import PropertyValue
from ledgermq.selector import Selector

MILLISECOND_US = 1_000


def _correlation_id(message: Message) -> str | None:
    return None if message.header is None else message.header["correlation_id"]


def _type(message: Message) -> str | None:
    return None if message.header is None else message.header["type"]


def _delivery_mode(message: Message) -> str:
    return "PERSISTENT" if message.persistent else "NON_PERSISTENT"


def _message_id(message: Message) -> str:
    return "ID:" + message.message_id.hex()


def _priority(message: Message) -> int:
    return message.priority


def _timestamp(message: Message) -> int:
    return message.enqueued_at // MILLISECOND_US


def _group_property(message: Message, name: str) -> PropertyValue | None:
    if message.group is None:
        return None
    if name == "JMSXGroupID":
        return "ID:" + message.group.group_id.hex()
    return message.group_sequence if name == "JMSXGroupSeq" else None


_FIELDS: dict[str, Callable[[Message], PropertyValue | None]] = {
    "JMSCorrelationID": _correlation_id,
    "JMSDeliveryMode": _delivery_mode,
    "JMSMessageID": _message_id,
    "JMSPriority": _priority,
    "JMSTimestamp": _timestamp,
    "JMSType": _type,
}


def value_in(message: Message, name: str) -> PropertyValue | None:
    field = _FIELDS.get(name)
    if field is not None:
        return field(message)
    value = None if message.header is None else message.header["properties"].get(name)
    return _group_property(message, name) if value is None else value


def matches(selector: Selector, message: Message) -> bool:
    """Whether the selector is true of the message; unknown is not true."""
    return selector.matches(lambda name: value_in(message, name))
