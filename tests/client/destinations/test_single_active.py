"""Single active consumers: one works while the others stand by, and one of these goes on."""

import ledgermq
from ledgermq.testing import MemoryBroker


def drained(consumer):
    """All bodies that come to a consumer now."""
    return [message.body for message in consumer.until_idle(1.0)]


def prepared(connection, queue, bodies):
    """A queue that delivers to one consumer at a time, with messages."""
    connection.admin.create_queue(queue.removeprefix("queue:"), single_active_consumer=True)
    with connection.session() as session:
        session.producer(queue).send_many(bodies)


def test_one_consumer_gets_everything_until_it_is_closed(connection, queue):
    """What the active one has not settled as it is closed comes first to the next one."""
    prepared(connection, queue, "abcd")
    with (
        connection.session(ack=ledgermq.AckMode.CLIENT) as one,
        connection.session(ack=ledgermq.AckMode.CLIENT) as other,
    ):
        active = one.consumer(queue)
        assert [active.receive(10).body for _ in range(2)] == ["a", "b"]
        standing_by = other.consumer(queue)
        assert standing_by.receive(1.0) is None
        active.close()
        assert standing_by.receive(1.0) is None, "a and b are in the application's hands"
        one.acknowledge()
        assert drained(standing_by) == ["c", "d"]


def test_a_client_that_is_lost_is_followed_by_one_that_stood_by():
    """Its session ends, and what it held comes back first, to the next one (H20)."""
    broker = MemoryBroker()
    prepared(broker.connect(), "queue:q", "ab")
    lost = broker.connect()
    assert lost.session(ack="CLIENT").consumer("queue:q").receive(10).body == "a"
    standing_by = broker.connect().session(ack="CLIENT").consumer("queue:q")
    assert standing_by.receive(0) is None
    broker.crash(lost)
    broker.advance(60)
    assert [standing_by.receive(10).body for _ in range(2)] == ["a", "b"]


def test_it_is_told_who_is_active_and_who_stands_by(in_memory):
    """`queue why` names the active consumer, the status of a session says why it gets nothing."""
    prepared(in_memory, "queue:q", "a")
    with in_memory.session(ack="CLIENT") as one, in_memory.session(ack="CLIENT") as other:
        assert one.consumer("queue:q").receive(10).body == "a"
        other.consumer("queue:q").receive(0)
        (found,) = in_memory.admin.session(other.handle).consumers
        assert found.paused == ("stand-by",)
        causes = {each.cause: each for each in in_memory.admin.queue_obstacles("q").obstacles}
        assert causes["stand-by"].session == other.handle
        assert causes["stand-by"].detail == f"consumer 1 of session {one.handle} is active"


def test_the_setting_is_altered_and_told(in_memory):
    """It is off unless it is asked for; turned off, messages are shared out (decision 0044)."""
    in_memory.admin.create_queue("q")
    assert in_memory.admin.queue_status("q").settings["single_active_consumer"] is False
    in_memory.admin.alter_queue("q", single_active_consumer=True)
    assert in_memory.admin.queue_status("q").settings["single_active_consumer"] is True
    in_memory.admin.create_topic("t", single_active_consumer=True)
    in_memory.admin.alter_topic("t", single_active_consumer=False)
    topic = in_memory.admin.topic("t")
    assert topic.settings["single_active_consumer"] is False
