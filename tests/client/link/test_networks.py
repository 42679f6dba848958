"""Networks between clients, workers and Kafka: slow ones, and connections that died unheard."""

import time
from contextlib import contextmanager
from dataclasses import replace

import pytest

import ledgermq
from ledgermq.wire.topics.reading import PartitionReader
from support.brokers.far_broker import broker_behind_a_network
from support.brokers.worker_process import new_place

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

BYTES_PER_SECOND = 500_000
BODY = b"x" * 20_000
MESSAGES = 400


@pytest.fixture(scope="module")
def far_broker(tmp_path_factory):
    """A broker behind a network."""
    with broker_behind_a_network(tmp_path_factory.mktemp("far")) as broker:
        yield broker


@pytest.fixture
def far_place(far_broker, tmp_path):
    """A queue manager on it, without a worker."""
    place = new_place(far_broker.near, tmp_path)
    yield place
    place.close()


@contextmanager
def going_on(place, seconds):
    """A session sends before something happens, and once more after it within so many seconds."""
    with (
        place.connect(timeout=seconds, suspect_timeout_seconds=45) as connection,
        connection.session() as session,
    ):
        producer = session.producer("queue:a")
        producer.send("before")
        yield
        assert producer.send("behind").sequence == 1


def test_dead_connections_of_a_client_cost_it_no_session(far_broker, far_place):
    """Within the time in which its sessions would end it has made new ones, and goes on."""
    far_place.worker()
    far_place.bootstrap = far_broker.far
    with (
        far_place.connect(timeout=10, suspect_timeout_seconds=6) as connection,
        connection.session() as sending,
        connection.session(transacted=True) as taking,
    ):
        producer, consumer = sending.producer("queue:a"), taking.consumer("queue:a")
        producer.send("before")
        assert consumer.receive(20).body == "before"
        assert far_broker.network.kill_in_silence() > 0
        assert producer.send("behind").sequence == 1
        taking.commit()
        assert consumer.receive(20).body == "behind"
        taking.commit()


def test_dead_connections_of_a_worker_do_not_end_its_work(far_broker, far_place):
    """It serves again after seconds; it waited a minute, and ended since it could not write."""
    worker = replace(far_place, bootstrap=far_broker.far).worker(ready=False)
    far_place.wait_for_worker()
    with going_on(far_place, 45):
        assert far_broker.network.kill_in_silence() > 0
    assert worker.code is None, worker.log


def test_dead_connections_of_who_stands_by_hardly_delay_that_it_takes_over(far_broker, far_place):
    """As where the power fails for a worker and for the broker that both are connected to.

    It took 92 seconds: twice 30 to hear that it is in the group no more, twice 15 to read the log.
    """
    behind = replace(far_place, bootstrap=far_broker.far)
    first, second = behind.worker("a"), behind.worker("b", ready=False)
    second.wait_for_log("worker b stands by")
    with going_on(far_place, 35):
        assert far_broker.network.kill_in_silence() > 0
        first.kill()


def test_errors_of_calls_name_a_broker_that_is_away(far_broker, far_place):
    """What nobody answers is blamed on a worker only as long as the broker is there."""
    far_place.worker()
    far_place.bootstrap = far_broker.far
    with far_place.connect(timeout=2) as connection, connection.session() as session:
        producer = session.producer("queue:a")
        producer.send("before")
        away = f"trouble with the broker at {far_broker.far}"
        with far_broker.network.shut():
            with pytest.raises(ledgermq.OutcomeUnknownError, match=away) as caught:
                producer.send("behind")
            with pytest.raises(ledgermq.WorkerUnavailableError, match=away):
                connection.session()
            with pytest.raises(ledgermq.WorkerUnavailableError, match=away):
                connection.admin.list_queues()
        assert caught.value.resolve(20).sequence == 1


def test_an_operation_waits_once_for_a_broker_that_is_away(far_broker, far_place):
    """It was handed over again and again, behind itself, and each copy was kept in memory."""
    far_place.worker()
    far_place.bootstrap = far_broker.far
    with far_place.connect(timeout=30) as connection, connection.session() as session:
        producer = session.producer("queue:a")
        producer.send("before")
        with far_broker.network.shut():
            sent = producer.send_async("behind")
            time.sleep(10)
            (pending,) = session._work.engine.protocol.pending.values()
            assert pending.sends == 1
        assert sent.result(timeout=20).sequence == 1


def test_a_deep_queue_comes_through_a_slow_link(far_broker, far_place):
    """All that is delivered ahead takes longer than Kafka's answers may: it came in one, never."""
    far_place.worker()
    with far_place.connect() as connection, connection.session(transacted=True) as session:
        producer = session.producer("queue:a")
        for _ in range(MESSAGES):
            producer.send(BODY)
        session.commit()
    far_place.bootstrap = far_broker.far
    with (
        far_broker.network.slowed_down(BYTES_PER_SECOND),
        far_place.connect(timeout=60, suspect_timeout_seconds=6) as connection,
        connection.session() as session,
    ):
        consumer = session.consumer("queue:a")
        received = []
        while len(received) < MESSAGES and (message := consumer.receive(20)) is not None:
            received.append(message.sequence)
    assert received == [*range(MESSAGES)]


def test_what_waits_for_a_slow_link_is_not_written_again_behind_itself(far_broker, far_place):
    """Each batch that came through had all that was behind it written once more."""
    far_place.worker()
    far_place.bootstrap = far_broker.far
    with (
        far_broker.network.slowed_down(BYTES_PER_SECOND),
        far_place.connect(timeout=60) as connection,
        connection.session() as session,
    ):
        producer = session.producer("queue:a")
        for receipt in [producer.send_async(BODY) for _ in range(MESSAGES)]:
            receipt.result(60)
    ledger = far_place.ledger
    with PartitionReader(far_broker.near, 20.0) as reader:
        first, end = reader.ends(*ledger.operations)
        values = [one.value() for one in reader.records(*ledger.operations, first, end)]
    # Where a machine is busy, a small operation before them may be asked for again.
    written = [value for value in values if len(value) > len(BODY)]
    assert len(set(written)) == len(written) > 0
