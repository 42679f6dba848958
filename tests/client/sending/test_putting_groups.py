"""Tests of putting groups: places, logical order, group senders, and what is refused of them."""

import pytest

import ledgermq
from ledgermq import GroupPlace
from support.messages.group_members import groups_of, members_of, only_group

GROUP = bytes(range(24))
OTHER = bytes(range(1, 25))

pytestmark = pytest.mark.usefixtures("warnings_are_faults")


def places(connection, queue, group_id):
    """Return numbers and flags of a group's members in logical order."""
    found = members_of(connection, queue, group_id)
    return [(one["group_sequence"], one["offset"], one["last_in_group"]) for one in found]


def test_a_message_of_a_group_has_the_place_that_it_was_given(connection, queue):
    """Id, number and flag arrive; the receipt tells them (GRP-39, GRP-40)."""
    with connection.session() as session:
        producer = session.producer(queue)
        last = GroupPlace(group_id=GROUP, group_sequence=2, last_in_group=True)
        second = producer.send("2", group=last)
        first = producer.send("1", group=GroupPlace(group_id=GROUP))
        plain = session.producer(queue).send("plain")
    assert [one.body for one in connection.browser(queue)] == ["2", "1", "plain"]
    assert places(connection, queue, GROUP) == [(1, 0, False), (2, 0, True)]
    assert second.group == last
    assert (first.group.group_id, first.group.group_sequence) == (GROUP, 1)
    assert plain.group is None


def test_a_group_without_an_id_gets_a_new_one_each_time(connection, queue):
    """Without logical order, no id asks for a random one (GRP-39)."""
    with connection.session() as session:
        producer = session.producer(queue)
        ids = {producer.send("x", group=GroupPlace()).group.group_id for _ in range(3)}
    assert len(ids) == 3
    assert {len(one) for one in ids} == {24}
    assert {one["group_id"] for one in groups_of(connection, queue)} == {i.hex() for i in ids}


def test_logical_order_counts(connection, queue):
    """The producer makes the id, counts, and begins another group behind the last (GRP-19)."""
    with connection.session() as session:
        producer = session.producer(queue)
        receipts = [
            producer.send(str(n), group=GroupPlace(last_in_group=n % 3 == 2), logical_order=True)
            for n in range(6)
        ]
        producer.send("outside", logical_order=True)
    found = [one.group for one in receipts]
    assert [one.group_sequence for one in found] == [1, 2, 3, 1, 2, 3]
    assert len({one.group_id for one in found[:3]}) == 1
    assert len({one.group_id for one in found}) == 2
    assert places(connection, queue, found[0].group_id) == [
        (1, 0, False),
        (2, 0, False),
        (3, 0, True),
    ]


def test_logical_order_counts_segments_in_bytes(connection, queue):
    """Segments follow one another, in a group and in none; text counts as UTF-8 (GRP-26)."""
    with connection.session() as session:
        producer = session.producer(queue)
        places_given = [
            GroupPlace(segment=True),
            GroupPlace(last_segment=True),
            GroupPlace(segment=True, last_in_group=True),
            GroupPlace(last_segment=True, last_in_group=True),
            GroupPlace(in_group=False, segment=True),
            GroupPlace(in_group=False, last_segment=True),
        ]
        found = [producer.send("äb", group=one, logical_order=True).group for one in places_given]
    counted = [(one.group_sequence, one.offset) for one in found]
    assert counted == [(1, 0), (1, 3), (2, 0), (2, 3), (1, 0), (1, 3)]
    group, message = groups_of(connection, queue)
    if not group["in_group"]:
        group, message = message, group
    assert (group["complete"], group["messages"], group["items"]) == (True, 2, 4)
    assert (message["complete"], message["messages"], message["items"]) == (True, 1, 2)


def test_logical_order_is_kept_for_each_queue(connection, queue):
    """A producer without a destination has a place in each queue that it sends to."""
    with connection.session() as session, session.producer(None) as producer:
        for last in (False, True):
            for target in (queue, queue + ".other"):
                group = GroupPlace(last_in_group=last)
                producer.send("x", destination=target, group=group, logical_order=True)
    for target in (queue, queue + ".other"):
        assert only_group(connection, target)["complete"]


