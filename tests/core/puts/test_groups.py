"""Groups by hand: what clashes, who is a member, and that a broken group is found (GRP)."""

from __future__ import annotations

import random

import pytest

from ledgermq.core.state.group import (
    AWAY,
    IN_GROUP,
    IN_UNIT_OF_WORK,
    LAST_IN_GROUP,
    LAST_SEGMENT,
    MEMBER,
    SEGMENT,
    Group,
    Segments,
)
from ledgermq.core.state.records import Queue, SegmentMessage
from ledgermq.protocol.outcomes import Refused
from support.invariants import whole_state as invariants
from support.messages.group_state import group_of, state_with_groups
from support.messages.large_states import LargeState
from support.scripts.verbs import group_id

QUEUE = Queue("q", 0)
FLAGS = {"L": LAST_IN_GROUP, "s": SEGMENT, "e": SEGMENT | LAST_SEGMENT, "u": IN_UNIT_OF_WORK}


def item(
    sequence: int, number: int, marks: str = "", offset: int = 0, length: int = 5
) -> SegmentMessage:
    """An item of a group: `L` the last message, `s` a segment, `e` the last one, `u` in a unit of
    work, `-` in no group.
    """
    message = SegmentMessage(QUEUE, 0, sequence, bytes(16), 4, True, 1)
    message.sequence = sequence
    message.group = Group(group_id("G"))
    message.group_sequence = number
    message.flags = 0 if "-" in marks else IN_GROUP
    for mark in marks.replace("-", ""):
        message.flags |= FLAGS[mark]
    message.offset = offset
    message.length = length if message.flags & SEGMENT else 0
    return message


def grouped(*items: SegmentMessage) -> Group:
    """A group of items that joined one after the other."""
    group = Group(group_id("G"))
    for one in items:
        group.add(one)
    return group


CLASHES = [
    ("same_number", item(1, 2), item(2, 2), "there already"),
    ("no_group", item(1, 1, "s"), item(2, 1, "-s", 5), "both for a group"),
    ("a_group", item(1, 1, "-s"), item(2, 1, "s", 5), "both for a group"),
    ("message_of_segments", item(1, 1, "s"), item(2, 1), "in segments"),
    ("segment_of_a_message", item(1, 1), item(2, 1, "s"), "there already"),
    ("last_twice", item(1, 2, "L"), item(2, 3, "L"), "second last"),
    ("earlier_last", item(1, 3), item(2, 2, "L"), "is the last, but there is 3"),
    ("behind_the_last", item(1, 2, "L"), item(2, 3), "behind the last one"),
    ("not_last_segment", item(1, 1, "Ls"), item(2, 1, "s", 5), "differ in whether"),
    ("last_segment_differs", item(1, 1, "s"), item(2, 1, "Le", 5), "differ in whether"),
    ("overlap_from_before", item(1, 1, "s", 4), item(2, 1, "s", 0), "overlaps"),
    ("overlap_from_behind", item(1, 1, "s", 0), item(2, 1, "s", 4), "overlaps"),
    ("overlap_of_the_same", item(1, 1, "s", 5), item(2, 1, "s", 5), "overlaps"),
    ("overlap_inside", item(1, 1, "s", 0, 9), item(2, 1, "s", 3, 1), "overlaps"),
    ("second_last_segment", item(1, 1, "e", 5), item(2, 1, "e", 20), "second last"),
    ("data_behind_the_end", item(1, 1, "e", 5), item(2, 1, "s", 10), "behind the last"),
    ("an_end_before_data", item(1, 1, "s", 10), item(2, 1, "e", 5), "data behind it"),
]


@pytest.mark.parametrize(
    ("here", "comes", "words"), [one[1:] for one in CLASHES], ids=[one[0] for one in CLASHES]
)
def test_item_that_contradicts_a_member_clashes(here, comes, words):
    """Each contradiction is told in words, and the item is no member (GRP-40, GRP-42)."""
    group = grouped(here)
    assert words in group.clash(comes)
    group.add(comes)
    assert [one.sequence for one in group.members()] == [1]
    assert group.clashing == [comes]


AGREEABLE = [
    ("next_message", item(1, 1), item(2, 2)),
    ("last_message", item(1, 1), item(2, 2, "L")),
    ("message_before_the_last", item(1, 3, "L"), item(2, 2)),
    ("adjoining_segment", item(1, 1, "s"), item(2, 1, "s", 5)),
    ("segment_in_front", item(1, 1, "e", 5), item(2, 1, "s", 0)),
    ("last_segment", item(1, 1, "Ls"), item(2, 1, "Le", 5)),
    ("last_segment_far_off", item(1, 1, "s"), item(2, 1, "e", 50)),
    ("segment_of_no_group", item(1, 1, "-s"), item(2, 1, "-e", 5)),
]


