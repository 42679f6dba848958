"""Records that are no operation: refused with position and reason, never skipped, never fatal
(F11).
"""

import os
import time

import pytest

from ledgermq.protocol import operations as op
from ledgermq.protocol.administration import VersionOffered
from ledgermq.protocol.outcomes import Accepted
from ledgermq.wire.framing.codec import encode_operation
from ledgermq.wire.framing.headers import operation_headers
from support.brokers import topic_surgery as surgery
from support.brokers.traffic import Traffic
from support.checks.history import check_history, read_partition

pytestmark = pytest.mark.kafka

ALIVE = encode_operation(op.Alive(session=0, session_sequence=1, answered_through=0))

RECORDS = {
    "record-empty": None,
    "record-unreadable": ALIVE[:-1],
    "schema-unknown": b"\xc3\x01" + bytes(8) + b"what a newer version might write",
}


def wait_for_refusal(client, position):
    """The refusal of a position; it comes outside the chain."""
    client.read_until(lambda: [one for one in client.unchained if one.position == position])
    return next(one for one in client.unchained if one.position == position)


def again_until(client, write, came, seconds=30.0):
    """Writes every second until what is waited for came."""
    limit = time.monotonic() + seconds
    while not came():
        assert time.monotonic() < limit, "what was waited for did not come"
        write()
        client.flush()
        client.read(1.0)


@pytest.mark.parametrize("reason", RECORDS)
def test_an_unreadable_record_is_refused_where_its_headers_say(place, reason):
    """The refusal names position and reason, and goes to the connection in the headers (H29)."""
    worker = place.worker()
    client = place.client(1)
    headers = operation_headers("QM1", client.connection, 1, 7, "ledgermq.operation.Alive")
    appended = client.write_raw(RECORDS[reason], headers=headers)
    client.flush()
    refusal = wait_for_refusal(client, appended[0])
    assert refusal.reason == reason
    session = client.open()
    session.put("queue:a", 1)
    session.do(op.Commit, deliveries=[], puts=1)
    assert worker.code is None
    check_history(place)


def test_a_refusal_that_nobody_can_be_told_stands_on_the_first_lane(place):
    """Without readable headers the refusal goes to lane 0 with an empty key."""
    place.worker()
    client = place.client()
    appended = client.write_raw(b"garbage", headers=[("ledgermq-connection", b"not hex")])
    client.flush()
    client.ask("QUEUE_MANAGER", not_before=appended[0], wait_ms=20_000)
    records = read_partition(place.bootstrap, place.topics.outcomes, 0)
    assert b"" in [record.key() for record in records]
    check_history(place)


def test_flipped_bits_anywhere_in_a_record_never_stop_the_worker(place):
    """Every single-bit flip of a Put is an operation or a refusal; the worker goes on."""
    worker = place.worker()
    client = place.client()
    session = client.open()
    value = encode_operation(
        op.Put(
            session=session.handle,
            session_sequence=1,
            answered_through=0,
            destination="queue:a",
            messages=[
                {
                    "message_id": bytes(16),
                    "priority": 4,
                    "persistent": True,
                    "content": b"body",
                }
            ],
        )
    )
    for bit in range(len(value) * 8):
        flipped = bytearray(value)
        flipped[bit // 8] ^= 1 << bit % 8
        client.write_raw(bytes(flipped))
    client.flush()
    last = client.write_raw(b"end")
    client.flush()
    client.ask("QUEUE_MANAGER", not_before=last[0], wait_ms=30_000, wait_seconds=40.0)
    assert worker.code is None
    fold, _ = check_history(place)
    assert len({getattr(one, "reason", "") for one in fold.outcomes.values()}) > 3


def test_records_of_random_bytes_and_of_the_largest_size_are_refused(place):
    """Random bytes behind a good frame, and 8 MiB of nothing, are refused one by one."""
    worker = place.worker()
    client = place.client()
    for _ in range(200):
        client.write_raw(ALIVE[:10] + os.urandom(30))
    huge = client.write_raw(bytes(8 * 1024 * 1024 - 200))
    client.flush()
    client.ask("QUEUE_MANAGER", not_before=huge[0], wait_ms=30_000, wait_seconds=40.0)
    assert worker.code is None
    check_history(place)


def test_a_record_with_its_writers_time_is_refused(place):
    """A record not stamped by the log cannot move time: timestamp-untrusted (H6)."""
    place.worker()
    client = place.client()
    session = client.open()
    surgery.alter_topic(place, place.topics.operations, message_timestamp_type="CreateTime")
    alive = op.Alive(session=session.handle, session_sequence=1, answered_through=0)
    in_half_an_hour_ms = int((time.time() + 1800) * 1000)

    def write():
        client.write(alive, session.handle, 1, timestamp=in_half_an_hour_ms)

    # A broker heeds a changed setting a moment after it has said that it took it.
    again_until(client, write, lambda: client.unchained)
    surgery.alter_topic(place, place.topics.operations, message_timestamp_type="LogAppendTime")
    again_until(
        client, write, lambda: any(isinstance(one, Accepted) for one in client.outcomes.values())
    )
    assert {one.reason for one in client.unchained} == {"timestamp-untrusted"}
    check_history(place)


def test_traffic_goes_on_between_unreadable_records(place):
    """Good and bad records in turn: the good ones act, the bad ones are refused."""
    place.worker()
    client = place.client(0)
    traffic = Traffic(client, place.client(1))
    for value in [*RECORDS.values(), b"", b"\xc3", ALIVE + b"spare"] * 3:
        client.write_raw(value)
        traffic.step()
    traffic.settle()
    check_history(place)


def test_an_unknown_active_version_stops_the_worker_before_the_next_entry(place):
    """After an Upgrade to a version it lacks the worker stops, says so, and stays stopped (H3)."""
    worker = place.worker("first")
    client = place.client()
    session = client.open()
    client.write(VersionOffered(worker="w", version=2))
    session.do(op.Upgrade, version=2)
    session.write(op.Alive)
    client.flush()
    assert worker.wait() == 4
    assert "protocol version 2 is active, this worker knows 1" in worker.log
    again = place.worker("first", ready=False)
    assert again.wait() == 4
