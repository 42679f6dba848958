"""Storage as applications see it: segments, refusals, settings (DB-05 to DB-15, DB-20)."""

import pytest

import ledgermq
from ledgermq.protocol.documents.fields import status_of
from ledgermq.protocol.documents.storage import OldestMessage


def small(broker, send_timeout_seconds=10, **settings):
    """A connection to a queue manager whose segments take 4,096 bytes."""
    connection = broker.connect(send_timeout_seconds=send_timeout_seconds)
    connection.admin.alter_queue_manager(segment_bytes=4_096, **settings)
    return connection


def test_storage_begins_with_four_segments_of_16_mebibytes(memory):
    """The first is active, the others are free (DB-06, DB-07, DB-11)."""
    with memory.connect() as connection:
        found = connection.admin.storage()
    assert (found.segment_bytes, found.segments_min, found.segments_max) == (16 * 2**20, 4, 0)
    assert (found.allocated, found.free, found.live_messages) == (4, 3, 0)
    told = [(one.number, one.state) for one in found.segments]
    free = [(number, "free") for number in ("7ef326", "7ef327", "7ef328")]
    assert told == [("7ef325", "active"), *free]


def test_segment_says_which_message_pins_it(memory):
    """The oldest live message, with its queue and number; nothing once it is acknowledged."""
    with small(memory) as connection, connection.session(ack="CLIENT") as session:
        producer = session.producer("queue:q")
        for _ in range(3):
            producer.send(b"x" * 1_500)
        consumer = session.consumer("queue:q")
        consumer.receive(timeout=5).acknowledge()
        found = connection.admin.storage()
        first, second = found.segments[:2]
        assert (first.state, first.live_messages, second.state) == ("pinned", 1, "active")
        assert first.live_bytes < first.bytes <= 4_096
        assert first.oldest is not None
        assert (first.oldest.destination, first.oldest.sequence) == ("queue:q", 1)
        consumer.receive(timeout=5).acknowledge()
        freed = connection.admin.storage().segments[0]
    assert (freed.state, freed.bytes, freed.oldest) == ("free", 0, None)


def test_uncommitted_put_that_pins_a_segment_has_no_number():
    """It has its room from the put on (DB-14)."""
    place = {"put_position": 7, "put_index": 1}
    told = {"destination": "queue:q", "sequence": -1, "enqueued_at": None, **place}
    assert status_of(OldestMessage, told) == OldestMessage(
        destination="queue:q", sequence=None, enqueued_at=None, **place
    )


def test_message_larger_than_a_segment_is_refused_and_another_is_not(memory):
    """`transaction-too-large`: outside a unit of work a message is one of its own (DB-09)."""
    with small(memory) as connection, connection.session() as session:
        producer = session.producer("queue:q")
        with pytest.raises(ledgermq.TransactionTooLargeError) as caught:
            producer.send(b"x" * 5_000)
        producer.send(b"x")
        assert connection.admin.queue_status("q").message_count == 1
    assert caught.value.code == "transaction-too-large"
    assert "a segment takes 4096" in str(caught.value)


def test_full_storage_refuses_puts_and_takes_them_again_once_there_is_room(memory):
    """`storage-full` says that it may work when tried again; nothing ends (DB-20, decision 9)."""
    with (
        small(memory, 0, segments_min=1, segments_max=1) as connection,
        connection.session(ack="CLIENT") as session,
    ):
        producer = session.producer("queue:q")
        producer.send(b"x" * 3_000)
        with pytest.raises(ledgermq.StorageFullError) as caught:
            producer.send(b"y" * 3_000)
        assert (caught.value.code, caught.value.retryable) == ("storage-full", True)
        session.consumer("queue:q").receive(timeout=5).acknowledge()
        producer.send(b"y" * 3_000)
        assert connection.admin.queue_status("q").message_count == 1


def test_full_storage_holds_puts_up_for_the_send_time_out(memory):
    """As a quota would: it goes in once there is room, or fails without a trace (decision 9)."""
    with (
        small(memory, 10, segments_min=1, segments_max=1) as connection,
        connection.session(ack="CLIENT") as session,
    ):
        producer = session.producer("queue:q")
        producer.send(b"x" * 3_000)
        waiting = producer.send_async(b"y" * 3_000)
        assert connection.admin.queue_status("q").blocked.puts == 1
        session.consumer("queue:q").receive(timeout=5).acknowledge()
        assert waiting.result(5).sequence == 1
        late = producer.send_async(b"z" * 3_000)
        memory.advance(11)
        with pytest.raises(ledgermq.QuotaExceededError):
            late.result(5)
        assert connection.admin.queue_status("q").next_sequence == 2


def test_unit_of_work_goes_on_without_the_put_that_was_too_large(memory):
    """The commit says so and undoes nothing; the next commits what fitted (DB-09, decision 8)."""
    with small(memory) as connection, connection.session(transacted=True) as session:
        producer = session.producer("queue:q")
        fitted = producer.send(b"x" * 3_000)
        producer.flush()
        producer.send(b"y" * 3_000)
        with pytest.raises(ledgermq.TransactionTooLargeError):
            session.commit()
        assert connection.admin.queue_status("q").uncommitted_puts == 1
        other = producer.send(b"z")
        assert session.commit().enqueued[0].count == 2
        assert (fitted.sequence, other.sequence) == (0, 1)
        assert connection.admin.queue_status("q").message_count == 2


