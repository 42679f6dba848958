"""Tests of putting groups and segments from coroutines: as the threaded client puts them."""

import pytest

import ledgermq
from ledgermq import GroupPlace, aio
from support.messages.group_members import members_of, only_group

GROUP = bytes(range(24))


def test_a_group_is_sent_by_a_coroutine(run, connection, queue):
    """Messages with and without segments, numbered and ended (GRP-19)."""

    async def work(opened):
        async with opened.session() as session:
            producer = session.producer(queue)
            async with producer.group(GROUP) as group:
                assert isinstance(group, aio.GroupSender)
                await group.send("1", properties={"n": 1})
                receipts = await group.send_segmented("22222", max_segment=2)
                last = await group.send("3", last=True, segmentation_allowed=True)
                assert (group.group_id, group.group_sequence) == (GROUP, 3)
            return receipts, last

    receipts, last = run(work)
    assert [one.group.offset for one in receipts] == [0, 2, 4]
    assert last.sequence == 4
    numbers = [one["group_sequence"] for one in members_of(connection, queue, GROUP)]
    assert numbers == [1, 2, 2, 2, 3]
    assert only_group(connection, queue)["complete"]


def test_logical_order_is_kept_and_left_with_warnings(run, queue):
    """Refused outside, warned of without it, and at the close (GRP-41, GRP-42)."""

    async def work(opened):
        async with opened.session() as session:
            producer = session.producer(queue)
            await producer.send("1", group=GroupPlace(), logical_order=True)
            with pytest.raises(ledgermq.IncompleteGroupError):
                await producer.send("x", logical_order=True)
            with pytest.warns(ledgermq.IncompleteGroupWarning) as caught:
                await producer.send("x")
            segment = GroupPlace(segment=True)
            second = await producer.send("2", group=segment, logical_order=True)
            with pytest.raises(ledgermq.IncompleteMessageError):
                await producer.send("x", logical_order=True)
            with pytest.warns(ledgermq.IncompleteMessageWarning):
                producer.close()
            with pytest.warns(ledgermq.IncompleteGroupWarning):
                async with session.producer(queue).group() as group:
                    await group.send("1")
            return caught, second

    caught, second = run(work)
    assert caught[0].filename == __file__
    assert second.group.group_sequence == 2


def test_a_refusal_leaves_the_producer_where_it_was(run, connection, queue):
    """The number is used again; nothing follows what was refused."""
    connection.admin.create_queue(queue, message_bytes_max=100)

    async def work(opened):
        async with opened.session() as session:
            producer = session.producer(queue)
            first = await producer.send("1", group=GroupPlace(), logical_order=True)
            with pytest.raises(ledgermq.MessageTooLargeError):
                await producer.send("x" * 200, group=GroupPlace(), logical_order=True)
            place = GroupPlace(last_in_group=True)
            last = await producer.send(
                "x" * 200, group=place, logical_order=True, segmentation_allowed=True
            )
            with pytest.raises(ledgermq.GroupNotAllowedError):
                await session.producer("topic:t").send("x", group=place)
            return first, last

    first, last = run(work)
    assert first.group.group_id == last.group.group_id
    assert (last.group.group_sequence, last.group.offset) == (2, 0)
    assert only_group(connection, queue)["complete"]


def test_a_large_message_is_sent_in_several_operations(run, connection, queue):
    """One after the other, as the threaded client does."""

    async def work(opened):
        async with opened.session() as session:
            producer = session.producer(None)
            return await producer.send_segmented(
                b"x" * 10_000_000, max_segment=1_000_000, destination=queue, type="t"
            )

    receipts = run(work)
    assert len(receipts) == 10
    assert len({one.position for one in receipts}) == 3
    assert only_group(connection, queue)["complete"]


def test_a_rollback_takes_a_coroutines_group_back(run, connection, queue):
    """To the last commit, in one block over several units of work (GRP-24, GRP-30)."""

    async def work(opened):
        async with opened.session(transacted=True) as session:
            producer = session.producer(queue)
            async with producer.group() as group:
                await group.send("1")
                await session.commit()
                await group.send("2")
                await session.rollback()
                assert group.group_sequence == 1
                await group.send("2", last=True)
                await session.commit()
            other = producer.group(GROUP, after=3)
            await other.send("4", last=True)
            await session.commit()
            await session.producer(queue).send("2", group=GroupPlace(group_id=GROUP))
            await session.commit()
            return group.group_id

    found = members_of(connection, queue, run(work))
    assert [one["group_sequence"] for one in found] == [1, 2]
    assert [one["group_sequence"] for one in members_of(connection, queue, GROUP)] == [1, 4]


def test_a_coroutine_is_warned_of_units_of_work(run, connection, queue):
    """A group put partly outside of them, by a commit and by a send (GRP-43)."""

    async def work(opened):
        async with opened.session() as session, opened.session(transacted=True) as transacted:
            await session.producer(queue).send("1", group=GroupPlace(group_id=GROUP))
            second = GroupPlace(group_id=GROUP, group_sequence=2)
            await transacted.producer(queue).send("2", group=second)
            with pytest.warns(ledgermq.InconsistentUnitOfWorkWarning):
                await transacted.commit()
            third = GroupPlace(group_id=GROUP, group_sequence=3)
            with pytest.warns(ledgermq.InconsistentUnitOfWorkWarning):
                await session.producer(queue).send("3", group=third)

    run(work)
    assert len(members_of(connection, queue, GROUP)) == 3
