"""Times to live and delivery delays, by the log's clock (SES-66, SES-67)."""

import time
from datetime import timedelta

import pytest

import ledgermq


def test_a_message_expires_after_its_time_to_live(connection, queue, pass_time, eventually):
    """It is gone and counted, though nobody asked for it (SES-66)."""
    with connection.session() as session:
        session.producer(queue).send("short", time_to_live=1)
        session.producer(queue).send("long", time_to_live=3600)
        name = queue.partition(":")[2]
        pass_time(1.2)
        eventually(lambda: connection.admin.queue_status(name).current == 1)
        message = session.consumer(queue).receive(20)
    assert message.body == "long"
    assert message.expires_at - message.timestamp <= timedelta(seconds=3600.05)


def test_a_message_without_a_time_to_live_never_expires(connection, queue):
    """0 is the default and means never (SES-66)."""
    with connection.session() as session:
        session.producer(queue).send("x", time_to_live=0)
        message = session.consumer(queue).receive(20)
    assert (message.expires_at, message.deliver_at) == (None, None)


def test_a_delayed_message_waits_in_no_delivery_and_no_browse(connection, queue, pass_time):
    """Then it comes at the place of its number (SES-67)."""
    with connection.session() as session:
        producer = session.producer(queue)
        producer.send("later", delivery_delay=1.5)
        producer.send("now")
        assert [one.body for one in session.browser(queue)] == ["now"]
        consumer = session.consumer(queue)
        assert consumer.receive(20).body == "now"
        assert consumer.receive(0) is None
        pass_time(1.6)
        message = consumer.receive(20)
    assert (message.body, message.sequence) == ("later", 0)
    assert message.deliver_at - message.timestamp >= timedelta(seconds=1.4)


def test_in_a_unit_of_work_the_times_count_from_the_send(connection, queue):
    """Not from the commit, which may be much later (SES-66)."""
    with connection.session(transacted=True) as session:
        producer = session.producer(queue)
        producer.send("over", time_to_live=0.3)
        producer.send("due", delivery_delay=0.3)
        time.sleep(0.4)
        session.commit()
        consumer = session.consumer(queue)
        assert consumer.receive(20).body == "due"
        assert consumer.receive(0.2) is None


def test_a_producer_has_settings_of_its_own(connection, queue):
    """They hold for messages that do not say otherwise."""
    with connection.session() as session:
        producer = session.producer(queue, priority=7, persistent=False, time_to_live=60)
        producer.send("own")
        producer.send("told", priority=1, persistent=True, time_to_live=0)
        producer.delivery_delay = 3600
        producer.send_async("unborn")
        producer.flush()
        own, told = (session.consumer(queue, prefetch=1).receive(20) for _ in range(2))
    assert (own.priority, own.persistent, own.expires_at is None) == (7, False, False)
    assert (told.priority, told.persistent, told.expires_at) == (1, True, None)


@pytest.mark.parametrize("field", ["time_to_live", "delivery_delay"])
@pytest.mark.parametrize("seconds", [-1, "5", True, 1e12])
def test_times_out_of_range_are_refused(connection, queue, field, seconds):
    """Nothing is sent."""
    with connection.session() as session:
        with pytest.raises((ledgermq.MessageFormatError, ledgermq.ArgumentTypeError), match=field):
            session.producer(queue).send("x", **{field: seconds})
        session.producer(queue).send("y")
        assert [one.body for one in session.browser(queue)] == ["y"]
