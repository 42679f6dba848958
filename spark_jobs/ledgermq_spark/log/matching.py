"""Whether a selector is true of a message, from the columns of rows (PROTOCOL.md §12)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ledgermq.selector import Selector
from ledgermq_spark.log.headers import header_of


class Selected(NamedTuple):
    """What selectors read of a message; `header` is the JSON text of `headers.header_text`."""

    message_id: bytes | None
    priority: int
    persistent: bool | None
    enqueued_at: int
    header: str | None


def matches(selector: Selector | None, message: Selected) -> bool:
    """Whether a selector (None: there is none) is true of a message."""
    return selector is None or selector.matches(values_of(message))


def values_of(message: Selected) -> Callable[[str], Any]:
    """What selectors read of a message, by name; None: nothing is called so."""
    header = header_of(message.header)
    properties = header.get("p", {})

    def value_of(name: str) -> Any:
        if name in _FIELDS:
            return _FIELDS[name](message, header)
        given = properties.get(name)
        return _of_group(header.get("g"), name) if given is None else given

    return value_of


def _of_group(group: dict[str, Any] | None, name: str) -> Any:
    """What JMS calls a place in a group, where the sender gave no properties of these names."""
    if group is None:
        return None
    return {"JMSXGroupID": "ID:" + group["i"], "JMSXGroupSeq": group["n"]}.get(name)


_FIELDS: dict[str, Any] = {
    "JMSCorrelationID": lambda _, header: header.get("c"),
    "JMSType": lambda _, header: header.get("t"),
    "JMSDeliveryMode": lambda one, _: "PERSISTENT" if one.persistent else "NON_PERSISTENT",
    "JMSMessageID": lambda one, _: "ID:" + bytes(one.message_id or b"").hex(),
    "JMSPriority": lambda one, _: one.priority,
    "JMSTimestamp": lambda one, _: one.enqueued_at // 1000,
}
