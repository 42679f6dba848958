"""Tests of administering groups: what is there of each, what is missing, who holds it."""

from datetime import datetime

import pytest

import ledgermq
from ledgermq.client.admin import statuses
from ledgermq.protocol.operations import AlterQueue, CreateQueue
from support.messages.grouped_items import consume, get_items, group_id, put_items, put_uncommitted


@pytest.fixture
def connection(own_connection):
    """Shared with no other test: these number consumers of the administration's session."""
    return own_connection


@pytest.fixture
def name(connection, queue) -> str:
    """The name of a queue that only this test uses, which is there."""
    connection.admin.create_queue(queue)
    return queue.removeprefix("queue:")


def test_group_affinity_is_set_and_altered(connection, queue):
    """A queue is made with or without it; altering something else leaves it as it is."""
    admin = connection.admin
    admin.create_queue(queue, group_affinity=True)
    admin.alter_queue(queue, description="by customer")
    assert admin.queue_status(queue).group_affinity is True
    admin.alter_queue(queue, group_affinity=False)
    assert admin.queue_status(queue).group_affinity is False


def test_group_affinity_is_off_unless_asked_for(route):
    """What is written is what was told."""
    with route.connected() as connection:
        connection.admin.create_queue("a")
        connection.admin.alter_queue("a", group_affinity=True)
    made = [one for one in route.log.operations if isinstance(one, CreateQueue)]
    altered = [one for one in route.log.operations if isinstance(one, AlterQueue)]
    assert [one.group_affinity for one in made] == [False]
    assert [one.group_affinity for one in altered] == [True]


def test_groups_of_a_queue_without_any_are_none(connection, name):
    """Messages in no group make none."""
    put_items(connection, name, "A", "B")
    assert connection.admin.groups(name) == []
    assert connection.admin.queue_status(name).groups == 0


def test_complete_group_is_told_with_its_items(connection, name):
    """GRP-46: complete and available, from its first item on, in logical order (GRP-03)."""
    admin = connection.admin
    put_items(connection, name, "Y3{g=Y.3!}", "Y1{g=Y.1}", "A", "Y2{g=Y.2}")
    (listed,) = admin.groups(f"queue:{name}")
    assert listed.group_id == group_id("Y")
    assert (listed.in_group, listed.complete, listed.available) == (True, True, True)
    assert (listed.messages, listed.items, listed.last_group_sequence) == (3, 3, 3)
    assert (listed.missing, listed.missing_segments, listed.clashing) == ((), (), ())
    assert (listed.held, listed.holder, listed.first_sequence) == (0, None, 0)
    assert isinstance(listed.first_enqueued_at, datetime)
    assert listed.members == ()
    status = admin.queue_status(name)
    assert (status.groups, status.first_enqueued_at) == (1, listed.first_enqueued_at)
    shown = admin.group(name, listed.group_id)
    assert [one.group_sequence for one in shown.members] == [1, 2, 3]
    assert [one.sequence for one in shown.members] == [1, 3, 0]
    assert [one.last_in_group for one in shown.members] == [False, False, True]
    assert {(one.state, one.session, one.consumer) for one in shown.members} == {
        ("available", None, None)
    }


def test_missing_messages_are_told_as_ranges(connection, name):
    """GRP-46: below the last one, or below the highest while the last is not there."""
    put_items(connection, name, "Y2{g=Y.2}", "Y6{g=Y.6}", "Z3{g=Z.3!}")
    early, ended = connection.admin.groups(name)
    assert (early.complete, early.missing) == (False, ((1, 1), (3, 5)))
    assert (early.last_group_sequence, early.highest_group_sequence) == (0, 6)
    assert (ended.complete, ended.missing) == (False, ((1, 2),))
    assert (ended.last_group_sequence, ended.highest_group_sequence) == (3, 3)


def test_missing_segments_are_told_in_bytes(connection, name):
    """Between segments, and behind them while the last one is not there."""
    put_items(connection, name, "a{g=Y.1@10+5}", "b{g=Y.2!@0+4}", "c{g=Y.2!@6+2!}")
    state = connection.admin.group(name, group_id("Y"))
    assert [(one.group_sequence, one.start, one.end) for one in state.missing_segments] == [
        (1, 0, 10),
        (1, 15, None),
        (2, 4, 6),
    ]
    assert (state.messages, state.items, state.missing) == (2, 3, ())
    assert [(one.offset, one.length) for one in state.members] == [(10, 5), (0, 4), (6, 2)]
    assert [one.last_segment for one in state.members] == [False, False, True]


def test_message_in_segments_alone_is_told_as_such(connection, name):
    """It is in no group, and complete when its bytes are there."""
    put_items(connection, name, "a{g=-S.1@0+5}", "b{g=-S.1@5+5!}")
    (state,) = connection.admin.groups(name)
    assert (state.in_group, state.complete, state.messages, state.items) == (False, True, 1, 2)


def test_clash_of_two_units_of_work_is_told(connection, name):
    """What clashes only by its numbering comes last, and is named by its sequence number."""
    with connection.session(transacted=True) as first, connection.session(transacted=True) as other:
        commits = [
            put_uncommitted(connection, first, name, "a{g=Y.1}", "b{g=Y.2!}"),
            put_uncommitted(connection, other, name, "c{g=Y.1}", "d{g=Z.1!}"),
        ]
        for commit in commits:
            commit()
    state = connection.admin.group(name, group_id("Y"))
    assert (state.complete, state.available, state.clashing) == (True, True, (2,))
    assert (state.messages, state.items) == (2, 3)
    assert [one.sequence for one in state.members] == [0, 1, 2]
    assert [one.state for one in state.members] == ["available", "available", "clashing"]


def test_holder_and_held_items_are_told(connection, name):
    """Who got the first message in logical order has the rest kept (GRP-17)."""
    put_items(connection, name, "a{g=Y.1}", "b{g=Y.2}", "c{g=Y.3!}")
    session = get_items(connection, name, 1, consumer=7, logical_order=True)
    state = connection.admin.group(name, group_id("Y"))
    assert (state.complete, state.available, state.held) == (True, False, 1)
    assert state.holder == ledgermq.GroupHolder(session=session, consumer=7)
    first, second, _ = state.members
    assert (first.state, first.session, first.consumer) == ("held", session, 7)
    assert (second.state, second.session, second.consumer) == ("available", None, None)
    consume(connection, 1)
    (rest,) = connection.admin.groups(name)
    assert (rest.missing, rest.items, rest.held) == (((1, 1),), 2, 0)
    assert rest.holder == state.holder


def test_groups_are_read_page_by_page(connection, name, monkeypatch):
    """However many there are, each comes once, by group id."""
    monkeypatch.setattr(statuses, "GROUPS_PER_PAGE", 2)
    put_items(connection, name, *(f"m{one}{{g={one}.1}}" for one in "YBXAC"))
    found = connection.admin.groups(name)
    assert [one.group_id for one in found] == [group_id(one) for one in "ABCXY"]


def test_unknown_group_and_queue_have_errors_of_their_own(connection, name):
    """Each names what is not there."""
    with pytest.raises(ledgermq.GroupNotFoundError) as caught:
        connection.admin.group(name, group_id("Y"))
    assert (caught.value.code, caught.value.destination) == ("group-unknown", f"queue:{name}")
    assert group_id("Y").hex() in str(caught.value)
    for ask in (connection.admin.groups, lambda queue: connection.admin.group(queue, b"")):
        with pytest.raises(ledgermq.QueueNotFoundError):
            ask(f"{name}.none")
