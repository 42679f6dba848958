"""Sends that come twice: a destination with a deduplication window takes each id once (§5)."""

from __future__ import annotations

from datetime import timedelta

import pytest

import ledgermq


@pytest.fixture
def remembering(connection, named) -> str:
    """A queue that remembers a hundred ids for ten minutes."""
    connection.admin.create_queue(
        named, deduplication_window_ms=timedelta(minutes=10), deduplication_ids_max=100
    )
    return named


def bodies(connection, queue: str) -> list[object]:
    """What the queue holds."""
    with connection.session() as session, session.browser(f"queue:{queue}") as browser:
        return [message.body for message in browser]


def test_a_second_send_of_an_id_vanishes_and_its_receipt_says_so(connection, remembering):
    """Of whichever session; the number is that of the message that is there."""
    with connection.session() as session, connection.session() as other:
        producer = session.producer(f"queue:{remembering}")
        first = producer.send("a", deduplication_id="order-1")
        assert not first.duplicate
        second = other.producer(f"queue:{remembering}").send("a", deduplication_id="order-1")
        assert second.duplicate
        assert second.sequence == first.sequence == 0
        assert producer.send("b", deduplication_id="order-2").sequence == 1
    assert bodies(connection, remembering) == ["a", "b"]


def test_ids_sent_ahead_are_kept_apart_from_what_is_gathered(connection, remembering):
    """Each named message is an operation of its own; the order is that of the sends."""
    with connection.session() as session:
        producer = session.producer(f"queue:{remembering}")
        names = [None, None, "x", None, "x", "y", None, None, "y", None]
        futures = [
            producer.send_async(str(number), deduplication_id=name)
            for number, name in enumerate(names)
        ]
        receipts = [future.result(20) for future in futures]
    assert [number for number, one in enumerate(receipts) if one.duplicate] == [4, 8]
    assert [one.sequence for one in receipts] == [0, 1, 2, 3, 2, 4, 5, 6, 4, 7]
    assert bodies(connection, remembering) == list("01235679")


def test_a_unit_of_work_with_a_duplicate_is_rolled_back_whole(connection, remembering):
    """Commit says which; the session goes on, and what was not put before can be put."""
    with connection.session() as session, connection.session(transacted=True) as unit:
        session.producer(f"queue:{remembering}").send("a", deduplication_id="order-1")
        producer = unit.producer(f"queue:{remembering}")
        producer.send("b")
        producer.send("c", deduplication_id="order-2")
        producer.send("a", deduplication_id="order-1")
        producer.send("d")
        with pytest.raises(ledgermq.DuplicatePutError, match="'order-1' was put to queue:"):
            unit.commit()
        assert bodies(connection, remembering) == ["a"]
        receipts = [producer.send("c", deduplication_id="order-2"), producer.send("d")]
        unit.commit()
        assert [one.sequence for one in receipts] == [1, 2]
        producer.send("x", deduplication_id="order-3")
        unit.rollback()
        producer.send("x", deduplication_id="order-3")
        unit.commit()
    assert bodies(connection, remembering) == ["a", "c", "d", "x"]


def test_an_id_is_refused_where_nobody_looks_for_it_and_where_it_is_none(
    connection, remembering, named
):
    """Who names a message relies on it; nothing is sent."""
    with connection.session() as session:
        producer = session.producer(f"queue:{named}.plain")
        with pytest.raises(ledgermq.RefusedError, match="remembers no deduplication ids") as told:
            producer.send("a", deduplication_id="x")
        assert told.value.code == "deduplication-off"
        producer = session.producer(f"queue:{remembering}")
        for name in ("", "x" * 129):
            with pytest.raises(ledgermq.IllegalStateError, match="1 to 128 characters"):
                producer.send("a", deduplication_id=name)
        with pytest.raises(ledgermq.ArgumentTypeError, match="deduplication_id"):
            producer.send("a", deduplication_id=7)
        with pytest.raises(ledgermq.IllegalStateError, match="in no group"):
            producer.send("a", deduplication_id="x", group=ledgermq.GroupPlace())
        assert producer.send("a", deduplication_id="x" * 128).sequence == 0
    assert bodies(connection, remembering) == ["a"]


def test_the_window_is_a_setting_of_queues_and_topics(connection, remembering, named):
    """Both values or none; the status tells them, 0 takes them away."""
    admin = connection.admin
    told = admin.queue_status(remembering).settings
    assert (told["deduplication_window_ms"], told["deduplication_ids_max"]) == (600_000, 100)
    with pytest.raises(ledgermq.RefusedError, match="give both"):
        admin.alter_queue(remembering, deduplication_ids_max=0)
    admin.alter_queue(remembering, deduplication_window_ms=0, deduplication_ids_max=0)
    assert admin.queue_status(remembering).settings["deduplication_window_ms"] == 0
    admin.create_topic(named, deduplication_window_ms=5_000, deduplication_ids_max=1)
    assert admin.topic(named).settings["deduplication_ids_max"] == 1
    with connection.session() as session:
        producer = session.producer(f"topic:{named}")
        assert [producer.send("a", deduplication_id="x").duplicate for _ in range(2)] == [
            False,
            True,
        ]


def test_coroutines_send_once_too(run, connection, remembering):
    """The engine is the same."""

    async def send(opened) -> list[bool]:
        async with opened.session() as session:
            producer = session.producer(f"queue:{remembering}")
            return [
                (await producer.send("a", deduplication_id="order-1")).duplicate for _ in range(2)
            ]

    assert run(send) == [False, True]
    assert bodies(connection, remembering) == ["a"]
