"""States and answers that one record has no room for, on a real broker (D5, H2, H28)."""

import json
import os

import pytest

from ledgermq.protocol import operations as op
from ledgermq.protocol.operations import NO_HEADER
from ledgermq.wire.framing.codec import decode_record
from support.brokers import topic_surgery as surgery
from support.checks.history import check_history

pytestmark = pytest.mark.kafka

TOGETHER = 100
QUEUES = 12_000


def put_with_headers(session, count: int, size: int) -> None:
    """Puts messages with one property of that size each, some at a time."""
    for _ in range(0, count, TOGETHER):
        messages = [
            {
                "message_id": os.urandom(16),
                "priority": 4,
                "persistent": True,
                "content": b"x",
                "header": {**NO_HEADER, "properties": {"p": "z" * size}},
            }
            for _ in range(TOGETHER)
        ]
        session.do(op.Put, destination="queue:q", messages=messages)


def test_headers_of_22_mb_are_checkpointed_and_in_flight_they_are_caught_up_with(place):
    """1,100 messages with a property of 20 KB: no checkpoint was ever written again, and RESYNC
    was refused for its size once they were in flight.
    """
    worker = place.worker("first", CHECKPOINT_SECONDS=3600)
    client = place.client()
    session = client.open("CLIENT")
    put_with_headers(session, 1_100, 20_000)
    assert client.ask("CHECKPOINT")["reason"] == ""
    assert worker.stop() == 0
    worker = place.worker("second", CHECKPOINT_SECONDS=3600)
    assert "(from a checkpoint)" in worker.log
    session.consumer(1, "queue:q", 1_100)
    client.read_until(lambda: session.deliveries == 1_100, 30.0)
    pages = [client.ask("RESYNC")]
    while pages[-1]["next"]:
        pages.append(client.ask("RESYNC", after=pages[-1]["next"]))
    assert len(pages) > 3
    told = [datum for page in pages for name, datum in page["outcomes"] if name.endswith("ivered")]
    numbers = [
        number
        for one in told
        for number in range(one["first_delivery"], one["first_delivery"] + len(one["messages"]))
    ]
    assert numbers == list(range(1, 1_101))
    assert len({page["position"] for page in pages}) == 1
    check_history(place)


def test_a_client_in_a_hole_is_told_all_that_is_in_flight(place, monkeypatch):
    """H2: 12 MB in flight, and every delivery of it lost: all of it comes, each message once."""
    place.worker()
    with place.connect() as connection:
        session = connection.session(transacted=True)
        producer = session.producer("queue:q")
        for number in range(12):
            producer.send(bytes([number]) * 1_000_000)
        session.commit()
        read, lost = connection._running.lane.read, []

        def lossy(seconds):
            values, missing = read(seconds)
            gone = [one for one in values if len(lost) < 12 and b"queue:q" in one[:2_000_000]]
            lost.extend(gone)
            return [one for one in values if one not in gone], missing

        monkeypatch.setattr(connection._running.lane, "read", lossy)
        consumer = session.consumer("queue:q", prefetch=20)
        got = [consumer.receive(timeout=20) for _ in range(12)]
        assert len(lost) > 3
        assert [one.body[:1] for one in got] == [bytes([number]) for number in range(12)]
        assert connection._running.questions.in_flight_of(session.handle) == set(range(1, 13))
        assert consumer.receive(timeout=0.5) is None
        session.commit()
        assert connection.admin.queue_status("q").message_count == 0


@pytest.mark.long
def test_12_000_queues_are_listed_and_a_restart_has_them(place):
    """`queue list` was refused for its size; a checkpoint of as many queues is whole."""
    worker = place.worker("first", CHECKPOINT_SECONDS=3600)
    session = place.client().open("CLIENT")
    for start in range(0, QUEUES, 200):
        for number in range(start, start + 200):
            last = session.write(op.CreateQueue, queue=f"queue-{number:05}")
        session.reply(last, 60.0)
    with place.connect() as connection:
        found = connection.admin.list_queues()
        digest = connection.admin.checkpoint().digest
    assert [one.name for one in found] == [f"queue-{number:05}" for number in range(QUEUES)]
    assert worker.stop() == 0
    worker = place.worker("second", CHECKPOINT_SECONDS=3600)
    assert "(from a checkpoint)" in worker.log
    first = place.client().ask("QUEUES")
    assert first["next"]
    assert len(json.loads(first["document"])) < QUEUES
    manifests = [key for key in surgery.checkpoint_shelf(place) if "/manifest/" in key]
    values = surgery.checkpoint_shelf(place)
    assert digest in {decode_record(values[one])[1]["digest"] for one in manifests}
