"""Faults to be planted in what becomes of messages that no subscription wants."""

from __future__ import annotations

from typing import Any

from ledgermq.core.destinations import numbering
from support.generators.topic_generators import unrouted_histories
from support.planted.planted_faults import Family, Fault, does_nothing, drawn, never


def _once_more(original: Any) -> Any:
    def may_be_moved(topic, message):
        came_from = None if message.origin is None else message.origin["destination"]
        target = topic.settings.error_destination
        return target not in ("", came_from)

    return may_be_moved


def _never_twice(original: Any) -> Any:
    return lambda topic, message: original(topic, message) and message.origin is None


def _the_first_only(original: Any) -> Any:
    return lambda topic, message: original(topic, message) and message.put_index == 0


UNROUTED = Family(
    "unrouted",
    (
        Fault("what nobody wants is dropped", numbering, "_may_be_moved", never),
        Fault("what came unrouted goes on", numbering, "_may_be_moved", _once_more),
        Fault("what came from elsewhere does not go on", numbering, "_may_be_moved", _never_twice),
        Fault("of each put one message goes", numbering, "_may_be_moved", _the_first_only),
        Fault("what goes does not arrive", numbering, "transfer", does_nothing),
    ),
    drawn(unrouted_histories()),
)
