"""The broker in memory: what it offers to tests beyond what every queue manager does."""

from datetime import UTC, datetime, timedelta

import pytest

import ledgermq
from ledgermq.testing import MemoryBroker


def test_the_clock_stands_until_it_is_moved():
    """Times of messages come from it."""
    broker = MemoryBroker(now=datetime(2026, 3, 1, 12, tzinfo=UTC))
    with broker.connect() as connection, connection.session() as session:
        producer, consumer = session.producer("queue:orders"), session.consumer("queue:orders")
        producer.send("first")
        broker.advance(3600)
        producer.send("second")
        times = [consumer.receive(5).timestamp for _ in range(2)]
    assert times[1] - times[0] == timedelta(hours=1)
    assert times[0] == datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert broker.now == datetime(2026, 3, 1, 13, tzinfo=UTC)


def test_what_falls_due_is_there_when_the_clock_was_moved():
    """Without any wait of the program's, on whichever connection it comes."""
    broker = MemoryBroker()
    with broker.connect() as sending, broker.connect() as receiving:
        producer = sending.session().producer("queue:orders", delivery_delay=10)
        consumer = receiving.session().consumer("queue:orders")
        assert consumer.receive(0) is None
        for number in range(30):
            producer.send(str(number))
            broker.advance(10)
            assert consumer.receive(0).body == str(number)


def test_what_is_due_after_a_time_is_due_when_the_clock_was_moved_by_it():
    """Also where the clock began at an odd microsecond, as with `datetime.now(UTC)`."""
    broker = MemoryBroker(now=datetime(2026, 3, 1, 12, 0, 0, 123_457, tzinfo=UTC))
    assert broker.now == datetime(2026, 3, 1, 12, 0, 0, 100_000, tzinfo=UTC)
    with broker.connect() as connection, connection.session() as session:
        producer, consumer = session.producer("queue:orders"), session.consumer("queue:orders")
        producer.send("delayed", delivery_delay=60)
        producer.send("expires", time_to_live=60, delivery_delay=30)
        broker.advance(60)
        assert [one.body for one in consumer.receive_many(9, timeout=0)] == ["delayed"]


def test_time_does_not_go_back():
    """As on the log."""
    broker = MemoryBroker()
    with pytest.raises(ledgermq.IllegalStateError, match="seconds is -1, must be 0 to"):
        broker.advance(-1)
    with pytest.raises(ledgermq.IllegalStateError, match="no time zone"):
        MemoryBroker(now=datetime(2026, 1, 1))  # noqa: DTZ001 - that is what is refused
    with pytest.raises(ledgermq.ArgumentTypeError, match="now"):
        MemoryBroker(now=5)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        (5, ledgermq.ArgumentTypeError),
        (None, ledgermq.ArgumentTypeError),
        ("two words", ledgermq.AddressError),
        ("Q" * 129, ledgermq.AddressError),
    ],
)
def test_a_name_that_no_queue_manager_has_is_refused_at_once(name, error):
    """By the error that `connect` raises for such an address."""
    with pytest.raises(error, match=r"queue.manager"):
        MemoryBroker(name)


@pytest.mark.parametrize(
    ("setting", "error"),
    [
        ({"put_messages_max": 0}, ledgermq.AddressError),
        ({"put_messages_max": 10_001}, ledgermq.AddressError),
        ({"put_messages_max": "5"}, ledgermq.ArgumentTypeError),
        ({"client_id": 5}, ledgermq.ArgumentTypeError),
        ({"kafka": {}}, TypeError),
    ],
)
def test_settings_are_refused_as_an_installation_refuses_them(setting, error):
    """Decision 29: what is out of range, of another type, or no setting."""
    with pytest.raises(error, match=next(iter(setting))):
        MemoryBroker().connect(**setting)


def test_what_a_crashed_connection_held_goes_to_others():
    """Received and not acknowledged: it comes back, marked; what was uncommitted vanishes."""
    broker = MemoryBroker()
    with broker.connect() as survivor, survivor.session() as session:
        session.producer("queue:orders").send("work")
        dying = broker.connect()
        holding = dying.session(ack="CLIENT")
        assert holding.consumer("queue:orders").receive(5).body == "work"
        writing = dying.session(transacted=True)
        writing.producer("queue:orders").send("never committed")
        writing.producer("queue:orders").flush()
        before = broker.now
        broker.crash(dying)
        again = session.consumer("queue:orders").receive(5)
        assert (again.body, again.redelivered) == ("work", True)
        assert session.consumer("queue:orders").receive(0.2) is None
    assert broker.now - before >= timedelta(seconds=15)
    with pytest.raises(ledgermq.LedgerMQError):
        holding.consumer("queue:orders")
    broker.crash(dying)


def test_two_connections_share_a_queue_manager_and_two_brokers_share_nothing():
    """A broker is one queue manager; nothing outlives it."""
    broker, other = MemoryBroker(), MemoryBroker("QM2")
    with broker.connect() as one, broker.connect() as two, other.connect() as apart:
        assert apart.queue_manager == "QM2"
        with one.session() as putting:
            putting.producer("queue:orders").send("seen by both")
        assert [found.body for found in two.browser("queue:orders")] == ["seen by both"]
        assert apart.admin.list_queues() == []


def test_a_checkpoint_is_refused():
    """There is nothing to keep; the refusal says that this kind of question is not known."""
    with (
        MemoryBroker().connect() as connection,
        pytest.raises(ledgermq.RefusedError, match="kind-unknown"),
    ):
        connection.admin.checkpoint()
