"""What metrics and log say of a worker that folds again what another one folded before it."""

from __future__ import annotations

import json

import pytest

from support.brokers.scraping import scrape, scrape_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

SECRET = "4711 is my body"


def test_what_is_folded_again_is_not_counted_again(place):
    """Counters begin at 0 and count what comes; gauges have it all; the log has fields in JSON."""
    given = {"WEB_PORT": 0, "LOG_FORMAT": "json", "METRICS_PER_DESTINATION": 1}
    first = place.worker("same", **given)
    with place.connect() as connection, connection.session() as session:
        session.producer("queue:orders").send_many([SECRET] * 5)
        other = session.producer("queue:other")
        other.send("x")
        temporary = session.temporary_queue()
        session.producer(temporary).send("y")
        found = scrape(first)
        assert found.events("queue:orders") == {"put": 5, "committed": 5}
        assert found.events("others") == {"put": 1, "committed": 1}
        assert found.events("temporary") == {"put": 1, "committed": 1}
        assert found.states("others") == found.states("temporary") == {"available": 1}
        folded = found("operations_folded_total")
        first.kill()
        second = place.worker("same", **given)
        found = scrape_until(second, lambda one: one("projection_caught_up") == 1)
        assert found.events("queue:orders") == {}
        assert found.states("queue:orders") == {"available": 5}
        assert found("operations_folded_total") >= folded
        assert found("outcome_latency_seconds_count") == 0
        assert found("sequence_last", destination="queue:orders") == 4
        consumer = session.consumer("queue:orders")
        assert consumer.receive(timeout=30).body == SECRET
        other.send("z")
        found = scrape_until(second, lambda one: one.events("queue:orders").get("acknowledged"))
        assert found.events("queue:orders")["acknowledged"] == 1
        assert found.events("others") == {"put": 1, "committed": 1}
    for worker in (first, second):
        lines = [json.loads(one) for one in worker.log.splitlines()]
        assert all({"time", "level", "logger", "message"} <= one.keys() for one in lines)
        (loaded,) = [one for one in lines if "state loaded" in one["message"]]
        assert (loaded["queue_manager"], loaded["worker"]) == ("QM1", "same")
        assert isinstance(loaded["position"], int)
        assert SECRET not in worker.log
