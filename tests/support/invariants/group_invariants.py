"""Invariants of groups: what is counted of them is what a look at every item tells (GRP)."""

from __future__ import annotations

from ledgermq.core.state.group import AWAY, MEMBER, Group, Segments
from ledgermq.core.state.records import Consumer, GroupedMessage, Queue


def check_groups(queue: Queue) -> None:
    """Raises AssertionError unless the groups of a queue are those of its messages."""
    items: dict[bytes, list[GroupedMessage]] = {}
    for message in queue.messages.values():
        if isinstance(message, GroupedMessage):
            where = f"queue {queue.name}: message {message.sequence}"
            assert queue.groups[message.group.group_id] is message.group, f"{where}: group"
            items.setdefault(message.group.group_id, []).append(message)
    assert set(queue.groups) == set(items), f"queue {queue.name}: groups"
    for group_id, found in items.items():
        _check_group(f"queue {queue.name}: group {group_id.hex()}", queue.groups[group_id], found)
    for group_id, keeper in queue.reserved.items():
        assert keeper.reserved_group == group_id, f"queue {queue.name}: kept {group_id.hex()}"
        assert keeper.key in queue.consumers, f"queue {queue.name}: kept for nobody"


def _check_group(where: str, group: Group, items: list[GroupedMessage]) -> None:
    anew = Group(group.group_id)
    flags = {one.sequence: one.flags for one in items}
    for item in items:
        item.flags &= ~(MEMBER | AWAY)
        anew.add(item)
    told = {one.sequence: one.flags for one in items}
    assert flags == told, f"{where}: members {flags}, not {told}"
    assert list(group.members()) == list(anew.members()), f"{where}: members"
    assert group.clashing == anew.clashing, f"{where}: clashing"
    assert group.first is min(items, key=lambda one: one.sequence), f"{where}: first"
    counters = ("away", "count", "in_group", "in_units_of_work", "last", "whole")
    for name in counters:
        found, right = getattr(group, name), getattr(anew, name)
        assert found == right, f"{where}: {name} is {found}, not {right}"
    for number, slot in group.slots.items():
        if isinstance(slot, Segments):
            other = anew.slots[number]
            assert isinstance(other, Segments), f"{where}: segments of {number}"
            assert (slot.covered, slot.end, slot.away) == (other.covered, other.end, other.away)


def check_places(consumer: Consumer) -> None:
    """Raises AssertionError unless the group a consumer is in is kept for it, or for another."""
    where = f"consumer {consumer.key} of {consumer.queue.name}"
    group_id, position = consumer.reserved_group, consumer.group_position
    if group_id is not None:
        assert consumer.options.logical_order, f"{where}: reserves without logical order"
        assert position is not None, f"{where}: reserves without a position"
        assert consumer.reserved_group == consumer.group_position[0], (
            f"{where}: keeps another group"
        )
        assert consumer.queue.reserved[consumer.reserved_group] is consumer, (
            f"{where}: keeps nothing"
        )