@pytest.mark.parametrize(
    ("here", "comes"), [one[1:] for one in AGREEABLE], ids=[one[0] for one in AGREEABLE]
)
def test_item_that_nearly_contradicts_a_member_joins_it(here, comes):
    """What is at the edge of a contradiction is none."""
    group = grouped(here)
    assert group.clash(comes) is None
    group.add(comes)
    assert {one.sequence for one in group.members()} == {1, 2}


def test_what_clashed_becomes_a_member_when_the_other_left():
    """By sequence number, and no more of them than fit (GRP-18)."""
    first, second, third, other = item(1, 2), item(2, 2, "L"), item(3, 2), item(4, 1)
    group = grouped(first, second, third, other)
    assert [one.sequence for one in group.clashing] == [2, 3]
    group.remove(first)
    assert [one.sequence for one in group.members()] == [4, 2]
    assert [one.sequence for one in group.clashing] == [3]
    assert (group.last, group.is_complete) == (2, True)
    group.remove(second)
    assert [one.sequence for one in group.members()] == [4, 3]
    assert (group.clashing, group.last, group.is_complete) == ([], 0, False)


def test_a_member_gives_way_to_an_older_item_that_clashed():
    """Members are those of the items that are there, not those that joined first."""
    first, second, third = item(1, 1, "-s"), item(2, 1), item(3, 1, "-s", 5)
    group = grouped(first, second, third)
    assert [one.sequence for one in group.members()] == [1, 3]
    group.remove(first)
    assert [one.sequence for one in group.members()] == [2]
    assert group.in_group
    assert [one.sequence for one in group.clashing] == [3]


def test_clashing_item_leaves_without_a_trace():
    """Its departure moves no member."""
    first, second = item(1, 1), item(2, 1, "L")
    group = grouped(first, second)
    group.remove(second)
    assert (list(group.members()), group.clashing, group.count) == ([first], [], 1)


def test_group_is_complete_when_all_segments_of_all_messages_are_there():
    """And available while nobody holds any of them (GRP-20, GRP-23)."""
    parts = [item(4, 2, "Le", 5), item(1, 1, "s", 5), item(2, 1, "e", 10), item(3, 1, "s", 0)]
    group = grouped(*parts)
    assert not group.is_complete
    rest = item(5, 2, "Ls", 0)
    group.add(rest)
    assert group.is_available
    assert group.unit_of(rest) == [rest, parts[0]]
    group.went(parts[0])
    assert (group.is_complete, group.is_available) == (True, False)
    assert group.unit_of(rest) is None
    assert [one.sequence for one in group.unit_of(parts[1]) or ()] == [3, 1, 2]
    group.came(parts[0])
    assert group.is_available


def test_units_of_work_are_told_apart_by_members():
    """An item differs if any member was put the other way (GRP-43)."""
    group = grouped(item(1, 1, "u"))
    assert not group.differs_in_unit_of_work(item(2, 2, "u"))
    assert group.differs_in_unit_of_work(item(2, 2))
    group.add(item(2, 2))
    assert group.differs_in_unit_of_work(item(3, 3, "u"))
    assert group.differs_in_unit_of_work(item(3, 3))


@pytest.mark.parametrize("field", [{"last_segment": True}, {"offset": 1}, {"length": 1}], ids=str)
def test_what_is_no_segment_has_no_place_in_a_logical_message(field):
    """GRP-39: each field of a segment alone is refused where the message is none."""
    large = LargeState()
    found = large.grouped(large.open(), "queue:q", bytes(23) + b"g", 1, **field)
    assert isinstance(found, Refused)
    assert (found.reason, "no segment" in found.detail) == ("group-invalid", True)


def random_item(chance: random.Random, sequence: int) -> SegmentMessage:
    """An item that often fits, and often clashes."""
    kind = chance.choice(("", "", "s", "s", "e"))
    marks = chance.choice(("", "", "", "L", "-")) + kind + chance.choice(("", "u"))
    number = chance.randint(1, 3)
    offset = chance.choice((0, 5, 10, 3)) if kind else 0
    return item(sequence, number, marks, offset, chance.choice((5, 5, 10)))


