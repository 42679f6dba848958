"""Operations as large as a record may be, on the log: the worker answers and lives on."""

import os
from pathlib import Path

import pytest

from ledgermq.protocol import operations as op
from ledgermq.protocol.outcomes import Refused

pytestmark = pytest.mark.kafka

MEGABYTES_MAX = 120


def resident_megabytes(pid):
    """How much memory a process has."""
    pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE") // 2**20


def test_texts_of_megabytes_are_refused_by_outcomes_that_the_lane_takes(place):
    """Each would have been quoted by a refusal of over 10 MiB, at which the worker ended for ever
    (H2, decision 8).
    """
    worker = place.worker()
    client = place.client(0)
    session = client.open()
    text = "\x01" * 2_700_000
    client.write(
        op.Open(
            connection=client.connection,
            lane=0,
            session_key=bytes(16),
            acknowledge_mode="AUTO",
            suspect_timeout_ms=45_000,
            client_id=text,
        )
    )
    client.flush()
    client.read_until(lambda: client.unchained)
    message = {"message_id": bytes(16), "priority": 4, "persistent": True, "content": b"x"}
    asked = (
        (op.CreateQueue, {"queue": text}),
        (op.CreateTopic, {"topic": text}),
        (op.CreateTemporary, {"destination": text}),
        (op.Unsubscribe, {"subscription": text}),
        (op.DeleteQueue, {"queue": text}),
        (op.Put, {"destination": text, "messages": [message]}),
        (op.OpenConsumer, {"consumer": 1, "destination": "topic:t", "selector": text}),
        (op.OpenConsumer, {"consumer": 1, "destination": "topic:t", "subscription": text}),
    )
    for kind, fields in asked:
        assert isinstance(session.do(kind, **fields), Refused), kind.__name__
    session.put("queue:q")
    assert session.do(op.Commit, deliveries=[], puts=1).enqueued
    assert worker.code is None


def test_records_with_a_million_ranges_take_a_worker_no_memory(place):
    """Five of them took 900 MiB; they are refused unread, and sessions go on (F11)."""
    worker = place.worker()
    client = place.client(0)
    session = client.open("AUTO")
    session.do(op.Alive)
    before = resident_megabytes(worker._process.pid)
    ranges = [{"first": 2**20, "last": 2**20}] * 1_000_000
    entry = op.Acknowledge(session=0, session_sequence=1, answered_through=0, deliveries=ranges)
    for _ in range(5):
        client.write(entry)
        client.flush()
    client.read_until(lambda: len(client.unchained) >= 5, 60)
    assert {one.reason for one in client.unchained} == {"record-unreadable"}
    session.do(op.Alive)
    assert resident_megabytes(worker._process.pid) - before < MEGABYTES_MAX
