"""The broker is killed and comes back: the worker goes on or is started again (F3)."""

import signal
import time

import pytest

from support.brokers.traffic import Traffic
from support.brokers.worker_process import new_place
from support.checks.history import check_history

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def test_a_killed_broker_loses_nothing_that_was_appended(own_broker, tmp_path):
    """After kill -9 of the broker and its return, the lanes still are the fold of the ledger."""
    place = new_place(own_broker.bootstrap, tmp_path)
    try:
        worker = place.worker("steady", CHECKPOINT_SECONDS=1)
        traffic = Traffic(place.client(0), place.client(1))
        traffic.run(10)
        for _ in range(2):
            own_broker.kill()
            own_broker.start()
            if worker.code is not None:
                worker = place.worker("steady", CHECKPOINT_SECONDS=1)
            traffic.run(10)
            traffic.settle()
        check_history(place)
    finally:
        place.close()


@pytest.mark.parametrize("seconds", [0.0, pytest.param(8.0, marks=pytest.mark.long)])
def test_a_worker_whose_broker_is_gone_ends_when_told(own_broker, tmp_path, seconds):
    """SIGTERM ends it within half a minute, however long the broker has been gone."""
    place = new_place(own_broker.bootstrap, tmp_path)
    try:
        worker = place.worker("lonely", CHECKPOINT_SECONDS=1)
        traffic = Traffic(place.client(0), place.client(1))
        traffic.run(10)
        own_broker.kill()
        time.sleep(seconds)  # long enough for Faust to miss its coordinator
        if worker.code is None:
            worker.signal(signal.SIGTERM)
            assert worker.wait(30) == 0, worker.log
        assert len(worker.log) < 1_000_000, worker.log[:10_000]
    finally:
        place.close()


def test_no_session_is_suspected_for_a_silence_in_which_its_broker_was_away(own_broker, tmp_path):
    """Where it went away again soon, nobody could answer the suspicion, and all was lost."""
    place = new_place(own_broker.bootstrap, tmp_path)
    try:
        worker = place.worker("steady", SESSION_TIMEOUT_SECONDS=20)
        with place.connect(suspect_timeout_seconds=4, timeout=60.0) as connection:
            session = connection.session(ack="CLIENT")
            session.producer("queue:a").send("held")
            held = session.consumer("queue:a").receive(20)
            for _ in range(2):
                own_broker.kill()
                time.sleep(5)
                own_broker.start()
            held.acknowledge()
        assert "they are suspected" not in worker.log
        assert worker.code is None
    finally:
        place.close()
