"""Replaying as the client does it: copies that name their originals, and what stops it."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest

import ledgermq
from ledgermq.client.admin.replaying import Pace, replaying
from support.messages.journaled import ENQUEUED, ORIGINAL, journaled


def put(connection, messages, **options):
    """How many copies are put by a replay of the name `again`."""
    with replaying(connection, "again") as begun:
        return begun.put(messages, **options)


def numbers(connection, queue="q"):
    """Which messages of their Put the copies on a queue are of."""
    copies = connection.browser(f"queue:{queue}")
    return [int(one.properties["LedgerMQ_ReplayedFrom"].split("/")[1]) for one in copies]


def test_a_copy_has_what_its_original_had_and_names_it_and_the_replay(memory):
    """Marks of an earlier replay, of which the original is a copy, give way to its own."""
    marked = {"color": "red", "LedgerMQ_Replay": "other", "LedgerMQ_ReplayedFrom": "QM1@1/0"}
    one = journaled({"number": 1}, properties=marked, correlation_id="c", delivery_delay_ms=60_000)
    with memory.connect() as connection:
        assert put(connection, [one]) == 1
        (copy,) = connection.browser("queue:q")
    assert (copy.body, copy.reply_to, copy.correlation_id) == ({"number": 1}, "queue:answers", "c")
    assert (copy.priority, copy.persistent, copy.expires_at) == (7, False, None)
    assert copy.message_id != ORIGINAL
    assert dict(copy.properties) == {
        "color": "red",
        "LedgerMQ_ReplayedMessageId": ORIGINAL,
        "LedgerMQ_ReplayedFrom": "QM1@7/0",
        "LedgerMQ_Replay": "again",
    }


def test_what_cannot_be_put_is_named_and_all_before_it_is_there(memory):
    """Also what was in one unit of work with it; what follows it is not put."""
    with memory.connect() as connection:
        connection.admin.create_queue("closed", puts_disabled=True)
        messages = [journaled("x", number=one) for one in range(1, 120)]
        messages.insert(110, journaled("no", destination="queue:closed", number=500))
        told = []
        with pytest.raises(ledgermq.ReplayStoppedError, match=f"{500:032x}") as caught:
            put(connection, messages, tell=told.append)
        assert "put at QM1@7/500" in str(caught.value)
        assert any(
            note.startswith("messages that were put before that: 110;")
            for note in caught.value.__notes__
        )
        assert isinstance(caught.value.__cause__, ledgermq.LedgerMQError)
        assert numbers(connection) == list(range(1, 111))
    assert (told[0], told[-1]) == (100, 110)


def test_a_replay_goes_on_where_only_the_unit_of_work_was_too_large(memory):
    """One by one its messages fit a segment, and each is there once (DB-09), also that which the
    unit of work had already.
    """
    messages = [
        journaled(b"x" * 60_000, number=one, destination=f"queue:{name}")
        for one, name in enumerate("abc", 1)
    ]
    with memory.connect() as connection:
        connection.admin.alter_queue_manager(segment_bytes=100 * 1024)
        assert put(connection, messages) == 3
        assert [numbers(connection, name) for name in "abc"] == [[1], [2], [3]]


def test_the_pace_of_the_originals_parts_units_of_work(memory, monkeypatch):
    """What came together is put together, what came later waits, here for half as long."""
    now, slept = [100.0], []

    def sleep(seconds):
        slept.append(seconds)
        now[0] += seconds

    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=sleep)
    for module in ("copies", "replaying"):
        monkeypatch.setattr(f"ledgermq.client.admin.{module}.time", clock)
    messages = [
        replace(journaled("x", number=at), enqueued_at=ENQUEUED + timedelta(seconds=seconds))
        for at, seconds in enumerate([0, 0, 60, 60, 60, 120], 1)
    ]
    told = []
    with memory.connect() as connection:
        assert put(connection, messages, pace=Pace(2.0), tell=told.append) == 6
        assert numbers(connection) == [1, 2, 3, 4, 5, 6]
    assert told == [2, 5, 6]
    assert [one for one in slept if one] == [30.0, 30.0]


def test_a_replay_that_lost_its_session_puts_nothing_more(memory):
    """Nobody knows then whether another run began, so it ends instead of opening a session."""
    with memory.connect() as connection, memory.connect() as other:
        with replaying(connection, "again") as begun:
            other.admin.end_session(begun.opened_at, reason="test", actor="test")
            with pytest.raises(ledgermq.LedgerMQError) as caught:
                begun.put([journaled("x", number=1), journaled("y", number=2)])
        assert not isinstance(caught.value, ledgermq.ReplayStoppedError)
        assert any("run the same again" in note for note in caught.value.__notes__)
        assert not other.admin.list_queues()
