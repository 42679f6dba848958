"""Bindings: what is put to topics goes on to other destinations too (PROTOCOL.md §5, Bind)."""

from __future__ import annotations

from typing import Final

from ledgermq.core.destinations.by_name import TOPIC_PREFIX, check_target, is_of, join_binding
from ledgermq.core.destinations.settings_in_force import unname
from ledgermq.core.entry import Entry
from ledgermq.core.order.selecting import asked_value, selector_of
from ledgermq.core.quoting import quoted
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.records import Session, Topic
from ledgermq.core.state.topics import Binding
from ledgermq.protocol.operations import Bind, Unbind
from ledgermq.protocol.reasons import Reason, Refusal
from ledgermq.protocol.topic_patterns import is_pattern, names_of, stem_of
from ledgermq.selector import Selector

# As what a binding names its destination.
DESTINATION: Final = "destination"


def bind(entry: Entry, session: Session, operation: Bind) -> Refusal | None:
    """Makes a binding, or gives one another selector; refused unless it says where from and to."""
    topics, destination = operation.topics, operation.destination
    if not is_pattern(topics):
        return Refusal(
            Reason.NAME_INVALID,
            f"{quoted(topics)} stands for no topics: 1 to 128 of A-Z a-z 0-9 . _ / % -, and as "
            "whole words between dots and slashes * and one #",
        )
    refusal = check_target(entry.state, TOPIC_PREFIX + topics, DESTINATION, destination)
    if refusal is not None:
        return refusal
    selector = selector_of(operation.selector)
    if isinstance(selector, Refusal):
        return selector
    standing = entry.state.bindings.get((topics, destination))
    if standing is not None:
        topics_bound = _topics_of(entry.state, standing)
        for topic in topics_bound:
            _leave_binding(standing, topic)
        standing.selector = selector
        for topic in topics_bound:
            join_binding(standing, topic)
    else:
        add_binding(entry.state, topics, destination, selector, entry.position)
    return None


def add_binding(
    state: QueueManager, topics: str, destination: str, selector: Selector | None, created: int
) -> None:
    stem = stem_of(topics)
    names = None if stem == topics else names_of(topics)
    binding = Binding(topics, names, destination, selector, created)
    state.bindings[topics, destination] = binding
    state.bindings_by_stem.setdefault(stem, {})[created] = binding
    state.named.setdefault(destination, {})[_named_as(binding)] = None
    for topic in _topics_of(state, binding):
        join_binding(binding, topic)


def _topics_of(state: QueueManager, binding: Binding) -> list[Topic]:
    """The topics that are there of those that a binding takes in."""
    if binding.names is None:
        topic = state.topics.get(binding.topics)
        return [] if topic is None else [topic]
    stem = stem_of(binding.topics)
    topics = state.topics.items()
    return [one for name, one in topics if name.startswith(stem) and is_of(binding, one)]


def _leave_binding(binding: Binding, topic: Topic) -> None:
    topic.bindings.remove(binding.created_position, asked_value(binding.selector))


def unbind(entry: Entry, session: Session, operation: Unbind) -> Refusal | None:
    """Ends a binding; what it handed on stays where it is."""
    topics, destination = operation.topics, operation.destination
    binding = entry.state.bindings.pop((topics, destination), None)
    if binding is None:
        return Refusal(
            Reason.BINDING_UNKNOWN,
            f"there is no binding of topics {quoted(topics)} to {quoted(destination)}",
        )
    unname(entry.state, destination, *_named_as(binding))
    stem = stem_of(topics)
    with_stem = entry.state.bindings_by_stem[stem]
    del with_stem[binding.created_position]
    if not with_stem:
        del entry.state.bindings_by_stem[stem]
    for topic in _topics_of(entry.state, binding):
        _leave_binding(binding, topic)
    return None


def _named_as(binding: Binding) -> tuple[str, str]:
    return (f"the binding of topics {binding.topics}", DESTINATION)
