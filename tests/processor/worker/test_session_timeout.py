"""The session time-out of workers, and the bounds that a broker sets for it."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from ledgermq.embedded import EmbeddedBroker
from ledgermq.embedded.settings import server_properties
from support.brokers.worker_process import new_place

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def bounded(**where):
    """Properties of a broker that takes 5 to 10 seconds."""
    bounds = "group.min.session.timeout.ms=5000\ngroup.max.session.timeout.ms=10000\n"
    return server_properties(**where) + bounds


def test_a_worker_takes_what_the_broker_takes_or_says_that_it_cannot(tmp_path):
    """One that asks for too little takes the least, one that asks for too much ends for good."""
    with patch("ledgermq.embedded.broker.server_properties", bounded):
        broker = EmbeddedBroker(tmp_path / "broker", brief=True).start()
    place = new_place(broker.bootstrap, tmp_path)
    try:
        worker = place.worker("short")
        assert "after 5 s that this one is gone, not after 2.5 s" in worker.log
        assert worker.stop() == 0
        refused = place.worker("long", ready=False, SESSION_TIMEOUT_SECONDS=20)
        assert refused.wait(60) == 4, refused.log
        assert "with a session time-out of 20 s: give it one between" in refused.log
        assert "Traceback" not in refused.log
    finally:
        place.close()
        broker.stop()
