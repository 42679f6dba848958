"""Tests of the check of deliveries where there are groups: order, kept groups, affinity."""

import json

import pytest

from ledgermq.protocol.operations import Get
from ledgermq_spark.derivation.get_options import options_of
from ledgermq_spark.derivation.group_turns import GroupTurns
from ledgermq_spark.derivation.items import Group, Item
from ledgermq_spark.derivation.step import Step
from ledgermq_spark.log.headers import grouping, header_text
from support.random_logs.random_groups import NO_OPTIONS, group_header, group_id, options, place


def step(position, what, message=0, group=None, **fields):
    """A step of the message with that number, put at position 0; `group`: its place."""
    phase = 2 if what == "delivered" else 1
    defaults = {"index": message, "session": 1, "consumer": 1}
    header = header_text(group_header(group)) if group is not None else None
    told = Step(
        position,
        phase,
        0,
        0,
        what,
        *(0, message, bytes([message]) * 16, 4, message, 1),
        header=header,
    )
    return told._replace(**(defaults | fields))


def asked(position, consumer=1, session=1, **fields):
    """A Get with options."""
    get = Get(
        session=1,
        session_sequence=1,
        answered_through=0,
        handed_through=0,
        consumer=1,
        credit=1,
        options=options(**fields),
    )
    text = grouping(get)[0]
    return step(position, "options", header=text, consumer=consumer, session=session)


def put(position, *groups, session=1, mode="AUTO"):
    """A Put of messages with those places."""
    told = {
        "priorities": [4 for _ in groups],
        "headers": [header_text(group_header(one)) for one in groups],
    }
    return step(position, "put", header=json.dumps(told), selector=mode, session=session)


def findings(*steps):
    """What the steps show, as (kind, message or reason)."""
    turns = GroupTurns()
    found = [one for each in steps for one in turns.take(each)] + list(turns.finish())
    return [(kind, what if kind == "refusal" else one.sequence) for kind, one, what in found]


def figure(last=True):
    """Y1, Z2, Y2, A, Z1 and, if it is there, Y3 as the last: numbers 0 to 5."""
    places = [place("Y"), place("Z", 2, last_in_group=True), place("Y", 2), None, place("Z")]
    places += [place("Y", 3, last_in_group=True)] if last else []
    return [step(1, "numbered", at, one) for at, one in enumerate(places)]


def taken(*numbers, start=2, **fields):
    """Deliveries one after the other."""
    return [step(start + at, "delivered", number, **fields) for at, number in enumerate(numbers)]


def test_logical_order_brings_groups_one_after_the_other():
    """Where its first item stands, each group is got from 1 to the last (GRP-03, GRP-06)."""
    steps = [*figure(), asked(2, logical_order=True), *taken(0, 2, 5, 3, 4, 1, start=3)]
    assert findings(*steps) == []
    assert findings(*figure(), *taken(0, 1, 2, 3, 4, 5)) == []


def test_what_is_out_of_logical_order_is_reordered():
    """In a group nothing else comes (GRP-03); a group begins with its first item (GRP-14)."""
    logical = [*figure(), asked(2, logical_order=True)]
    assert findings(*logical, *taken(0, 3, start=3)) == [("reordered", 3)]
    assert findings(*logical, *taken(0, 5, start=3)) == [("reordered", 5)]
    assert findings(*logical, *taken(1, start=3)) == [("reordered", 1)]
    assert findings(*logical, *taken(3, start=3)) == [("reordered", 3)]


def test_a_group_that_is_not_available_is_not_to_be_given():
    """Asked of the first item in logical order, of every item without (GRP-20, GRP-21)."""
    whole = asked(2, all_messages_available=True)
    assert findings(*figure(last=False), whole, *taken(0, start=3)) == [("unexpected", 0)]
    assert findings(*figure(last=False), whole, *taken(1, start=3)) == []
    assert findings(*figure(), whole, *taken(0, start=3)) == []
    # With the first one in flight, the group is not available any longer.
    assert findings(*figure(), whole, *taken(0, 2, start=3)) == [("unexpected", 2)]
    logical = asked(2, all_messages_available=True, logical_order=True)
    assert findings(*figure(), logical, *taken(0, 2, 5, start=3)) == []


def test_a_group_that_is_kept_goes_to_no_other():
    """While a consumer in logical order is in it; others pass over it without being told."""
    logical = [*figure(), asked(2, logical_order=True), *taken(0, start=3)]
    assert findings(*logical, *taken(2, start=4, session=2)) == [("unexpected", 2)]
    assert findings(*logical, *taken(1, start=4, session=2)) == []
    closed = step(4, "closed")
    assert findings(*logical, closed, *taken(2, start=5, session=2)) == [("reordered", 2)]
    assert findings(*logical, closed, *taken(1, 2, start=5, session=2)) == []


