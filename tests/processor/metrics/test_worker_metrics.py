"""What a worker shows to Prometheus, compared with what clients did on the real broker."""

from __future__ import annotations

import shutil
import subprocess
import time

import pytest

import ledgermq
from ledgermq.errors import PutsDisabledError
from ledgermq.processor.metrics.families import FAMILIES
from support.brokers.scraping import OPENMETRICS, Scrape, fetch, scrape, scrape_until
from support.brokers.worker_process import new_place

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def place(broker, tmp_path_factory):
    """An installation that the tests share; each has queues of its own."""
    found = new_place(broker.bootstrap, tmp_path_factory.mktemp("metrics"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def worker(place):
    """Its worker, with metrics."""
    return place.worker(WEB_PORT=0)


def test_each_kind_of_event_is_counted_as_often_as_clients_made_it(place, worker):
    """Puts, commits, deliveries, acknowledgements, rollbacks, expiry, dead letters, refusals."""
    with place.connect() as connection:
        connection.admin.create_queue("dead")
        connection.admin.create_queue("orders", error_destination="queue:dead", redelivery_limit=1)
        with connection.session(ack=ledgermq.AckMode.TRANSACTED) as session:
            producer = session.producer("queue:orders")
            producer.send_many(["a", "b", "c"])
            session.commit()
            producer.send_many(["d", "e"])
            pending = {"available": 3, "uncommitted_put": 2}
            scrape_until(worker, lambda one: one.states("queue:orders") == pending)
            session.rollback()
            consumer = session.consumer("queue:orders")
            for body in ("a", "b"):
                assert consumer.receive(timeout=20).body == body
            session.commit()
            for _ in range(2):
                assert consumer.receive(timeout=20).body == "c"
                session.rollback()
        with connection.session() as session:
            session.producer("queue:short").send("gone", time_to_live=0.01)
        with connection.session(ack=ledgermq.AckMode.CLIENT) as session:
            session.producer("queue:again").send("x")
            consumer = session.consumer("queue:again")
            consumer.receive(timeout=20)
            session.recover()
            consumer.receive(timeout=20).acknowledge()
        connection.admin.create_queue("closed", puts_disabled=True)
        with connection.session() as session, pytest.raises(PutsDisabledError):
            session.producer("queue:closed").send("refused")
        found = scrape_until(worker, lambda one: one.events("queue:short").get("expired"))
    assert found.events("queue:orders") == {
        "put": 5,
        "committed": 3,
        "rolled_back put": 2,
        "delivered false": 3,
        "delivered true": 1,
        "acknowledged": 2,
        "rolled_back get": 1,
        "removed moved": 1,
        "dead_lettered redelivery-limit": 1,
    }
    assert found.events("queue:dead") == {"put": 1, "committed": 1}
    assert found.events("queue:short") == {"put": 1, "committed": 1, "expired": 1}
    assert found.events("queue:again") == {
        "put": 1,
        "committed": 1,
        "delivered false": 1,
        "delivered true": 1,
        "returned": 1,
        "acknowledged": 1,
    }
    assert found.events("queue:closed") == {}
    assert found("projection_rejected_events_total", reason="puts-disabled") == 1


def test_gauges_say_what_is_there_and_since_when(place, worker):
    """Messages and bytes by state, consumers, quota, last number, oldest message and work."""
    before = time.time()
    with place.connect() as connection:
        connection.admin.create_queue("deep", messages_max=10)
        with (
            connection.session(ack=ledgermq.AckMode.TRANSACTED) as working,
            connection.session(ack=ledgermq.AckMode.CLIENT) as reading,
        ):
            producer = working.producer("queue:deep")
            producer.send_many(["1", "2", "3", "4"])
            producer.send("5", delivery_delay=3600)
            working.commit()
            producer.send("6")
            consumer = reading.consumer("queue:deep", prefetch=0)
            assert consumer.receive(timeout=20).body == "1"
            expected = {"available": 3, "unborn": 1, "unacknowledged": 1, "uncommitted_put": 1}
            found = scrape_until(worker, lambda one: one.states("queue:deep") == expected)
            statuses = {one.name: one for one in connection.admin.list_queues()}
            sizes = found.states("queue:deep", "queue_bytes")
            assert sizes["available"] == statuses["deep"].current_bytes
            assert sum(sizes.values()) - sizes["available"] == statuses["deep"].pending_bytes
            at = {"destination": "queue:deep"}
            assert found("queue_consumers", **at) == 1
            assert found("queue_quota_used_ratio", **at) == 0.6
            assert found("sequence_last", **at) == 4
            oldest = found("queue_oldest_message_timestamp_seconds", **at)
            assert before - 5 < oldest < time.time() + 5
            assert found("transactions_open") == 1
            assert oldest <= found("transaction_oldest_timestamp_seconds") < time.time() + 5
            assert found("sessions_open") >= 2
            working.rollback()
    found = scrape_until(worker, lambda one: one("transactions_open") == 0)
    assert found("transaction_oldest_timestamp_seconds") is None


def test_a_topic_counts_what_is_published_and_each_subscription_its_own(place, worker):
    """A publication is one put; each subscription's copy is delivered and acknowledged."""
    with place.connect(client_id="metrics") as connection, connection.session() as session:
        first = session.consumer("topic:news", subscription="first", durable=True)
        session.consumer("topic:news")
        session.producer("topic:news").send("read all about it")
        assert first.receive(timeout=20) is not None
        wanted = {"put": 1, "committed": 1, "delivered false": 1, "acknowledged": 1}
        found = scrape_until(worker, lambda one: one.events("topic:news") == wanted)
        assert found.states("topic:news") == {"published": 1}
        named = {"destination": "topic:news", "subscription": "first", "client_id": "metrics"}
        assert found("subscription_messages", **named, state="available") == 0
        unnamed = {"destination": "topic:news", "subscription": "", "client_id": ""}
        assert found("subscription_messages", **unnamed, state="available") == 1
        assert found("queue_consumers", destination="topic:news") == 2


def test_the_fold_its_checkpoints_and_its_outcomes_are_shown(place, worker):
    """Lag, position, age and size of checkpoints, and a histogram that counts every outcome."""
    with place.connect() as connection, connection.session() as session:
        before = scrape(worker)
        for number in range(20):
            session.producer("queue:timed").send(str(number))
        found = scrape_until(
            worker,
            lambda one: (
                one("projection_lag_records") == 0
                and one("outcome_latency_seconds_count") == one("outcomes_written_total")
            ),
        )
    assert found("projection_caught_up") == 1
    assert found("projection_lag_seconds") == 0
    assert found("projection_position") > before("projection_position")
    assert abs(found("projection_position_timestamp_seconds") - time.time()) < 60
    assert found("outcomes_written_total") >= before("outcomes_written_total") + 20
    assert found("outcome_latency_seconds_sum") >= before("outcome_latency_seconds_sum")
    largest = found("outcome_latency_seconds_bucket", le="+Inf")
    assert largest == found("outcome_latency_seconds_count")
    made = scrape_until(worker, lambda one: one("checkpoint_written_bytes"))
    assert made("checkpoint_written_bytes") > 100
    assert made("checkpoint_duration_seconds") > 0
    assert made("checkpoint_position") >= 0
    assert made("checkpoint_age_seconds") < 600


def test_both_formats_are_spoken_and_hold_the_declared_families(place, worker):
    """Prometheus may ask for OpenMetrics; nothing is shown that the table does not have."""
    plain, plain_type = fetch(worker)
    assert plain_type == "text/plain; version=0.0.4; charset=utf-8"
    openmetrics, openmetrics_type = fetch(worker, OPENMETRICS)
    assert openmetrics_type.startswith("application/openmetrics-text; version=1.0.0")
    declared = {f"ledgermq_{one.name}": one for one in FAMILIES}
    for text in (plain, openmetrics):
        families = Scrape(text).families
        ours = {name for name in families if name.startswith("ledgermq_")}
        assert ours == set(declared)
        for name in ours:
            assert families[name].type == declared[name].kind
            for sample in families[name].samples:
                assert set(sample.labels) - {"le"} == set(declared[name].labels), sample
        assert "process_resident_memory_bytes" in families


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_finds_nothing_to_complain_about(worker):
    """What Prometheus's own checker says of the text; the names that were there before stay."""
    text, _ = fetch(worker)
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert done.stderr + done.stdout == ""
