"""Redelivery as programs see it: delays, limits, error destinations (INF-09 to INF-17)."""

import asyncio

import pytest

import ledgermq
import ledgermq.aio
from ledgermq.testing import MemoryBroker


def test_what_is_rolled_back_comes_again_after_the_delay(connection, queue, pass_time):
    """Meanwhile it is pending, told as delayed, and in no browse (INF-10, INF-11)."""
    with connection.session(transacted=True, redelivery_delay_ms=1_000) as session:
        session.producer(queue).send("again")
        session.commit()
        consumer = session.consumer(queue)
        assert consumer.receive(20).body == "again"
        session.rollback()
        status = connection.admin.queue_status(queue.removeprefix("queue:"))
        assert (status.current, status.pending, status.delayed) == (0, 1, 1)
        assert list(session.browser(queue)) == []
        assert consumer.receive(0) is None
        pass_time(1.2)
        message = consumer.receive(20)
        assert (message.body, message.sequence, message.backout_count) == ("again", 0, 1)
        session.commit()


def test_too_often_redelivered_goes_to_the_error_destination_and_tells_its_origin(
    connection, queue, named
):
    """A limit of 1 allows two deliveries; the message says where it was (INF-12, INF-16)."""
    connection.admin.create_queue(f"{named}.dead")
    connection.admin.create_queue(named, redelivery_limit=1, error_destination=f"{queue}.dead")
    with connection.session(ack="CLIENT") as session:
        first = session.producer(queue).send("poison", properties={"color": "green"})
        consumer = session.consumer(queue)
        for backouts in range(2):
            got = consumer.receive(20)
            assert (got.backout_count, got.origin) == (backouts, None)
            session.recover()
        message = session.consumer(f"{queue}.dead").receive(20)
        assert (message.body, message.properties["color"]) == ("poison", "green")
        assert (message.message_id, message.backout_count) == (first.message_id, 0)
        assert message.origin == ledgermq.Origin(
            destination=queue,
            sequence=0,
            reason="redelivery-limit",
            backout_count=2,
            enqueued_at=got.timestamp,
        )
    status = connection.admin.queue_status(named)
    assert (status.moved, status.dropped, status.message_count) == (1, 0, 0)


def test_without_an_error_destination_the_senders_limit_drops(connection, queue, named):
    """A producer's limit holds where the queue has none (INF-12, INF-16)."""
    with connection.session(ack="CLIENT") as session:
        session.producer(queue, redelivery_limit=0).send("once")
        session.producer(queue).send("for ever")
        consumer = session.consumer(queue)
        assert [consumer.receive(20).body for _ in range(2)] == ["once", "for ever"]
        session.recover()
        assert consumer.receive(20).body == "for ever"
        status = connection.admin.queue_status(named)
        assert (status.dropped, status.message_count) == (1, 1)


def test_the_consumers_delay_wins_over_the_sessions_and_the_queues_over_both(
    connection, queue, named, pass_time
):
    """None is as the session has it, 0 is no delay (INF-09, INF-15)."""
    with connection.session(ack="CLIENT", redelivery_delay_ms=3_600_000) as session:
        session.producer(queue).send("x")
        with session.consumer(queue, redelivery_delay_ms=0) as consumer:
            consumer.receive(20)
            session.recover()
            assert consumer.receive(20).backout_count == 1
            connection.admin.alter_queue(named, redelivery_delay_override_ms=500)
            session.recover()
        consumer = session.consumer(queue)
        assert consumer.receive(0) is None
        assert connection.admin.queue_status(named).delayed == 1
        pass_time(0.7)
        assert consumer.receive(20).backout_count == 2
        session.acknowledge()


def test_a_redelivery_string_configures_a_queue(connection, queue, named):
    """Its own name stands for `$` (DB-21)."""
    connection.admin.create_queue(f"dead.{named}")
    connection.admin.create_queue(named, redelivery="1:200; 3:move(same:dead.$)")
    told = connection.admin.queue_status(named).settings
    assert told["redelivery_steps"] == [{"retries": 1, "delay_ms": 200}]
    assert (told["redelivery_limit"], told["error_destination"]) == (3, f"queue:dead.{named}")
    connection.admin.alter_queue(named, redelivery="")
    assert connection.admin.queue_status(named).settings["error_destination"] == ""


