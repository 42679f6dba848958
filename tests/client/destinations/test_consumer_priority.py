"""Consumers with priorities: some are given messages before others (PROTOCOL.md §5)."""

import asyncio

import pytest

import ledgermq

LOWEST, HIGHEST = -(2**31), 2**31 - 1


def bodies(consumer, count):
    """So many messages that a consumer is given."""
    return [consumer.receive(10).body for _ in range(count)]


def priorities(connection, session):
    """What the status of a session tells of its consumers."""
    consumers = connection.admin.session(session.handle).consumers
    return [one.consumer_priority for one in consumers]


def test_a_consumer_of_a_higher_priority_is_served_until_it_has_what_it_asked_for(
    connection, queue
):
    """Then the others are."""
    with connection.session(ack="CLIENT") as one, connection.session(ack="CLIENT") as other:
        spare = one.consumer(queue, prefetch=9)
        first = other.consumer(queue, prefetch=2, consumer_priority=10)
        for consumer in (spare, first):
            assert consumer.receive(0) is None, "now it asks"
        with connection.session() as sender:
            sender.producer(queue).send_many("abcd")
        assert bodies(first, 2) == ["a", "b"]
        assert bodies(spare, 2) == ["c", "d"]


def test_the_status_of_a_session_tells_the_priorities(in_memory):
    """The lowest and the highest there are, and that of a consumer that says nothing."""
    with (
        in_memory.session() as session,
        session.consumer("queue:q", consumer_priority=LOWEST),
        session.consumer("queue:q", consumer_priority=HIGHEST),
        session.consumer("queue:q"),
    ):
        assert priorities(in_memory, session) == [LOWEST, HIGHEST, 0]


def test_aio_consumers_have_priorities(in_memory):
    """The asyncio library takes the same option."""

    async def run():
        connection = ledgermq.aio.Connection(in_memory)
        async with (
            connection.session() as session,
            session.consumer("queue:q", consumer_priority=-3),
        ):
            return priorities(in_memory, session)

    assert asyncio.run(run()) == [-3]


@pytest.mark.parametrize("wrong", [LOWEST - 1, HIGHEST + 1])
def test_a_priority_that_no_record_holds_is_wrong_use(in_memory, wrong):
    """It is refused before anything is written."""
    with (
        in_memory.session() as session,
        pytest.raises(ledgermq.IllegalStateError, match="consumer_priority is"),
    ):
        session.consumer("queue:q", consumer_priority=wrong)


@pytest.mark.parametrize("wrong", [1.0, "1", True, None])
def test_a_priority_of_another_type_is_wrong_use(in_memory, wrong):
    """The text says which type it takes."""
    with (
        in_memory.session() as session,
        pytest.raises(ledgermq.ArgumentTypeError, match="consumer_priority"),
    ):
        session.consumer("queue:q", consumer_priority=wrong)
