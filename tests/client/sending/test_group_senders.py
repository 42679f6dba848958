"""Tests of group senders, and of what producers warn of when a group is left incomplete."""

import pytest

import ledgermq
from ledgermq import GroupPlace
from support.messages.group_members import members_of, only_group

GROUP = bytes(range(24))

pytestmark = pytest.mark.usefixtures("warnings_are_faults")


def test_a_group_sender_numbers_and_ends_its_group(connection, queue):
    """Id and number of the last message are told; behind the last message it is refused."""
    with connection.session() as session, session.producer(queue) as producer:
        with producer.group(GROUP) as group:
            assert (group.group_id, group.group_sequence) == (GROUP, 0)
            receipt = group.send("1", properties={"n": 1}, correlation_id="c", priority=7)
            assert group.group_sequence == 1
            group.send("2", last=True, priority=7)
            with pytest.raises(ledgermq.IllegalStateError, match="had its last message, 2"):
                group.send("3")
        message = session.consumer(queue).receive(20)
        producer.send("no group")
    assert (message.body, message.properties["n"], message.correlation_id) == ("1", 1, "c")
    assert receipt.group.group_id == GROUP


def test_a_group_left_incomplete_warns(connection, queue):
    """Not where nothing was sent, and not where an exception says enough (GRP-41)."""
    with connection.session() as session, session.producer(queue) as producer:
        with pytest.warns(ledgermq.IncompleteGroupWarning) as caught, producer.group() as group:
            group.send("1")
        with producer.group():
            pass
        with pytest.raises(ledgermq.MessageFormatError), producer.group() as group:
            group.send([group.send("1")])
        with producer.group() as group:
            group.send("1", last=True)
    assert caught[0].filename == __file__


def test_a_group_sender_goes_on_beside_other_puts_of_its_producer(connection, queue):
    """They warn, and the group stays whole (GRP-41)."""
    with connection.session() as session, session.producer(queue) as producer:
        with producer.group() as group:
            group.send("1")
            with pytest.warns(ledgermq.IncompleteGroupWarning):
                producer.send("x")
            with pytest.warns(ledgermq.IncompleteGroupWarning):
                producer.send("x", group=GroupPlace(group_id=GROUP))
            group.send("2")
            group.send("3", last=True)
        producer.send("behind")
    assert [one["group_sequence"] for one in members_of(connection, queue, group.group_id)] == [
        1,
        2,
        3,
    ]


def test_a_group_sender_goes_back_with_a_rollback(connection, queue):
    """To the number that the last commit left, in one block over several units (GRP-24)."""
    with connection.session(transacted=True) as session, session.producer(queue) as producer:
        with producer.group() as group:
            group.send("1")
            session.commit()
            group.send("2")
            group.send("3", last=True)
            assert group.group_sequence == 3
            session.rollback()
            assert group.group_sequence == 1
            group.send("2", last=True)
            session.commit()
        producer.send("behind")
        session.commit()
    assert only_group(connection, queue)["complete"]


@pytest.mark.parametrize("arguments", [(b"x", 0), (GROUP, -1), (GROUP, 1_000_000_000), (None, 3)])
def test_a_group_sender_is_refused_what_no_group_has(connection, queue, arguments):
    """The id has 24 bytes, and a group is gone on with by its id (GRP-39, GRP-40)."""
    with connection.session() as session, pytest.raises(ledgermq.InvalidGroupError):
        session.producer(queue).group(*arguments)


def test_a_put_without_logical_order_inside_an_open_group_warns(connection, queue):
    """It is sent, wherever it belongs; the group goes on where it was (GRP-41)."""
    with connection.session() as session:
        producer = session.producer(queue)
        first = producer.send("1", group=GroupPlace(), logical_order=True)
        with pytest.warns(ledgermq.IncompleteGroupWarning, match="only up to 1") as caught:
            producer.send("outside")
        with pytest.warns(ledgermq.IncompleteGroupWarning):
            producer.send_async("outside too").result(20)
        assert caught[0].filename == __file__
        assert caught[0].message.code == "incomplete-group"
        last = producer.send("2", group=GroupPlace(last_in_group=True), logical_order=True)
        producer.send("behind")
    assert last.group.group_id == first.group.group_id
    assert connection.admin.queue_status(queue).message_count == 5


def test_a_put_without_logical_order_inside_an_open_message_warns(connection, queue):
    """Of the message, before its group (GRP-42); the close of the producer, too."""
    with connection.session() as session:
        producer = session.producer(queue)
        producer.send("1", group=GroupPlace(segment=True), logical_order=True)
        with pytest.warns(ledgermq.IncompleteMessageWarning, match="up to byte 1"):
            producer.send("outside")
        with pytest.warns(ledgermq.IncompleteMessageWarning) as caught:
            producer.close()
        producer.close()
    assert caught[0].message.code == "incomplete-message"


def test_closing_a_producer_with_its_group_incomplete_warns(connection, queue):
    """If its last message was put in logical order (GRP-41)."""
    with connection.session() as session:
        with session.producer(queue) as producer:
            producer.send("1", group=GroupPlace(group_id=GROUP))
        producer = session.producer(queue)
        producer.send("1", group=GroupPlace(), logical_order=True)
        with pytest.warns(ledgermq.IncompleteGroupWarning, match="was closed"):
            producer.close()
        with session.producer(queue) as producer:
            producer.send("1", group=GroupPlace(last_in_group=True), logical_order=True)