def test_a_message_outside_the_open_group_is_refused_in_logical_order(connection, queue):
    """Nothing is sent, and the group goes on (GRP-41)."""
    with connection.session() as session:
        producer = session.producer(queue)
        first = producer.send("1", group=GroupPlace(), logical_order=True)
        for wrong in (None, GroupPlace(in_group=False, segment=True), GroupPlace(group_id=OTHER)):
            with pytest.raises(ledgermq.IncompleteGroupError) as caught:
                producer.send("x", group=wrong, logical_order=True)
            with pytest.raises(ledgermq.IncompleteGroupError):
                producer.send_async("x", group=wrong, logical_order=True)
        last = producer.send("2", group=GroupPlace(last_in_group=True), logical_order=True)
        assert producer.send("outside", logical_order=True).sequence == 2
    assert (caught.value.code, caught.value.destination) == ("incomplete-group", queue)
    assert last.group.group_id == first.group.group_id
    assert only_group(connection, queue)["complete"]


def test_anything_but_the_next_segment_is_refused_in_logical_order(connection, queue):
    """Before what is wrong about the group (GRP-42); so is another last_in_group."""
    with connection.session() as session:
        producer = session.producer(queue)
        producer.send("1", group=GroupPlace(segment=True), logical_order=True)
        for wrong in (
            None,
            GroupPlace(),
            GroupPlace(in_group=False, segment=True),
            GroupPlace(segment=True, last_in_group=True),
        ):
            with pytest.raises(ledgermq.IncompleteMessageError) as caught:
                producer.send("x", group=wrong, logical_order=True)
        producer.send("2", group=GroupPlace(last_segment=True), logical_order=True)
        producer.send("3", group=GroupPlace(last_in_group=True), logical_order=True)
    assert caught.value.code == "incomplete-message"
    assert only_group(connection, queue)["complete"]


@pytest.mark.parametrize(
    ("wrong", "logical_order"),
    [
        (GroupPlace(group_id=b"short"), False),
        (GroupPlace(group_id=bytes(24)), False),
        (GroupPlace(group_id=b"short"), True),
        (GroupPlace(group_id="x" * 24), False),
        (GroupPlace(group_sequence=0), False),
        (GroupPlace(group_sequence=1_000_000_000), False),
        (GroupPlace(group_sequence=2.0), False),
        (GroupPlace(group_sequence=2), True),
        (GroupPlace(offset=7, segment=True), True),
        (GroupPlace(offset=-1, segment=True), False),
        (GroupPlace(offset=7), False),
        (GroupPlace(in_group=False), False),
        (GroupPlace(in_group=False, group_sequence=2, segment=True), False),
    ],
)
def test_a_place_that_no_message_can_have_is_refused(connection, queue, wrong, logical_order):
    """Ids, numbers, offsets and flags out of range (GRP-39, GRP-40); nothing is put."""
    with connection.session() as session:
        producer = session.producer(queue)
        with pytest.raises(ledgermq.InvalidGroupError) as caught:
            producer.send("x", group=wrong, logical_order=logical_order)
        producer.send("x")
    assert caught.value.code == "group-invalid"
    assert connection.admin.queue_status(queue).message_count == 1


def test_an_empty_segment_is_refused(connection, queue):
    """A segment has data; the producer stays where it was."""
    with connection.session() as session:
        producer = session.producer(queue)
        with pytest.raises(ledgermq.InvalidGroupError, match="one byte at least"):
            producer.send("", group=GroupPlace(segment=True), logical_order=True)
        assert producer.send("", group=GroupPlace(last_in_group=True)).sequence == 0


