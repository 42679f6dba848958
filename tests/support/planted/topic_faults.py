"""Faults to be planted in what topics hand on, and in what becomes of what nobody wants."""

from __future__ import annotations

from typing import Any

from ledgermq.core.destinations import bindings, by_name, numbering
from support.generators.topic_generators import binding_histories, unrouted_histories
from support.planted.planted_faults import Family, Fault, does_nothing, drawn, never, played_in


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
        Fault("what came unrouted goes on", numbering, "_may_be_moved", _once_more, 4),
        Fault(
            "what came from elsewhere does not go on", numbering, "_may_be_moved", _never_twice, 5
        ),
        Fault("of each put one message goes", numbering, "_may_be_moved", _the_first_only),
        Fault("what goes does not arrive", numbering, "transfer", does_nothing),
    ),
    drawn(unrouted_histories()),
)


def _whatever_is_selected(original: Any) -> Any:
    def bound_to(topic, message):
        destinations = [one.destination for one in topic.bindings]
        return dict.fromkeys(one for one in destinations if one != topic.destination)

    return bound_to


def _as_often_as_bound(original: Any) -> Any:
    def bound_to(topic, message):
        wanted = original(topic, message)
        return [one.destination for one in topic.bindings if one.destination in wanted]

    return bound_to


def _to_itself(original: Any) -> Any:
    def bound_to(topic, message):
        own = [one.destination for one in topic.bindings if one.destination == topic.destination]
        return dict.fromkeys([*original(topic, message), *own])

    return bound_to


def _whoever_puts(original: Any) -> Any:
    def publish(entry, topic, messages, before, session):
        session = session or next(iter(entry.state.sessions.values()), None)
        original(entry, topic, messages, before, session)

    return publish


def _names_that_are_equal(original: Any) -> Any:
    return lambda binding, topic: binding.topics == topic.name


def _temporary_ones_too(original: Any) -> Any:
    return lambda names, topic: names.fullmatch(topic) is not None


BINDINGS = Family(
    "bindings",
    (
        Fault("nothing is handed on", numbering, "_bound_to", lambda _: lambda *_: ()),
        Fault("what is not selected is handed on", numbering, "_bound_to", _whatever_is_selected),
        Fault("each binding hands on", numbering, "_bound_to", _as_often_as_bound, 1),
        Fault("what comes from elsewhere is handed on", numbering, "_publish", _whoever_puts, 1),
        Fault("what is handed on does not arrive", numbering, "transfer", does_nothing),
        Fault("no new topic is taken in", by_name, "join_bindings", does_nothing),
        Fault("words stand for themselves", bindings, "is_of", _names_that_are_equal),
    ),
    drawn(binding_histories()),
)
# Scripts show them: random histories seldom come to that.
BINDINGS_SCRIPTS = Family(
    "bindings in scripts",
    (
        Fault("temporary topics are taken in", by_name, "takes_in", _temporary_ones_too),
        Fault("a topic hands on to itself", numbering, "_bound_to", _to_itself),
        Fault("what was bound is kept", bindings, "unname", does_nothing),
    ),
    played_in("bindings"),
)
