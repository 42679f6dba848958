"""The broker is killed and comes back: the worker goes on or is started again (F3)."""

import pytest
from tests.support.history import check_history
from tests.support.traffic import Traffic
from tests.support.worker_process import new_place

from ledgermq.embedded import EmbeddedBroker

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture
def own_broker(tmp_path):
    """A broker that the test may kill."""
    with EmbeddedBroker(tmp_path / "broker") as broker:
        yield broker


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