def test_a_clash_is_refused_and_leaves_the_producer_where_it_was(connection, queue):
    """In logical order the number is used again for what is sent next; so with another priority."""
    with connection.session() as session:
        producer = session.producer(queue)
        first = producer.send("1", group=GroupPlace(), logical_order=True)
        taken = GroupPlace(group_id=first.group.group_id, group_sequence=2)
        with pytest.raises(ledgermq.GroupClashError, match="priority"):
            producer.send("x", group=GroupPlace(), logical_order=True, priority=9)
        with connection.session() as other:
            other.producer(queue).send("2", group=taken)
            for _ in range(2):
                with pytest.raises(ledgermq.GroupClashError, match="message 2 is there"):
                    producer.send("x", group=GroupPlace(), logical_order=True)
            consumer = other.consumer(queue)
            assert [consumer.receive(20).body for _ in range(2)] == ["1", "2"]
        again = producer.send("2", group=GroupPlace(last_in_group=True), logical_order=True)
    assert again.group.group_sequence == 2


def test_an_asynchronous_refusal_takes_the_producer_back(connection, queue):
    """What was refused has no place: the next message in logical order takes it."""
    with connection.session() as session, connection.session() as other:
        producer = session.producer(queue)
        first = producer.send_async("1", group=GroupPlace(), logical_order=True).result(20)
        taken = GroupPlace(group_id=first.group.group_id, group_sequence=2)
        other.producer(queue).send("2", group=taken)
        future = producer.send_async("x", group=GroupPlace(), logical_order=True)
        assert isinstance(future.exception(20), ledgermq.GroupClashError)
        with pytest.raises(ledgermq.GroupClashError, match="message 2"):
            producer.send("x", group=GroupPlace(), logical_order=True)
        following = GroupPlace(group_id=first.group.group_id, group_sequence=3, last_in_group=True)
        with pytest.warns(ledgermq.IncompleteGroupWarning):
            producer.send("3", group=following)
    assert only_group(connection, queue)["complete"]


def test_asynchronous_sends_of_a_group_keep_their_order(connection, queue):
    """Many messages on their way at once are one group (GRP-19)."""
    with connection.session() as session, session.producer(queue) as producer:
        futures = [
            producer.send_async(
                str(n), group=GroupPlace(last_in_group=n == 499), logical_order=True
            )
            for n in range(500)
        ]
        producer.flush()
        receipts = [one.result(20) for one in futures]
    assert [one.group.group_sequence for one in receipts] == list(range(1, 501))
    assert [one.sequence for one in receipts] == list(range(500))
    assert only_group(connection, queue)["complete"]


@pytest.mark.parametrize("item", [GroupPlace(), GroupPlace(in_group=False, segment=True)])
def test_a_topic_takes_no_groups(connection, queue, item):
    """Neither messages of groups nor segments (GRP-45)."""
    topic = queue.replace("queue:", "topic:")
    with connection.session() as session:
        producer = session.producer(topic)
        with pytest.raises(ledgermq.GroupNotAllowedError) as caught:
            producer.send("x", group=item)
        with pytest.raises(ledgermq.GroupNotAllowedError):
            producer.send_segmented("long", max_segment=2)
        producer.send("x")
    assert isinstance(caught.value, ledgermq.InvalidDestinationError)


def test_a_refusal_in_a_unit_of_work_comes_with_its_commit(connection, queue):
    """As for any other put; the unit of work is rolled back (GRP-45)."""
    with connection.session(transacted=True) as session:
        producer = session.producer(queue.replace("queue:", "topic:"))
        producer.send("x", group=GroupPlace())
        with pytest.raises(ledgermq.TransactionRolledBackError) as caught:
            session.commit()
        assert isinstance(caught.value.__cause__, ledgermq.GroupNotAllowedError)