def test_unit_of_work_can_be_rolled_back_after_a_put_that_was_too_large(memory):
    """As can any other; the next one works."""
    with small(memory) as connection, connection.session(transacted=True) as session:
        producer = session.producer("queue:q")
        producer.send(b"x" * 3_000)
        producer.send(b"y" * 3_000)
        with pytest.raises(ledgermq.TransactionTooLargeError):
            session.commit()
        session.rollback()
        producer.send(b"z" * 3_000)
        session.commit()
        assert connection.admin.queue_status("q").message_count == 1


@pytest.mark.parametrize("flushed", ["session", "producer"])
def test_flush_raises_what_refused_a_put_of_the_unit_of_work(memory, flushed):
    """Once: what is left can be committed (DB-09)."""
    with small(memory) as connection, connection.session(transacted=True) as session:
        producer = session.producer("queue:q")
        flush = session.flush if flushed == "session" else producer.flush
        producer.send(b"x" * 3_000)
        flush()
        producer.send(b"y" * 3_000)
        with pytest.raises(ledgermq.TransactionTooLargeError):
            flush()
        flush()
        session.commit()
        assert connection.admin.queue_status("q").message_count == 1


def test_a_put_that_was_refused_for_anything_else_undoes_its_unit_of_work(memory):
    """Also if another was too large: nobody was told that a part is missing (SES-20)."""
    with small(memory) as connection, connection.session(transacted=True) as session:
        connection.admin.create_queue("q")
        connection.admin.create_queue("closed", puts_disabled=True)
        producer = session.producer("queue:q")
        producer.send(b"x" * 3_000)
        producer.send(b"y" * 3_000)
        session.producer("queue:closed").send(b"z")
        with pytest.raises(ledgermq.TransactionRolledBackError) as caught:
            session.commit()
        assert isinstance(caught.value.__cause__, ledgermq.PutsDisabledError)
        assert connection.admin.queue_status("q").uncommitted_puts == 0


def test_a_block_without_the_put_that_was_too_large_is_rolled_back(memory):
    """A block is done as a whole, or not at all (DB-09)."""
    with small(memory) as connection, connection.session(transacted=True) as session:
        connection.admin.create_queue("q")
        producer = session.producer("queue:q")

        def fails():
            with session.transaction():
                producer.send(b"x" * 3_000)
                producer.send(b"y" * 3_000)

        with pytest.raises(ledgermq.TransactionTooLargeError):
            fails()
        session.commit()
        assert connection.admin.queue_status("q").message_count == 0


def test_settings_of_the_storage_are_checked(memory):
    """A limit below the minimum, and a segment of nothing, are refused (DB-10)."""
    with memory.connect() as connection:
        for settings in ({"segments_max": 3}, {"segment_bytes": 0}, {"segments_min": 100_000}):
            with pytest.raises(ledgermq.RefusedError) as caught:
                connection.admin.alter_queue_manager(**settings)
            assert caught.value.code == "setting-invalid"
        connection.admin.alter_queue_manager(segments_min=6, segments_max=6)
        found = connection.admin.storage()
    assert (found.allocated, found.segments_min, found.segments_max) == (6, 6, 6)


def test_many_segments_are_told_page_by_page(memory, monkeypatch):
    """All of them, each once, in order of their numbers."""
    monkeypatch.setattr("ledgermq.client.admin.statuses.SEGMENTS_PER_PAGE", 3)
    with memory.connect() as connection:
        connection.admin.alter_queue_manager(segments_min=7)
        found = connection.admin.storage()
    assert [int(one.number, 16) - 0x7EF325 for one in found.segments] == list(range(7))


def test_queue_manager_in_memory_has_no_cache_and_no_disk(memory):
    """Both are the worker's to tell."""
    with memory.connect() as connection:
        found = connection.admin.storage()
    assert (found.cache, found.log_bytes) == (None, None)


def test_worker_tells_its_cache_and_the_size_of_the_log(installation):
    """What was just put is in the cache of 64 MiB (DB-02), and on the broker's disk (kafka)."""
    with installation.connect() as connection, connection.session() as session:
        before = connection.admin.storage()
        session.producer("queue:storage.cache").send(b"x" * 10_000)
        assert session.consumer("queue:storage.cache").receive(timeout=20).body == b"x" * 10_000
        found = connection.admin.storage()
    assert found.cache is not None
    assert found.cache.limit_bytes == 64 * 2**20
    assert found.cache.hits > before.cache.hits
    assert found.log_bytes is not None
    grown = {name: size - before.log_bytes[name] for name, size in found.log_bytes.items()}
    assert sorted(grown) == ["checkpoints", "operations", "outcomes", "questions"]
    assert grown["operations"] >= 10_000
    assert grown["outcomes"] >= 10_000