def test_what_a_topics_subscriber_fails_goes_from_its_subscription(connection, named):
    """The other subscriber gets its own copy (INF-17)."""
    topic = f"topic:{named}"
    connection.admin.create_queue(f"{named}.dead")
    connection.admin.create_topic(
        named, redelivery_limit=0, error_destination=f"queue:{named}.dead"
    )
    with connection.session(ack="CLIENT") as session, connection.session() as other:
        failing, working = session.consumer(topic), other.consumer(topic)
        session.producer(topic).send("news")
        failing.receive(20)
        session.recover()
        message = session.consumer(f"queue:{named}.dead").receive(20)
        assert (message.origin.destination, message.origin.reason) == (topic, "redelivery-limit")
        assert working.receive(20).body == "news"
    (told,) = [one for one in connection.admin.topics() if one.name == named]
    assert (told.moved, told.dropped, told.message_count) == (0, 0, 0)


def test_the_connection_has_a_delay_and_a_limit_for_all_that_does_not_say():
    """Sessions and producers of a connection take what it was opened with (INF-09, INF-16)."""
    broker = MemoryBroker()
    connection = broker.connect(redelivery_delay_ms=5_000, redelivery_limit=0)
    with connection, connection.session(ack="CLIENT") as session:
        session.producer("queue:q").send("once")
        session.producer("queue:q", redelivery_limit=1).send("twice")
        consumer = session.consumer("queue:q")
        assert [consumer.receive(5).body for _ in range(2)] == ["once", "twice"]
        session.recover()
        assert connection.admin.queue_status("q").delayed == 2
        broker.advance(5)
        assert consumer.receive(5).body == "twice"
        status = connection.admin.queue_status("q")
        assert (status.delayed, status.dropped) == (0, 1)


@pytest.mark.parametrize("wrong", [-2, 1.5, "3", True, 2**31])
def test_limits_and_delays_out_of_range_are_wrong_use(wrong):
    """Each says which value it takes, before anything is written."""
    broker = MemoryBroker()
    error, of_a_setting = ledgermq.IllegalStateError, ledgermq.AddressError
    if type(wrong) is not int:
        error = of_a_setting = ledgermq.ArgumentTypeError
    with pytest.raises(of_a_setting, match="redelivery_limit"):
        broker.connect(redelivery_limit=wrong)
    with broker.connect() as connection, connection.session() as session:
        with pytest.raises(error, match="redelivery_limit"):
            session.producer("queue:q", redelivery_limit=wrong)
        wrong_delay = 2**62 if wrong == 2**31 else wrong
        with pytest.raises(error, match="redelivery_delay_ms"):
            session.consumer("queue:q", redelivery_delay_ms=wrong_delay)
        with pytest.raises(error, match="redelivery_delay_ms"):
            connection.session(redelivery_delay_ms=wrong_delay)
        with pytest.raises(of_a_setting, match="redelivery_delay_ms"):
            broker.connect(redelivery_delay_ms=wrong_delay)


def test_aio_sessions_consumers_and_producers_have_delays_and_limits():
    """The asyncio library gives the same (INF-09, INF-16)."""
    broker = MemoryBroker()

    async def run() -> None:
        connection = ledgermq.aio.Connection(broker.connect())
        async with connection, connection.session(ack="CLIENT", redelivery_delay_ms=0) as session:
            await session.producer("queue:q", redelivery_limit=1).send("x")
            async with session.consumer("queue:q", redelivery_delay_ms=2_000) as consumer:
                assert (await consumer.receive(5)).backout_count == 0
                await session.recover()
                assert (await connection.admin.queue_status("q")).delayed == 1
                broker.advance(2)
                assert (await consumer.receive(5)).backout_count == 1
                await session.recover()
                broker.advance(2)
                assert (await connection.admin.queue_status("q")).dropped == 1

    asyncio.run(run())
