"""Tests of getting groups: the worked examples of logical order, and whole groups."""

import threading

import pytest

from ledgermq import (
    GroupStatus,
    IllegalStateError,
    IncompleteGroupWarning,
    Order,
    SegmentStatus,
)
from ledgermq.testing import MemoryBroker
from support.messages.group_puts import fill, group_id, put

E1 = (
    *("A", "Y1{g=Y.1}", "Z2{g=Z.2!}", "Y2{g=Y.2}", "Y3a{g=Y.3!@0+3}", "Y3b{g=Y.3!@3+3!}"),
    *("Z1{g=Z.1}", "B"),
)
PHYSICAL = ["A", "Y1", "Z2", "Y2", "Y3a", "Y3b", "Z1", "B"]
LOGICAL = ["A", "Y1", "Y2", "Y3a", "Y3b", "Z1", "Z2", "B"]
IN_GROUP, LAST = GroupStatus.MESSAGE_IN_GROUP, GroupStatus.LAST_MESSAGE_IN_GROUP


def bodies(messages):
    """What was sent, in the order in which it came."""
    return [None if one is None else one.body for one in messages]


@pytest.mark.parametrize("prefetch", [0, 1, 3, 200])
@pytest.mark.parametrize(("order", "expected"), [("PHYSICAL", PHYSICAL), ("LOGICAL", LOGICAL)])
def test_e1_the_same_messages_come_in_physical_and_in_logical_order(
    connection, queue, order, expected, prefetch
):
    """E1: figures 10 and 11 of the source (GRP-02, GRP-03, GRP-06)."""
    fill(connection, queue, *E1)
    with connection.session() as session:
        consumer = session.consumer(queue, order=order, prefetch=prefetch)
        found = [consumer.receive(20) for _ in expected]
        assert consumer.receive(0) is None
    assert bodies(found) == expected


def test_a_message_says_where_it_stands_in_its_group(connection, queue):
    """Group id, number, offset and both statuses, as the getting application looks at (GRP-22)."""
    fill(connection, queue, *E1)
    with connection.session() as session:
        consumer = session.consumer(queue)
        found = {one.body: one for one in (consumer.receive(20) for _ in E1)}
    places = {
        name: (one.group_id, one.group_sequence, one.offset, one.group_status, one.segment_status)
        for name, one in found.items()
    }
    y, whole = group_id("Y"), SegmentStatus.NOT_A_SEGMENT
    assert places["A"] == (None, 1, 0, GroupStatus.NOT_IN_GROUP, whole)
    assert places["Y1"] == (y, 1, 0, IN_GROUP, whole)
    assert places["Y3a"] == (y, 3, 0, LAST, SegmentStatus.SEGMENT)
    assert places["Y3b"] == (y, 3, 3, LAST, SegmentStatus.LAST_SEGMENT)
    assert places["Z2"] == (group_id("Z"), 2, 0, LAST, whole)


@pytest.mark.parametrize("prefetch", [0, 200])
def test_e2_nothing_of_a_group_comes_before_all_of_it_is_committed(connection, queue, prefetch):
    """E2: the getting application loops while it is in a group, then commits (GRP-19..23)."""
    with connection.session(transacted=True) as putter, connection.session(transacted=True) as one:
        wanted = {"order": Order.LOGICAL, "all_messages_available": True}
        consumer = one.consumer(queue, prefetch=prefetch, **wanted)
        put(putter, queue, "M1{g=G.1}", "M2{g=G.2}", "M3{g=G.3}")
        put(putter, queue, "M4{g=G.4!}")
        assert consumer.receive(0.2) is None
        putter.commit()
        found = [consumer.receive(20)]
        while found[-1].group_status is IN_GROUP:
            found.append(consumer.receive(20))
        assert one.commit().consumed == 4
    assert bodies(found) == ["M1", "M2", "M3", "M4"]
    assert [one.group_status for one in found] == [IN_GROUP, IN_GROUP, IN_GROUP, LAST]


def test_e8_a_group_without_its_first_item_is_not_in_the_logical_sequence(connection, queue):
    """E8: [Y2, Y3(last), B] brings B alone; with Y1 there it brings the group (GRP-14)."""
    fill(connection, queue, "Y2{g=Y.2}", "Y3{g=Y.3!}", "B")
    with connection.session() as session:
        consumer = session.consumer(queue, order=Order.LOGICAL, prefetch=0)
        assert bodies([consumer.receive(20), consumer.receive(0.1)]) == ["B", None]
        put(session, queue, "Y1{g=Y.1}")
        assert bodies(consumer.receive(20) for _ in range(3)) == ["Y1", "Y2", "Y3"]


def test_a_rollback_goes_back_to_the_place_of_the_last_commit(connection, queue):
    """What was got after it comes again, then the rest of the group, as after MQBACK."""
    fill(connection, queue, "M1{g=G.1}", "N", "M2{g=G.2}", "M3{g=G.3!}")
    with connection.session(transacted=True) as session:
        consumer = session.consumer(queue, order=Order.LOGICAL)
        assert consumer.receive(20).body == "M1"
        session.commit()
        assert consumer.receive(20).body == "M2"
        session.rollback()
        found = [consumer.receive(20) for _ in range(3)]
        session.commit()
    assert [(one.body, one.redelivered) for one in found] == [
        *(("M2", True), ("M3", False), ("N", False)),
    ]


