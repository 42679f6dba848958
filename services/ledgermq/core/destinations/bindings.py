"""Bindings: what is put to topics goes on to other destinations too (PROTOCOL.md §5, Bind)."""

from __future__ import annotations

from typing import Final

from ledgermq.core.destinations.by_name import TOPIC_PREFIX, check_target
from ledgermq.core.destinations.settings_in_force import unname
from ledgermq.core.entry import Entry
from ledgermq.core.order.selecting import selector_of
from ledgermq.core.quoting import quoted
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.records import Session
from ledgermq.core.state.topics import Binding
from ledgermq.protocol.operations import Bind, Unbind
from ledgermq.protocol.reasons import Reason, Refusal
from ledgermq.protocol.topic_patterns import is_pattern, names_of, takes_in
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
        standing.selector = selector
    else:
        add_binding(entry.state, topics, destination, selector, entry.position)
    return None


def add_binding(
    state: QueueManager, topics: str, destination: str, selector: Selector | None, created: int
) -> None:
    binding = Binding(topics, names_of(topics), destination, selector, created)
    state.bindings[binding.topics, binding.destination] = binding
    state.named.setdefault(binding.destination, {})[_named_as(binding)] = None
    for topic in state.topics.values():
        if takes_in(binding.names, topic.name):
            topic.bindings.append(binding)


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
    for topic in entry.state.topics.values():
        if binding in topic.bindings:
            topic.bindings.remove(binding)
    return None


def _named_as(binding: Binding) -> tuple[str, str]:
    return (f"the binding of topics {binding.topics}", DESTINATION)
