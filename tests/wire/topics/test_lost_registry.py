"""A registry that was deleted while its queue managers' logs are there."""

from __future__ import annotations

import pytest

import ledgermq
from support.brokers import topic_surgery as surgery
from support.brokers.worker_process import Place, new_place

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture
def lost(broker, tmp_path):
    """QM1 and PAY have a message each; no worker runs, and the registry is gone."""
    place = new_place(broker.bootstrap, tmp_path, partitions=2)
    surgery.delete_topic(place, place.topics.registry)
    worker = place.worker(QUEUE_MANAGERS="QM1,PAY")
    for name in ("QM1", "PAY"):
        with _connect(place, name) as connection, connection.session() as session:
            session.producer("queue:work").send(name)
    worker.stop()
    surgery.delete_topic(place, place.topics.registry)
    yield place
    place.close()


def _connect(place: Place, name: str) -> ledgermq.Connection:
    address = f"kafka://{place.bootstrap}/{name}"
    return ledgermq.connect(address, timeout=20.0, topic_prefix=place.topics.prefix)


@pytest.mark.parametrize("names", ["NEW", "PAY", "PAY,NEW"])
def test_a_worker_claims_nothing_while_it_lacks_a_name(lost, names):
    """It ends for good, and says which partitions have whose entries, and how to go on."""
    worker = lost.worker(ready=False, QUEUE_MANAGERS=names)
    assert worker.wait() == 4
    operations = lost.topics.operations
    assert f"({operations}-0 those of QM1, {operations}-1 those of PAY)" in worker.log
    assert "with --queue-manager QM1 --queue-manager PAY" in worker.log
    assert "Traceback" not in worker.log


def test_all_names_in_any_order_get_back_what_was_theirs(lost):
    """Nobody finds the message of another."""
    lost.worker(QUEUE_MANAGERS="PAY,QM1")
    for name in ("QM1", "PAY"):
        with _connect(lost, name) as connection, connection.session() as session:
            message = session.consumer("queue:work").receive(timeout=10)
            assert message is not None
            assert message.body == name
