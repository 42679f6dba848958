"""What is set on producers and consumers: checked at once, and what cannot be set is refused."""

from __future__ import annotations

import pytest

import ledgermq
from ledgermq import aio

QUEUE = "queue:q"
PRODUCER_ATTRIBUTES = {
    "priority": (10, -1, "4", None, True),
    "persistent": (1, "PERSISTENT", None),
    "time_to_live": (-1, "5", None, float("nan"), 1e12),
    "delivery_delay": (-1, "5", None, True),
}


@pytest.fixture
def session(memory):
    """A session of a queue manager in memory."""
    with memory.connect() as connection, connection.session() as opened:
        yield opened


@pytest.mark.parametrize("name", PRODUCER_ATTRIBUTES)
def test_a_value_that_no_message_can_have_is_refused_where_it_is_set(session, name):
    """Decision 29: it was taken, and each later send was refused; the producer stays as it was."""
    producer = session.producer(QUEUE)
    before = getattr(producer, name)
    for bad in PRODUCER_ATTRIBUTES[name]:
        with pytest.raises(ledgermq.LedgerMQError, match=rf"^{name} is "):
            setattr(producer, name, bad)
        with pytest.raises(ledgermq.LedgerMQError, match=rf"^{name} is "):
            session.producer(QUEUE, **{name: bad})
        assert getattr(producer, name) == before
    assert producer.send("x").sequence == 0


@pytest.mark.parametrize("name", ["prority", "timeToLive", "ttl"])
def test_a_misspelled_setting_of_a_producer_is_an_error(session, name):
    """Messages went out without the time to live that their sender had set."""
    with pytest.raises(AttributeError, match=name):
        setattr(session.producer(QUEUE), name, 5)


@pytest.mark.parametrize("name", ["selector", "prefetch", "destination", "subscription"])
def test_what_a_consumer_is_made_with_cannot_be_set(session, name):
    """A selector that was set later selected nothing, and read as if it did."""
    consumer = session.consumer(QUEUE)
    before = getattr(consumer, name)
    with pytest.raises(AttributeError, match=f"{name} of a Consumer cannot be set"):
        setattr(consumer, name, before)
    with pytest.raises(AttributeError, match="listener"):
        consumer.listener = print
    assert getattr(consumer, name) == before


def test_where_a_producer_sends_cannot_be_set(session):
    """It was taken, while its open groups and limits stayed those of the former destination."""
    producer = session.producer(QUEUE)
    with pytest.raises(AttributeError, match="destination of a Producer cannot be set"):
        producer.destination = "queue:other"
    assert producer.destination == QUEUE


@pytest.mark.parametrize("made", [aio.Producer, aio.Consumer, ledgermq.Producer, ledgermq.Consumer])
def test_those_of_threads_and_of_coroutines_take_no_other_attribute(made):
    """Neither has a place for one."""
    assert not hasattr(object.__new__(made), "__dict__")