def test_a_place_goes_back_with_what_is_rolled_back():
    """To what came after the last delivery that was consumed (GRP-34)."""
    logical = [*figure(), asked(2, logical_order=True), *taken(0, 2, start=3)]
    consumed = step(5, "gone", 0, selector="committed")
    back = [step(6, "returned", 2), step(6, "back", index=1)]
    assert findings(*logical, consumed, *back, *taken(2, 5, start=7)) == []
    assert findings(*logical, consumed, *back, *taken(5, start=7)) == [("reordered", 5)]


def test_affinity_bonds_a_group_to_the_consumer_that_got_of_it_first():
    """Until that closes, or affinity is turned off."""
    on = step(0, "affinity", sequence=1)
    first = [on, *figure(), *taken(0, start=2)]
    assert findings(*first, *taken(2, start=3, session=2)) == [("unexpected", 2)]
    assert findings(*first, *taken(1, start=3, session=2)) == []
    closed = step(3, "closed")
    assert findings(*first, closed, *taken(1, 2, start=4, session=2)) == []
    off = step(3, "affinity", sequence=0)
    assert findings(*first, off, *taken(1, 2, start=4, session=2)) == []


def keyed(number, key, group=None):
    """A numbered message with a property that is its key in affinity."""
    header = header_text(group_header(group, properties={"JMSXGroupID": key}))
    return step(1, "numbered", number)._replace(header=header)


def test_what_follows_a_first_item_comes_with_it_whatever_its_key():
    """Its bucket is bonded if it is free, and stays with whom it is bonded to."""
    on, logical = step(0, "affinity", sequence=1), asked(2, logical_order=True)
    numbered = [
        keyed(0, "u", place("Y")),
        keyed(1, "v", place("Y", 2)),
        keyed(2, "w", place("Y", 3, last_in_group=True)),
        *(keyed(3 + at, key) for at, key in enumerate("vvww")),
    ]
    bonds = [on, *numbered, logical, *taken(0, start=3), *taken(3, start=4, session=2)]
    followed = [*bonds, *taken(1, 2, start=5)]
    assert findings(*followed, *taken(4, start=8, session=2)) == []
    assert findings(*followed, *taken(5, start=8, session=2)) == [("unexpected", 5)]
    assert findings(*followed, *taken(4, start=8)) == [("unexpected", 4)]


def test_segments_behind_the_first_of_a_delivery_bond_nothing():
    """They come with the first one, whose bucket is bonded alone."""
    on, complete = step(0, "affinity", sequence=1), asked(2, complete_message=True)
    numbered = [
        keyed(0, "u", place("S", 1, 0, in_group=False)),
        keyed(1, "v", place("S", 1, 10, in_group=False, last_segment=True)),
        *(keyed(2 + at, key) for at, key in enumerate("vu")),
    ]
    together = [step(3, "delivered", at, index=0, offset=at) for at in range(2)]
    first = [on, *numbered, complete, *together]
    assert findings(*first, *taken(2, start=4, session=2)) == []
    assert findings(*first, *taken(2, 3, start=4, session=2)) == [("unexpected", 3)]


def born(number, moment, priority=4):
    """A message that an entry found born at a moment."""
    fields = {"phase": 0, "index": -1, "moment": moment, "priority": priority}
    return step(2, "numbered", number, **fields)


def test_what_is_born_later_is_not_passed_over_by_what_was_served_before():
    """An entry may find births of several moments; after each of them there are deliveries."""
    births = [born(0, 100), born(1, 200, priority=7), born(2, 200)]
    served = [
        step(2, "delivered", number, phase=0, index=at, priority=7 if number == 1 else 4)
        for at, number in enumerate((0, 1, 2))
    ]
    assert findings(*births, *served) == []
    assert findings(*births, *(one._replace(phase=2) for one in served)) == []
    assert findings(*births, served[0], served[2]) == [("reordered", 2)]
    assert findings(*births, *taken(1, start=3)) == []
    assert findings(*births, *taken(0, start=3)) == [("reordered", 0)]


def segments(last=True):
    """Three segments of one message in no group, the last one only if asked for, and A behind."""
    places = [place("S", 1, at * 10, in_group=False) for at in range(2)]
    places += [place("S", 1, 20, in_group=False, last_segment=True)] if last else []
    return [step(1, "numbered", at, one) for at, one in enumerate([*places, None])]


def test_what_is_got_complete_comes_in_all_its_segments_or_not_at_all():
    """One after the other in one delivery (GRP-38)."""
    complete = asked(2, complete_message=True)
    together = [step(3, "delivered", at, index=0, offset=at) for at in range(3)]
    assert findings(*segments(), complete, *together) == []
    assert findings(*segments(), complete, *together[:2]) == [("unexpected", 0)]
    assert findings(*segments(last=False), complete, *together[:2])[0] == ("unexpected", 0)
    assert findings(*segments(last=False), complete, *taken(2, start=3)) == []


def test_segments_may_exceed_what_a_session_may_hold_if_they_come_complete():
    """By the further segments of the logical message."""
    limit = step(0, "limit", 0, sequence=1)
    together = [step(3, "delivered", at, index=0, offset=at) for at in range(3)]
    complete = asked(2, complete_message=True)
    assert findings(limit, *segments(), complete, *together) == []
    assert findings(limit, *segments(), *together[:2]) == [("unexpected", 1)]