def told(group: Group) -> tuple[object, ...]:
    """All that a group tells."""
    counters = (group.away, group.count, group.in_units_of_work, group.last, group.whole)
    slots = [
        (number, slot.covered, slot.end, slot.away, slot.offsets)
        if isinstance(slot, Segments)
        else (number, slot.sequence)
        for number, slot in sorted(group.slots.items())
    ]
    items = [(one.sequence, one.flags) for one in group.items()]
    return counters, slots, items, group.is_complete, group.in_group and bool(group.slots)


@pytest.mark.parametrize("seed", range(20))
def test_group_is_what_joining_its_items_anew_makes_of_it(seed):
    """Whatever comes, goes, is taken and comes back, in any order."""
    chance = random.Random(seed)
    group, items = Group(group_id("G")), []
    for sequence in range(120):
        what = chance.random()
        if what < 0.5 or not items:
            one = random_item(chance, sequence)
            items.append(one)
            group.add(one)
        elif what < 0.75:
            one = items.pop(chance.randrange(len(items)))
            group.remove(one)
        else:
            one = chance.choice(items)
            # Without a consumer, a message says itself that it is here.
            one.consumer = None if one.consumer else QUEUE  # type: ignore[assignment]
            (group.went if one.consumer else group.came)(one)
        kept = told(group)
        flags = [one.flags for one in items]
        anew = Group(group.group_id)
        for one in sorted(items, key=lambda each: each.sequence):
            one.flags &= ~(MEMBER | AWAY)
            anew.add(one)
        assert told(anew) == kept
        assert [one.flags for one in items] == flags


def _away_forgotten(state):
    group_of(state).away -= 1


def _away_of_a_logical_message_forgotten(state):
    group_of(state).slots[2].away -= 1


def _whole_twice(state):
    group_of(state).whole += 1


def _last_forgotten(state):
    group_of(state).last = 0


def _covered_wrong(state):
    group_of(state).slots[2].covered -= 1


def _end_wrong(state):
    group_of(state).slots[2].end = 11


def _count_wrong(state):
    group_of(state).count += 1


def _units_of_work_wrong(state):
    group_of(state).in_units_of_work += 1


def _no_group(state):
    group_of(state).in_group = False


def _clashing_lost(state):
    group_of(state, "H").clashing.clear()


def _clashing_is_a_member(state):
    group_of(state, "H").clashing[0].flags |= MEMBER


def _member_marked_away(state):
    group_of(state).item_at(2, 5).flags |= AWAY


def _group_forgotten(state):
    del state.queues["q"].groups[group_id("H")]


def _empty_group(state):
    state.queues["q"].groups[group_id("X")] = Group(group_id("X"))


def _group_of_its_own(state):
    group_of(state).item_at(2, 5).group = Group(group_id("G"))


def _segment_under_another_offset(state):
    items = group_of(state).slots[2].items
    items[5], items[0] = items[0], items[5]


def _kept_for_one_who_does_not_know(state):
    getter = next(iter(state.queues["q"].reserved.values()))
    getter.reserved_group = None


def _kept_for_nobody(state):
    state.queues["q"].reserved.clear()


def _keeps_without_a_place(state):
    next(iter(state.queues["q"].reserved.values())).group_position = None


def _keeps_another_group(state):
    getter = next(iter(state.queues["q"].reserved.values()))
    getter.group_position = (group_id("H"), 1, 0)


BROKEN = [
    (_away_forgotten, "away is 1, not 2"),
    (_away_of_a_logical_message_forgotten, None),
    (_whole_twice, "whole is 3, not 2"),
    (_last_forgotten, "last is 0, not 2"),
    (_covered_wrong, None),
    (_end_wrong, None),
    (_count_wrong, "count is 4, not 3"),
    (_units_of_work_wrong, "in_units_of_work is 1, not 0"),
    (_no_group, "in_group is False"),
    (_clashing_lost, "clashing"),
    (_clashing_is_a_member, "members"),
    (_member_marked_away, "members"),
    (_group_forgotten, None),
    (_empty_group, "groups"),
    (_group_of_its_own, "group"),
    (_segment_under_another_offset, "members"),
    (_kept_for_one_who_does_not_know, "kept"),
    (_kept_for_nobody, None),
    (_keeps_without_a_place, "without a position"),
    (_keeps_another_group, "another group"),
]


@pytest.mark.parametrize(
    ("broken", "text"), BROKEN, ids=[one.__name__.strip("_") for one, _ in BROKEN]
)
def test_broken_group_is_found(broken, text):
    """Whatever is wrong in a group or in who keeps it, the invariants name it."""
    state = state_with_groups()
    invariants.check(state)
    broken(state)
    with pytest.raises((AssertionError, KeyError), match=text):
        invariants.check(state)
