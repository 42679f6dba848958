"""A worker whose membership of the group is broken ends, so that it can be started again (F3)."""

import asyncio
import concurrent.futures
import threading
from types import SimpleNamespace

import aiokafka.errors
import pytest
from aiokafka.errors import InconsistentGroupProtocolError, InvalidSessionTimeoutError, KafkaError

from ledgermq.processor.faust_shell import transport
from ledgermq.processor.faust_shell.application import make_application
from ledgermq.processor.faust_shell.sharing import Sharing, Standing
from ledgermq.processor.worker import worker as worker_module
from ledgermq.processor.worker.exit_codes import EXIT_FAULT, EXIT_REFUSED
from ledgermq.processor.worker.settings import WorkerSettings
from ledgermq.processor.worker.worker import NameTakenError, Worker
from ledgermq.wire.topics.log_topics import Topics


class EndedError(Exception):
    """The drain loop ended by itself."""


@pytest.fixture
def kafka_thread():
    """A running event loop in a thread, as Faust has one for Kafka."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield SimpleNamespace(thread_loop=loop)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def drain(tmp_path, kafka_thread, *, suspended, on_failure=None):
    """Runs the drain loop of a consumer whose Kafka thread is the one given."""

    async def run():
        settings = WorkerSettings.from_environment(
            bootstrap="127.0.0.1:1", data_directory=tmp_path, web_port=-1
        )
        sharing = Sharing("test.operations", Standing, frozenset)
        app = make_application(settings, Topics("test"), None, lambda _: None, sharing)
        consumer = app.consumer
        consumer.on_failure = on_failure
        consumer._thread = kafka_thread
        consumer._feed = SimpleNamespace(check=lambda: None, take=lambda: None)
        if suspended:
            consumer.stop_flow()
        else:
            consumer.resume_flow()
        try:
            await consumer._drain_messages(SimpleNamespace(_stopped=asyncio.Event()))
        except Exception as error:
            raise EndedError from error

    asyncio.run(asyncio.wait_for(run(), 20))


@pytest.mark.parametrize("suspended", [False, True])
def test_the_end_of_the_coordination_ends_the_worker(
    tmp_path, monkeypatch, kafka_thread, suspended
):
    """Also in the middle of a rebalance, which would never be over."""
    monkeypatch.setattr(transport, "SHOW_LIFE_SECONDS", 0.05)
    calls = []

    async def show_life():
        calls.append(1)
        if len(calls) == 3:
            raise KafkaError("Unexpected error during coordination")

    kafka_thread.show_life = show_life
    with pytest.raises(EndedError) as ended:
        drain(tmp_path, kafka_thread, suspended=suspended)
    assert isinstance(ended.value.__cause__, KafkaError)


def test_a_thread_that_does_not_react_ends_the_worker(tmp_path, monkeypatch, kafka_thread):
    """Its records would never come, and nobody would take over."""
    monkeypatch.setattr(transport, "REACTION_SECONDS", 0.2)
    kafka_thread.show_life = lambda: asyncio.sleep(60)
    with pytest.raises(EndedError) as ended:
        drain(tmp_path, kafka_thread, suspended=False)
    assert isinstance(ended.value.__cause__, TimeoutError)


@pytest.mark.parametrize(
    ("told", "raised"),
    [
        (KafkaError("UnknownError()"), KafkaError),
        (InvalidSessionTimeoutError(), InvalidSessionTimeoutError),
        (KafkaError("FencedInstanceError()"), transport.FencedInstanceError),
    ],
)
def test_what_ends_the_coordination_before_there_are_partitions_is_raised(told, raised):
    """Else a worker that stands by would live on and never take over."""
    consumer = transport.LogConsumer.__new__(transport.LogConsumer)
    coordinator = SimpleNamespace(_pending_exception=None)
    consumer._thread = SimpleNamespace(_consumer=None)
    consumer.check_membership()
    consumer._thread._consumer = SimpleNamespace(_coordinator=coordinator)
    consumer.check_membership()
    coordinator._pending_exception = told
    with pytest.raises(raised):
        consumer.check_membership()


def test_a_worker_that_was_turned_away_names_the_other_one_and_may_be_started_again(
    tmp_path, monkeypatch, kafka_thread
):
    """Two of a name may turn each other away in one moment: without code 4 one comes back."""

    async def show_life():
        raise KafkaError("FencedInstanceError()")

    kafka_thread.show_life = show_life
    failures = []
    drain(tmp_path, kafka_thread, suspended=False, on_failure=failures.append)
    worker, told, codes = object.__new__(Worker), [], []
    worker._ended = concurrent.futures.Future()
    worker._topics, worker._settings = Topics("test"), SimpleNamespace(worker_name="twin")
    monkeypatch.setattr(worker_module.log, "critical", lambda *parts: told.append(str(parts[-1])))
    monkeypatch.setattr(worker, "_end", codes.append)
    for error in (*failures, NameTakenError("twin")):
        worker._fail(error)
    assert codes == [EXIT_FAULT, EXIT_REFUSED]
    assert all("another worker is called twin too" in one for one in told)


def test_a_group_that_shares_out_otherwise_is_told_and_may_be_tried_again(monkeypatch):
    """Workers of another release are in the way only until they have stopped."""
    worker, told, codes = object.__new__(Worker), [], []
    worker._ended = concurrent.futures.Future()
    worker._topics, worker._settings = Topics("test"), SimpleNamespace(worker_name="new")
    monkeypatch.setattr(worker_module.log, "critical", lambda *parts: told.append(str(parts[-1])))
    monkeypatch.setattr(worker, "_end", codes.append)
    worker._fail(InconsistentGroupProtocolError())
    assert codes == [EXIT_FAULT]
    assert "workers of another release" in told[0]
    assert "group test.workers" in told[0]


def test_a_member_whose_name_was_taken_is_told_so():
    """Aiokafka wraps what Kafka answers, and does not list this code."""
    found = aiokafka.errors.for_code(82)
    assert found is transport.FencedInstanceError
    assert "FencedInstanceError()" in str(KafkaError(repr(found())))
