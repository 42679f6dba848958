"""Questions that wait for a position: as many as a worker has room for."""

import asyncio
from types import SimpleNamespace

import pytest

from ledgermq.core.apply import new_state
from ledgermq.processor.owner.answers import WAITING_BYTES_MAX, WAITING_MAX, Answerer
from ledgermq.wire.framing.codec import decode_record


def questions_left(count, size_bytes):
    """The numbers of those that are answered, of so many that wait and of which each is so long."""
    sent = []
    lanes = SimpleNamespace(send_answer=lambda *told: sent.append(told[2]))
    answerer = Answerer("QM1", "w", lanes, None, None)
    common = {"connection": bytes(16), "lane": 0, "kind": "MANAGER", "after": ""}
    for number in range(count):
        ask = common | {"question": number, "not_before": 100, "wait_ms": 0}
        answerer.take(ask, size_bytes)
    asyncio.run(answerer.answer_due(new_state()))
    return [decode_record(value)[1]["question"] for value in sent]


@pytest.mark.parametrize(
    ("count", "size_bytes"),
    [(WAITING_MAX, 100), (8, WAITING_BYTES_MAX // 8), (1, 9 * 1024 * 1024)],
)
def test_questions_wait_as_long_as_there_is_room(count, size_bytes):
    """Also the largest that a record holds."""
    assert questions_left(count, size_bytes) == list(range(count))


@pytest.mark.parametrize(
    ("count", "size_bytes"), [(WAITING_MAX + 1, 100), (200, 1024 * 1024), (9, 9 * 1024 * 1024)]
)
def test_of_more_questions_than_there_is_room_for_the_latest_are_left(count, size_bytes):
    """A thousand long ones took a gigabyte of the worker's memory for five minutes."""
    left = questions_left(count, size_bytes)
    assert left == list(range(count - len(left), count))
    assert 1 <= len(left) <= WAITING_MAX // 2 + 1
    assert len(left) * size_bytes <= max(WAITING_BYTES_MAX, size_bytes)


def test_that_questions_are_dropped_is_said_once_for_a_flood(caplog):
    """A line for every four of them would fill the disk with the worker's log."""
    questions_left(200, 1024 * 1024)
    assert [record.message.count("half are dropped") for record in caplog.records] == [1]


def test_what_is_asked_again_before_it_is_answered_is_answered_once():
    """Questions that took longer than a client waits before it asks again never came to an end."""
    sent = []
    lanes = SimpleNamespace(send_answer=lambda *told: sent.append(told[2]))
    answerer = Answerer("QM1", "w", lanes, None, None)
    common = {"lane": 0, "kind": "MANAGER", "after": "", "not_before": -1, "wait_ms": 0}
    for name, number in ((b"a", 1), (b"a", 1), (b"a", 2), (b"b", 1), (b"a", 1), (b"b", 1)):
        answerer.take(common | {"connection": name * 16, "question": number}, 100)
    asyncio.run(answerer.answer_due(new_state()))
    assert [decode_record(value)[1]["question"] for value in sent] == [1, 2, 1]