def test_a_listener_gets_groups_in_logical_order(connection, queue, eventually):
    """Message by message."""
    fill(connection, queue, *E1)
    found = []
    with connection.session() as session:
        consumer = session.consumer(queue, order=Order.LOGICAL, prefetch=2)
        consumer.set_message_listener(lambda message: found.append(message.body))
        eventually(lambda: len(found) == 8)
    assert found == LOGICAL


# -- whole groups ----------------------------------------------------------------------------------

GROUPS = [["A"], ["Y1", "Y2", "Y3a", "Y3b"], ["Z1", "Z2"], ["B"]]


@pytest.mark.parametrize("prefetch", [0, 1, 3, 200])
def test_receive_group_brings_whole_groups(connection, queue, prefetch):
    """Or one message that is in none; each group is for one consumer (GRP-17)."""
    fill(connection, queue, *E1)
    own = {"order": Order.LOGICAL, "all_messages_available": True} if prefetch else {}
    with connection.session(ack="CLIENT") as session:
        consumer = session.consumer(queue, prefetch=prefetch, **own)
        found = [bodies(consumer.receive_group(20)) for _ in GROUPS]
        assert consumer.receive_group(0.1) == []
        assert len(session._work.settling.handed) == 8
        session.acknowledge()
    assert found == GROUPS
    assert connection.admin.queue_status(queue.partition(":")[2]).message_count == 0


def test_a_whole_group_that_is_there_is_got_without_waiting(connection, queue):
    """With a time-out of 0, and nothing asked for ahead of need."""
    fill(connection, queue, *E1, "M1{g=M.1}")
    with connection.session() as session:
        consumer = session.consumer(queue, prefetch=0)
        assert [bodies(consumer.receive_group(0)) for _ in range(5)] == [*GROUPS, []]


def test_close_from_another_thread_ends_a_receive_group_that_waits(connection, queue):
    """It returns an empty list, and what was gathered goes back (SES-21)."""
    fill(connection, queue, "M1{g=G.1}")
    found = []
    with connection.session() as session:
        consumer = session.consumer(queue, prefetch=0)
        waiting = threading.Thread(target=lambda: found.append(consumer.receive_group()))
        waiting.start()
        while session._engine._user is None:
            pass
        consumer.close()
        waiting.join(20)
    assert found == [[]]
    assert connection.admin.queue_status(queue.partition(":")[2]).current == 1


def test_a_group_in_doubt_is_handed_over_as_a_whole():
    """H20: each message is told of before, and comes alone; together they are blamed."""
    memory = MemoryBroker()
    with memory.connect() as connection:
        fill(connection, "queue:q", "M1{g=G.1}", "M2{g=G.2}", "M3{g=G.3!}", "N")
    for prefetch in (0, 1, 9):
        connection = memory.connect()
        own = {"order": Order.LOGICAL, "all_messages_available": True}
        consumer = connection.session(ack="CLIENT").consumer("queue:q", prefetch=prefetch, **own)
        assert bodies(consumer.receive_group(5)) == ["M1", "M2", "M3"]
        memory.crash(connection)
    queue = memory._state.queues["q"]
    # The first time nobody could know; then it was told of before.
    counts = [(queue.messages[one].backout_count, queue.doubts[one]) for one in range(3)]
    assert counts == [(3, 1)] * 3


def test_receive_group_waits_for_the_group_and_loses_nothing(connection, queue):
    """A time-out in front of an incomplete group takes nothing of it (GRP-20)."""
    fill(connection, queue, "M1{g=G.1}", "M3{g=G.3!}")
    with connection.session() as session, connection.session() as other:
        consumer = session.consumer(queue, prefetch=0)
        assert consumer.receive_group(0.2) == []
        assert connection.admin.queue_status(queue.partition(":")[2]).current == 2
        put(other, queue, "M2{g=G.2}")
        assert bodies(consumer.receive_group(20)) == ["M1", "M2", "M3"]


@pytest.mark.parametrize("ending", ["receive", "close", "rollback"])
def test_what_was_gathered_of_a_group_that_lost_a_message_is_not_lost(connection, queue, ending):
    """It comes one by one, or goes back unseen when its consumer closes or its session rolls back.

    That is the rest of a group whose last message administration has removed meanwhile.
    """
    name = queue.partition(":")[2]
    fill(connection, queue, "M1{g=G.1}", "M2{g=G.2}", "M3{g=G.3!}")
    with connection.session(transacted=True) as session:
        consumer = session.consumer(queue, order=Order.LOGICAL, prefetch=0)
        assert consumer.receive(20, all_messages_available=True).body == "M1"
        session.commit()
        connection.admin.correct(name, sequence=2, action="REMOVE", actor="me", reason="a test")
        assert consumer.receive_group(0.2) == []
        assert connection.admin.queue_status(name).uncommitted_gets == 1
        if ending == "close":
            with pytest.warns(IncompleteGroupWarning):
                consumer.close()
            consumer = session.consumer(queue)
        elif ending == "rollback":
            session.rollback()
        found = consumer.receive(20)
        session.commit()
    assert (found.body, found.delivery_count) == ("M2", 1)
    assert connection.admin.queue_status(name).message_count == 0


def test_receive_group_needs_a_consumer_that_gets_whole_groups(connection, queue):
    """With a prefetch, what is on its way already must be of groups that are there."""
    with connection.session() as session:
        for options in ({}, {"order": Order.LOGICAL}, {"all_messages_available": True}):
            with pytest.raises(IllegalStateError, match="receive_group needs"):
                session.consumer(queue, **options).receive_group(0)