def test_a_group_put_in_and_outside_of_units_of_work_is_told(connection, queue):
    """With logical order it is refused, without it warns; both ways (GRP-43)."""
    with connection.session() as session, connection.session(transacted=True) as transacted:
        session.producer(queue).send("1", group=GroupPlace(group_id=GROUP))
        producer = transacted.producer(queue)
        producer.send("2", group=GroupPlace(group_id=GROUP, group_sequence=2))
        with pytest.warns(ledgermq.InconsistentUnitOfWorkWarning) as caught:
            transacted.commit()
        producer.send("3", group=GroupPlace(), logical_order=True)
        with pytest.raises(ledgermq.TransactionRolledBackError) as refused:
            transacted.commit()
        outside = session.producer(queue)
        with pytest.warns(ledgermq.InconsistentUnitOfWorkWarning):
            outside.send("3", group=GroupPlace(group_id=GROUP, group_sequence=3))
        future = outside.send_async("4", group=GroupPlace(group_id=GROUP, group_sequence=4))
        with pytest.warns(ledgermq.InconsistentUnitOfWorkWarning):
            future.result(20)
        with pytest.raises(ledgermq.InconsistentUnitOfWorkError):
            outside.send("5", group=GroupPlace(), logical_order=True)
    assert caught[0].message.code == "unit-of-work-inconsistent"
    assert isinstance(refused.value.__cause__, ledgermq.InconsistentUnitOfWorkError)
    assert len(members_of(connection, queue, GROUP)) == 4


def test_a_rollback_takes_the_producer_back_to_the_last_commit(connection, queue):
    """The next message has the number behind the last one committed (GRP-30)."""
    with connection.session(transacted=True) as session:
        producer = session.producer(queue)
        first = producer.send("1", group=GroupPlace(), logical_order=True)
        session.commit()
        for _ in range(2):
            producer.send("2", group=GroupPlace(), logical_order=True)
            producer.send("3", group=GroupPlace(last_in_group=True), logical_order=True)
            session.rollback()
        assert only_group(connection, queue)["items"] == 1
        second = producer.send("2", group=GroupPlace(last_in_group=True), logical_order=True)
        session.commit()
        session.rollback()
        begun = producer.send("new", group=GroupPlace(last_in_group=True), logical_order=True)
        session.commit()
    assert second.group.group_id == first.group.group_id
    assert begun.group.group_id != first.group.group_id
    assert places(connection, queue, first.group.group_id) == [(1, 0, False), (2, 0, True)]


def test_a_refused_commit_takes_the_producer_back(connection, queue):
    """As its rollback does: what was refused with it has no place (GRP-30)."""
    with (
        connection.session(transacted=True) as session,
        connection.session(transacted=True) as other,
    ):
        producer = session.producer(queue)
        first = producer.send("1", group=GroupPlace(), logical_order=True)
        session.commit()
        taken = GroupPlace(group_id=first.group.group_id, group_sequence=3)
        other.producer(queue).send("3", group=taken)
        other.commit()
        for number in (2, 3):
            producer.send(str(number), group=GroupPlace(), logical_order=True)
        with pytest.raises(ledgermq.TransactionRolledBackError) as caught:
            session.commit()
        assert isinstance(caught.value.__cause__, ledgermq.GroupClashError)
        again = producer.send("2", group=GroupPlace(), logical_order=True)
        session.rollback()
    assert again.group.group_sequence == 2


def test_a_rollback_behind_asynchronous_commits_keeps_what_they_committed(connection, queue):
    """Commits under way count as soon as they have worked (GRP-30)."""
    with connection.session(transacted=True) as session, session.producer(queue) as producer:
        for _ in range(3):
            producer.send("x", group=GroupPlace(), logical_order=True)
            session.commit_async()
        producer.send("x", group=GroupPlace(), logical_order=True)
        session.rollback()
        fourth = producer.send("x", group=GroupPlace(last_in_group=True), logical_order=True)
        session.commit()
    assert fourth.group.group_sequence == 4


def test_a_group_in_one_unit_of_work_is_there_at_once(connection, queue):
    """E2: four messages, nothing before the commit, then all (GRP-19, GRP-23)."""
    with connection.session(transacted=True) as session:
        with session.producer(queue).group() as group:
            for number in range(1, 5):
                group.send(str(number), last=number == 4)
        session.flush()
        assert groups_of(connection, queue) == []
        session.commit()
    found = only_group(connection, queue)
    assert (found["group_id"], found["messages"]) == (group.group_id.hex(), 4)
    assert found["complete"]
    numbers = [place[0] for place in places(connection, queue, group.group_id)]
    assert numbers == [1, 2, 3, 4]
