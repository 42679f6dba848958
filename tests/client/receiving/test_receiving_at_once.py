"""receive(timeout=0): the queue manager is asked once, what is not there yet is not waited for."""

import pytest

import ledgermq
from ledgermq.protocol.operations import Alive
from ledgermq.testing import MemoryBroker
from support.brokers.hand_route import HandRoute


@pytest.mark.parametrize("ack", ["AUTO", "CLIENT", "DUPS_OK", "INDIVIDUAL", "TRANSACTED"])
@pytest.mark.parametrize("prefetch", [0, 1, 2, 200])
def test_a_fresh_consumer_gets_at_once_what_is_there(connection, queue, ack, prefetch):
    """It said None though messages were there; None comes once all of them were received."""
    with connection.session() as other:
        other.producer(queue).send_many(["a", "b", "c"])
    with connection.session(ack=ack) as session:
        consumer = session.consumer(queue, prefetch=prefetch)
        bodies = [message.body for message in iter(lambda: consumer.receive(0), None)]
        assert bodies == ["a", "b", "c"]
        assert consumer.receive(0) is None
        if ack == "TRANSACTED":
            session.producer(queue).send("d")
            assert consumer.receive(0) is None
            session.commit()
        elif ack in ("CLIENT", "INDIVIDUAL"):
            session.acknowledge()
            session.producer(queue).send("d")
        else:
            session.producer(queue).send("d")
        assert consumer.receive(0).body == "d"


def test_many_messages_and_groups_come_at_once_too(connection, queue):
    """The other ways to receive with a time-out of nothing (GRP-20)."""
    with connection.session() as session:
        with session.producer(queue).group() as group:
            for number in range(5):
                group.send(str(number), last=number == 4)
        for prefetch in (0, 2, 200):
            options = {"order": "LOGICAL", "all_messages_available": True}
            with (
                connection.session(transacted=True) as other,
                other.consumer(queue, prefetch=prefetch, **options) as consumer,
            ):
                assert [one.body for one in consumer.receive_group(0)] == list("01234")
                assert consumer.receive_group(0) == []
                other.rollback()
        with session.consumer(queue) as consumer:
            assert len(consumer.receive_many(10, 0)) == 5
            assert consumer.receive_many(10, 0) == []
        session.producer(queue).send("idle")
        with session.consumer(queue) as consumer:
            assert [one.body for one in consumer.until_idle(0)] == ["idle"]


def test_a_coroutine_gets_at_once_what_is_there(run, queue):
    """The client for asyncio asks alike, messages and groups."""

    async def work(connection):
        async with connection.session() as session:
            await session.producer(queue).send_many(["a", "b"])
            for prefetch in (0, 1, 200):
                async with connection.session(transacted=True) as other:
                    consumer = await other.consumer(queue, prefetch=prefetch)
                    bodies = [(await consumer.receive(0)).body for _ in range(2)]
                    last = await consumer.receive(0)
                    await other.rollback()
                    assert (bodies, last) == (["a", "b"], None)
            async with session.consumer(queue, prefetch=0) as consumer:
                assert [one.body for one in await consumer.receive_group(0)] == ["a"]

    run(work)


def test_asking_again_and_again_costs_no_operations():
    """What is put later comes by the credit that stands: a poll without news writes nothing."""
    broker = MemoryBroker()
    with broker.connect() as connection, connection.session() as session:
        consumer = session.consumer("queue:q")
        assert consumer.receive(0) is None
        position = broker._state.position
        assert [consumer.receive(0) for _ in range(50)] == [None] * 50
        assert broker._state.position == position


def test_a_queue_manager_that_is_silent_is_not_an_empty_queue():
    """Nobody knows whether there is a message: that is an error, not None."""
    route = HandRoute()
    with route.connected() as connection:
        session = connection.session()
        consumer = session.consumer("queue:q")
        session._engine.timeout_seconds = 0.05
        route.silent.add(Alive)
        with pytest.raises(ledgermq.OutcomeUnknownError):
            consumer.receive(0)
