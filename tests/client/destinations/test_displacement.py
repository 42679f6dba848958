"""Queues and topics that keep the newest messages, as programs and operators see them (§23)."""

import pytest

import ledgermq
from ledgermq.testing import MemoryBroker


@pytest.fixture
def memory():
    """A connection to a queue manager in memory, in which no send waits."""
    with MemoryBroker().connect(send_timeout_seconds=0) as connection:
        yield connection


def bodies(consumer):
    """All bodies that come to a consumer now."""
    return [message.body for message in consumer.until_idle(1.0)]


def test_a_queue_keeps_the_newest_and_counts_what_it_let_go(connection, queue):
    """Also across what is in flight, and the setting can be changed while messages are there."""
    name = queue.removeprefix("queue:")
    connection.admin.create_queue(name, available_max=3)
    with connection.session(ack="CLIENT") as session:
        session.producer(queue).send_many("abcdef")
        status = connection.admin.queue_status(name)
        assert (status.current, status.displaced, status.min_sequence) == (3, 3, 3)
        assert status.settings["available_max"] == 3
        taken = session.consumer(queue, prefetch=1).receive(10)
        assert taken.body == "d"
        connection.admin.alter_queue(name, available_max=1)
        session.recover()
        assert connection.admin.queue_status(name).displaced == 5
    with connection.session() as session:
        assert bodies(session.consumer(queue)) == ["f"]
    status = connection.admin.queue_status(name)
    assert (status.sent_and_committed, status.displaced, status.next_sequence) == (1, 5, 6)


def test_each_subscription_of_a_topic_keeps_the_newest(memory):
    """One that is read in time misses nothing; one that is not has the last messages."""
    memory.admin.create_topic("prices", available_max=2)
    with memory.session() as session:
        idle = session.consumer("topic:prices", prefetch=1)
        busy = session.consumer("topic:prices", selector="TRUE")
        producer = session.producer("topic:prices")
        for price in "123456":
            producer.send(price)
            assert busy.receive(10).body == price
        assert bodies(idle) == ["5", "6"]
        memory.admin.alter_topic("prices", available_max=0)
        producer.send_many("7890")
        assert bodies(busy) == ["7", "8", "9", "0"]


def test_of_each_value_the_last_message_is_kept(connection, queue):
    """As a last-value queue has it; what has no value is not concerned."""
    name = queue.removeprefix("queue:")
    connection.admin.create_queue(name, last_value_key="share")
    with connection.session() as session:
        producer = session.producer(queue)
        for share, price in (("A", 1), ("B", 7), ("A", 2), ("", 0), ("A", 3)):
            producer.send(str(price), properties={"share": share} if share else None)
        assert bodies(session.consumer(queue)) == ["7", "0", "3"]
    assert connection.admin.queue_status(name).displaced == 2
    with pytest.raises(ledgermq.LedgerMQError, match="last_value_key"):
        connection.admin.alter_queue(name, last_value_key="a-b")


def test_a_sender_never_waits_for_a_queue_that_keeps_the_newest(memory):
    """Where a quota is set besides and reached by what is in flight, it does."""
    memory.admin.create_queue("q", available_max=1, messages_max=2)
    with memory.session() as session:
        producer = session.producer("queue:q")
        for number in range(10):
            producer.send(str(number))
    with memory.session(ack="CLIENT") as session:
        consumer = session.consumer("queue:q", prefetch=5)
        assert consumer.receive(10).body == "9"
        producer = session.producer("queue:q")
        producer.send("in flight as well")
        assert consumer.receive(10).body == "in flight as well"
        with pytest.raises(ledgermq.QuotaExceededError):
            producer.send("too much")


@pytest.mark.parametrize("wrong", [-1, 2**53 + 1])
def test_a_number_out_of_range_is_refused(memory, wrong):
    """And nothing is made."""
    with pytest.raises(ledgermq.LedgerMQError, match="available_max") as caught:
        memory.admin.create_queue("q", available_max=wrong)
    assert caught.value.code == "setting-invalid"
    assert memory.admin.list_queues() == []
