"""Which messages consumers want: by a selector (SES-35), and by get options (PROTOCOL.md §13)."""

from __future__ import annotations

from collections.abc import Callable

from ledgermq.core.state.group import IN_GROUP, MEMBER, SEGMENT
from ledgermq.core.state.records import GroupedMessage, Message
from ledgermq.protocol.get_options import Options
from ledgermq.protocol.operations import PropertyValue
from ledgermq.protocol.reasons import Reason, Refusal
from ledgermq.protocol.rounding import MILLISECOND_US
from ledgermq.selector import Selector, SelectorError, parse_selector


def _correlation_id(message: Message) -> str | None:
    return None if message.header is None else message.header.correlation_id


def _group_property(message: Message, name: str) -> PropertyValue | None:
    if message.group is None:
        return None
    if name == "JMSXGroupID":
        return "ID:" + message.group.group_id.hex()
    return message.group_sequence if name == "JMSXGroupSeq" else None


_FIELDS: dict[str, Callable[[Message], PropertyValue | None]] = {
    "JMSCorrelationID": _correlation_id,
    "JMSDeliveryMode": lambda one: "PERSISTENT" if one.persistent else "NON_PERSISTENT",
    "JMSMessageID": lambda one: "ID:" + one.message_id.hex(),
    "JMSPriority": lambda one: one.priority,
    "JMSTimestamp": lambda one: one.enqueued_at // MILLISECOND_US,
    "JMSType": lambda one: None if one.header is None else one.header.type,
}


def value_in(message: Message, name: str) -> PropertyValue | None:
    field = _FIELDS.get(name)
    if field is not None:
        return field(message)
    value = None if message.header is None else message.header.properties.get(name)
    return _group_property(message, name) if value is None else value


def selector_of(text: str | None) -> Selector | Refusal | None:
    try:
        return parse_selector(text)
    except SelectorError as error:
        return Refusal(Reason.SELECTOR_INVALID, f"the selector is not valid: {error}")


def matches(selector: Selector, message: Message) -> bool:
    """Whether the selector is true of the message; unknown is not true."""
    return selector.matches(lambda name: value_in(message, name))


def asked_value(selector: Selector | None) -> tuple[str, str | bool] | None:
    """An identifier and the value that a message must have there to match, if there is one."""
    if selector is not None:
        for name, value in selector.equalities:
            if isinstance(value, (str, bool)):
                return name, value
    return None


def is_wanted(options: Options, message: Message) -> bool:
    """Whether a message may come at all, by what never changes of it.

    Groups are looked at from their first items, complete messages from their first segments.
    """
    if options.logical_order and (message.group_sequence != 1 or message.offset):
        return False
    if options.complete_message and message.offset:
        return False
    return matches_fields(options, message)


def is_permitted(options: Options, message: Message) -> bool:
    """Whether what is there of a group allows that a wanted message comes now."""
    if not isinstance(message, GroupedMessage):
        return True
    group, flags = message.group, message.flags
    if options.logical_order and not flags & MEMBER:
        return False
    if options.all_messages_available and flags & IN_GROUP:
        return bool(flags & MEMBER) and group.is_available
    if flags & SEGMENT and options.needs_segments:
        return bool(flags & MEMBER) and group.unit_of(message) is not None
    return True


def matches_fields(options: Options, message: Message) -> bool:
    return (
        (not options.message_id or options.message_id == message.message_id)
        and (not options.group_sequence or options.group_sequence == message.group_sequence)
        and (options.offset < 0 or options.offset == message.offset)
        and (options.sequence < 0 or options.sequence == message.sequence)
        and (not options.group_id or _group_id(message) == options.group_id)
        and (options.correlation_id is None or _correlation_id(message) == options.correlation_id)
    )


def _group_id(message: Message) -> bytes:
    return b"" if message.group is None else message.group.group_id