def test_match_options_name_what_may_come():
    """By group id and group sequence; nothing else is passed over (GRP-34)."""
    match = asked(2, group_id=group_id("Y"), group_sequence=2)
    assert findings(*figure(), match, *taken(2, start=3)) == []
    assert findings(*figure(), match, *taken(0, start=3)) == [("unexpected", 0)]


def test_match_options_that_disagree_with_logical_order_are_refused():
    """With a place, the values must be those of what comes next there (GRP-44)."""
    logical = [*figure(), asked(2, logical_order=True), *taken(0, start=3)]
    wrong = {"logical_order": True, "group_sequence": 3}
    right = {"logical_order": True, "group_sequence": 2, "message_id": bytes([2]) * 16}
    assert findings(*logical, asked(4, **wrong)) == [("refusal", "match-options-invalid")]
    assert findings(*logical, asked(4, **right)) == []
    other = right | {"message_id": b"x" * 16}
    assert findings(*logical, asked(4, **other)) == [("refusal", "match-options-invalid")]
    assert findings(*logical, asked(4, group_sequence=3)) == []


@pytest.mark.parametrize(
    ("group", "reason"),
    [
        (place("Y", 2), "group-clash"),
        (place("Y", 4), "group-clash"),
        (place("Y", 2, 0), "group-clash"),
        (place("Y", 1, 0, in_group=False), "group-clash"),
        (place("Z", 3), "group-clash"),
        (place("X", 0), "group-invalid"),
        (place("X", in_group=False), "group-invalid"),
        (place("X", last_segment=True), "group-invalid"),
        (place("X", group_id=bytes(24)), "group-invalid"),
        (place("X", group_id=b"short"), "group-invalid"),
        (place("X", 7), None),
    ],
)
def test_puts_that_clash_or_are_out_of_range_are_refused(group, reason):
    """By what is there of the group, or by itself (decision 18)."""
    expected = [] if reason is None else [("refusal", reason)]
    assert findings(*figure(), put(2, group)) == expected


def test_puts_clash_with_what_their_unit_of_work_holds_until_that_ends():
    """Open puts of another session are not looked at; a rollback lets them go (decision 18)."""
    first = put(2, place("X"), mode="TRANSACTED")
    again = put(4, place("X"), mode="TRANSACTED")
    assert findings(first, again) == [("refusal", "group-clash")]
    assert findings(first, put(3, place("X"), session=2, mode="TRANSACTED")) == []
    assert findings(first, step(3, "unit"), again) == []
    assert findings(put(2, place("X"), place("X"))) == [("refusal", "group-clash")]


def test_logical_order_asks_for_one_priority_and_one_kind_of_units_of_work():
    """Else the put is refused (GRP-43, decision 17)."""
    in_unit = put(2, place("Y", 4, logical_order=True), mode="TRANSACTED")
    outside = figure(last=False)
    wanted = put(2, place("Y", 3, logical_order=True), mode="TRANSACTED")
    assert findings(*outside, wanted) == [("refusal", "unit-of-work-inconsistent")]
    assert findings(*outside, put(2, place("Y", 3), mode="TRANSACTED")) == []
    assert findings(*figure(), in_unit) == [("refusal", "group-clash")]
    told = json.loads(put(2, place("Y", 3, logical_order=True)).header)
    urgent = put(2)._replace(header=json.dumps(told | {"priorities": [7]}))
    assert findings(*outside, urgent) == [("refusal", "group-clash")]


def test_what_clashed_is_a_member_when_the_other_is_gone():
    """A second message 2 waits beside the group and takes the place of the first."""
    group = Group()
    items = [
        Item(place=(-4, at), header={"g": {"i": "aa", "n": number, "o": 0, "l": 0, "f": flags}})
        for at, (number, flags) in enumerate([(1, "g"), (2, "gm"), (2, "gm")])
    ]
    for item in items:
        group.add(item)
        group.set_here(item, True)
    assert (group.complete, group.available, group.clashing) == (True, True, [items[2]])
    group.remove(items[1])
    assert (group.complete, group.available, group.clashing) == (True, True, [])
    group.set_here(items[2], False)
    assert (group.complete, group.available) == (True, False)


def test_options_are_read_as_they_were_written():
    """All of them, ids in hexadecimal; none is plain."""
    get = Get(
        session=1,
        session_sequence=1,
        answered_through=0,
        handed_through=0,
        consumer=1,
        credit=1,
        options=options(group_id=group_id("Y"), offset=7),
    )
    text, _, grouped = grouping(get)
    assert options_of(text).group_id == group_id("Y").hex()
    assert (options_of(text).offset, options_of(text).in_range, grouped) == (7, True, True)
    assert options_of("") == options_of(json.dumps(NO_OPTIONS, default=lambda one: one.hex()))
