"""Tests of clients that die or whose broker dies: what they held goes to others, nothing twice."""

import threading

import pytest

import ledgermq
from ledgermq.embedded import EmbeddedBroker
from support.brokers.plain_worker import PlainWorker
from support.brokers.worker_process import new_place

HOLDER = """
import sys
import time
import ledgermq

connection = ledgermq.connect(sys.argv[1], topic_prefix=sys.argv[2], suspect_timeout_seconds=1.0)
session = connection.session(transacted=True)
session.producer(sys.argv[3] + ".out").send("never")
consumer = session.consumer(sys.argv[3], prefetch=10)
for _ in range(3):
    consumer.receive(20)
session.producer(sys.argv[3]).flush()
print("holding", flush=True)
time.sleep(600)
"""


@pytest.fixture
def connection(installation):
    """A connection to the real worker: processes cannot share what is in memory."""
    with installation.connect() as opened:
        yield opened


def test_what_a_killed_client_held_goes_to_another_one(installation, connection, queue):
    """After SIGKILL and the suspicion, others get the deliveries, with delivery count 2."""
    with connection.session() as session:
        session.producer(queue).send_many(str(number) for number in range(5))
    with installation.program(HOLDER, queue) as holder:
        assert holder.stdout.readline() == "holding\n"
        status = connection.admin.queue_status(queue)
        assert (status.uncommitted_gets, status.current) == (5, 0)
    with connection.session() as session:
        consumer = session.consumer(queue)
        found = [consumer.receive(60) for _ in range(5)]
    # All of them count: what the dead application saw of what it had is unknown.
    assert [(one.body, one.delivery_count) for one in found] == [
        (str(number), 2) for number in range(5)
    ]
    assert connection.admin.queue_status(queue + ".out").next_sequence == 0


def test_a_live_client_that_does_nothing_keeps_its_messages(installation, queue):
    """Heartbeats alone keep a session, for longer than its suspect time-out."""
    with (
        installation.connect(suspect_timeout_seconds=1.0) as connection,
        connection.session(ack="CLIENT") as session,
    ):
        session.producer(queue).send("mine")
        message = session.consumer(queue).receive(20)
        assert not threading.Event().wait(5.0)
        message.acknowledge()
        assert connection.admin.queue_status(queue).message_count == 0


def test_a_unit_of_work_that_nobody_goes_on_with_is_given_to_others(installation, queue):
    """Its session lives, but its next call says what happened; another session has the message."""
    with (
        installation.connect() as connection,
        connection.session(transacted=True, unit_of_work_idle_limit_ms=1_000) as idle,
        connection.session(transacted=True) as other,
    ):
        idle.producer(queue).send("mine")
        idle.commit()
        consumer = idle.consumer(queue)
        assert consumer.receive(20).body == "mine"
        again = other.consumer(queue).receive(20)
        assert (again.body, again.delivery_count) == ("mine", 2)
        other.commit()
        with pytest.raises(ledgermq.TransactionRolledBackError, match="broke a time limit"):
            consumer.receive(20)
        idle.rollback()
        idle.producer(queue).send("next")
        idle.commit()
        assert connection.admin.queue_status(queue).message_count == 1


@pytest.mark.slow
def test_a_broker_killed_and_started_again_loses_and_repeats_nothing(tmp_path):
    """Sends and commits under way across the crash each act once."""
    with EmbeddedBroker(tmp_path / "broker", brief=True) as broker:
        place = new_place(broker.bootstrap, tmp_path)
        worker = PlainWorker(place.bootstrap, place.topics, place.claim)
        try:
            with place.connect(timeout=120.0) as connection:
                receipts = copy_across_a_crash(connection, broker)
                bodies = [one.body for one in connection.browser("queue:out")]
        finally:
            worker.stop()
    assert [receipt.sequence for receipt in receipts] == list(range(400))
    assert bodies == [str(number) for number in range(400)]


def copy_across_a_crash(
    connection: ledgermq.Connection, broker: EmbeddedBroker
) -> list[ledgermq.SendReceipt]:
    """Puts 400 messages and copies them by units of work; the broker dies in the middle."""
    crash = threading.Timer(0.5, lambda: (broker.kill(), broker.start()))
    crash.start()
    receipts = []
    with connection.session() as session, connection.session(transacted=True) as copying:
        source = session.producer("queue:in")
        consumer, target = copying.consumer("queue:in"), copying.producer("queue:out")
        for number in range(400):
            receipts.append(source.send(str(number)))
            target.send(consumer.receive(120).body)
            if number % 10 == 9:
                copying.commit()
    crash.join()
    return receipts
