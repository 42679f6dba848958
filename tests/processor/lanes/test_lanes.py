"""Lanes: what the worker writes for readers, and what it does when it cannot (H2, H22, D9)."""

import json
import re
import time
import urllib.error
import urllib.request

import pytest

from ledgermq.protocol import operations as op
from ledgermq.wire.framing.codec import decode_chunk
from support.brokers import topic_surgery as surgery
from support.brokers.traffic import Traffic
from support.checks.history import check_history, read_partition

pytestmark = pytest.mark.kafka

MORE_RECORDS = re.compile(r"(\d+) more records were passed over")


def test_every_record_of_a_lane_names_its_connection_and_its_first_outcome(place):
    """Key and headers are those of PROTOCOL.md §2, so that foreign records need no decoding."""
    place.worker()
    client = place.client(1)
    session = client.open()
    session.put("queue:a", 2)
    session.do(op.Commit, deliveries=[], puts=2)
    name = client.connection.hex().encode()
    records = [
        record
        for record in read_partition(place.bootstrap, place.topics.outcomes, 1)
        if record.key() == name
    ]
    assert records
    for record in records:
        headers = dict(record.headers())
        chunk = decode_chunk(record.value())
        first = chunk.outcomes[0]
        assert headers["content-type"] == b"avro/binary"
        assert headers["ce_specversion"] == b"1.0"
        assert headers["ce_type"] == b"ledgermq.outcome.Chunk"
        assert headers["ce_source"] == b"/ledgermq/QM1/" + name
        assert headers["ce_id"] == b"%d:%d" % (first.position, first.index)
        assert headers["ledgermq-connection"] == name


def test_a_lane_that_does_not_exist_is_taken_modulo(place):
    """An Open on lane 7 of 2 reads lane 1: no other queue manager's partition is touched."""
    place.worker()
    client = place.client(1)
    client.lane = 7
    session = client.open()
    assert session.do(op.Alive).session == session.handle


def test_a_failed_lane_write_stops_the_worker_and_the_next_one_writes_it(place):
    """When a lane takes a record for good no more, the worker stops; nothing is skipped (H2)."""
    worker = place.worker("first")
    traffic = Traffic(place.client(0), place.client(1))
    traffic.run(3)
    surgery.alter_topic(place, place.topics.outcomes, max_message_bytes=300)
    for _ in range(60):
        traffic.step()
        time.sleep(0.05)
        if worker.code is not None:
            break
    assert worker.wait() == 1
    assert "a write failed for good" in worker.log
    surgery.alter_topic(place, place.topics.outcomes, max_message_bytes=10 * 1024 * 1024)
    place.worker("first")
    traffic.run(3)
    traffic.settle()
    check_history(place)


def test_a_huge_credit_is_served_in_chunks_of_bounded_size(place):
    """20,000 messages due at once go out as outcomes of at most 1,000, in chunks of about 1 MiB."""
    place.worker()
    client = place.client(0)
    session = client.open()
    for _ in range(20):
        session.put("queue:deep", 1_000, size=150)
        session.write(op.Commit, deliveries=[], puts=1_000)
    session.reply(session.sequence, seconds=60.0)
    taker = place.client(1)
    consumer = taker.open("CLIENT")
    consumer.consumer(1, "queue:deep", 1_000_000)
    taker.read_until(lambda: consumer.deliveries == 20_000, 60.0)
    assert max(len(one.messages) for one in consumer.delivered) == 1_000
    records = read_partition(place.bootstrap, place.topics.outcomes, 1)
    assert max(len(record.value()) for record in records) < 2 * 1024 * 1024
    check_history(place)


def test_a_message_of_the_largest_size_is_delivered(place):
    """A content of 8 MiB less 4 KiB goes through a Put and a Delivered."""
    place.worker()
    client = place.client(0)
    session = client.open("CLIENT")
    session.put("queue:big", 1, size=8 * 1024 * 1024 - 4096)
    session.reply(1)
    session.consumer(1, "queue:big", 1)
    client.read_until(lambda: session.deliveries == 1)
    assert len(session.delivered[0].messages[0]["content"]) == 8 * 1024 * 1024 - 4096


def test_questions_of_all_kinds_are_answered_or_refused(place):
    """QUEUE_MANAGER, QUEUES, QUEUE, SESSIONS answer; what cannot be answered says why (D15)."""
    place.worker()
    client = place.client(0)
    session = client.open()
    session.put("queue:a", 3)
    session.do(op.Commit, deliveries=[], puts=3)
    manager = json.loads(client.ask("QUEUE_MANAGER")["document"])
    assert (manager["name"], manager["queues"], manager["sessions"]) == ("QM1", 1, 1)
    assert json.loads(client.ask("QUEUES")["document"])[0]["current"] == 3
    assert json.loads(client.ask("QUEUE", queue="a")["document"])["next_sequence"] == 3
    assert json.loads(client.ask("SESSIONS")["document"])[0]["session"] == session.handle
    assert client.ask("QUEUE", queue="none")["reason"] == "queue-unknown"
    assert client.ask("BROWSE", queue="none")["reason"] == "queue-unknown"
    assert client.ask("UNKNOWN")["reason"] == "kind-unknown"
    late = client.ask("QUEUES", not_before=10_000, wait_ms=300)
    assert late["reason"] == "position-not-reached"
    waiting = client.ask_only("QUEUES", not_before=manager["position"] + 1, wait_ms=20_000)
    session.do(op.Alive)
    client.read_until(lambda: waiting in client.answers)
    assert client.answers[waiting]["position"] == manager["position"] + 1


def test_garbage_on_the_side_topic_is_passed_over(place):
    """An unreadable question is noted in the log; the next one is answered."""
    worker = place.worker()
    for value in (None, b"", b"garbage", b"\xc3\x01" + bytes(20)):
        surgery.write(place, place.topics.questions, None, value)
    assert place.client().ask("QUEUES")["document"] == "[]"
    assert "is passed over" in worker.log


def test_a_flood_of_garbage_on_the_side_topic_is_counted_and_not_told_one_by_one(place):
    """The first record is named, the others are a number, which may come with the end."""
    worker = place.worker()
    for _ in range(100):
        surgery.write(place, place.topics.questions, None, b"garbage")
    assert place.client().ask("QUEUES")["document"] == "[]"
    assert worker.stop() == 0
    lines = [line for line in worker.log.splitlines() if "passed over" in line]
    counts = [int(found[1]) for found in map(MORE_RECORDS.search, lines) if found]
    assert sum(counts) == 99
    assert len(lines) == 1 + len(counts) < 10


def test_the_web_port_shows_metrics_and_health_and_nothing_else(place):
    """Metrics and health answer on loopback; no page of Faust does, tables above all (D15)."""
    worker = place.worker(WEB_PORT=0)
    worker.wait_for_log("metrics on http://")
    address = worker.log.split("metrics on ")[1].split()[0]
    assert address.startswith("http://127.0.0.1:")
    place.client().open()
    text = urllib.request.urlopen(f"{address}/metrics", timeout=10).read().decode()
    assert 'ledgermq_operations_folded_total{queue_manager="QM1"} 1.0' in text
    health = json.load(urllib.request.urlopen(f"{address}/health", timeout=10))
    owned = {"status": "up", "worker": worker.name, "ready": True, "queue_managers": {"QM1": 0}}
    assert health == owned
    ready = urllib.request.urlopen(f"{address}/ready", timeout=10)
    assert (ready.status, json.load(ready)) == (200, {"ready": True})
    for page in ("/", "/table/", "/router/", "/graph/", "/stats/"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{address}{page}", timeout=10)
        assert refused.value.code == 404
