"""Journaling as applications see it: settings, status, and messages put again (DB-17, DB-19)."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

import ledgermq
from ledgermq.client.admin.copies import journal_message
from ledgermq.client.admin.republishing import republish
from support.messages.journaled import ORIGINAL, journaled


def received(connection, queue="q"):
    """All messages that a queue has."""
    return list(connection.browser(f"queue:{queue}"))


def test_journaling_is_off_until_it_is_turned_on(memory):
    """The status tells it with its lifetime, and where the journal begins (DB-17, DB-19)."""
    with memory.connect() as connection:
        status = connection.admin.queue_manager_status()
        assert (status.journaling, status.journal_lifetime_ms) == (False, 7 * 86_400_000)
        assert (status.journal_from, status.journal_needed_from) == (None, None)
        assert status.journal_backup is None
        assert connection.admin.log_pins().journal_position is None
        began = connection.admin.alter_queue_manager(journaling=True, journal_lifetime_ms=0)
        status = connection.admin.queue_manager_status()
        assert (status.journaling, status.journal_lifetime_ms) == (True, 0)
        assert (status.journal_from, status.journal_needed_from) == (began, began)
        assert connection.admin.log_pins().journal_position == began


def test_a_backup_is_told_of_and_refused_where_there_is_none(memory):
    """journal-empty and backup-invalid are RefusedError, with their code (DB-19)."""
    told = {"reason": "monthly", "actor": "ops"}
    with memory.connect() as connection:
        admin = connection.admin
        with pytest.raises(ledgermq.RefusedError) as caught:
            admin.back_up_journal(through=0, kept_from=0, needed_from=0, **told)
        assert caught.value.code == "journal-empty"
        began = admin.alter_queue_manager(journaling=True)
        with pytest.raises(ledgermq.RefusedError) as caught:
            admin.back_up_journal(through=99, kept_from=99, needed_from=99, **told)
        assert caught.value.code == "backup-invalid"
        here = admin.queue_manager_status()
        places = {"through": began + 1, "kept_from": began + 1, "needed_from": began}
        position = admin.back_up_journal(**places, **told)
        backup = admin.queue_manager_status().journal_backup
        assert backup is not None
        assert (backup.position, backup.time) == (position, here.time)
        assert {name: getattr(backup, name) for name in places} == places


def test_a_copy_has_what_its_original_had_and_names_it(memory):
    """Persistent, with an identity of its own; twice republished it is there twice (DB-19)."""
    one = journaled(
        {"number": 1},
        properties={"color": "red", "LedgerMQ": 1.5},
        correlation_id="c",
        type="number",
        time_to_live_ms=1,
        delivery_delay_ms=60_000,
        redelivery_limit=3,
    )
    with memory.connect() as connection:
        assert republish(connection, [one]) == 1
        assert republish(connection, [one], to="queue:other", time_to_live=60) == 1
        (copy,), (other,) = received(connection), received(connection, "other")
    assert (copy.body, copy.reply_to, copy.correlation_id) == ({"number": 1}, "queue:answers", "c")
    assert (copy.type, copy.priority, copy.persistent, copy.expires_at) == ("number", 7, True, None)
    assert other.expires_at is not None
    assert ORIGINAL not in (copy.message_id, other.message_id)
    for found in (copy, other):
        assert dict(found.properties) == {
            "color": "red",
            "LedgerMQ": 1.5,
            "LedgerMQ_JournalMessageId": ORIGINAL,
            "LedgerMQ_JournalDestination": "queue:q",
            "LedgerMQ_JournalPosition": 7,
        }


def test_a_copy_of_a_copy_names_the_first_original(memory):
    """So that one selector finds all copies of a message."""
    with memory.connect() as connection:
        republish(connection, [journaled("x")])
        (copy,) = received(connection)
        again = journaled("x", number=9, position=12, properties=dict(copy.properties))
        republish(connection, [again])
        same = f"LedgerMQ_JournalMessageId = '{ORIGINAL}'"
        assert len(list(connection.browser("queue:q", selector=same))) == 2


def test_many_go_in_units_of_work_that_a_segment_takes(memory):
    """At most 100 messages and 256 KiB each; a message larger than that goes alone (DB-09)."""
    large = [journaled(b"x" * 200_000, number=one) for one in range(1, 4)]
    small = [journaled("x", number=one) for one in range(10, 260)]
    told = []
    with memory.connect() as connection:
        connection.admin.alter_queue_manager(segment_bytes=300 * 1024)
        assert republish(connection, [*large, *small], tell=told.append) == 253
        assert len(received(connection)) == 253
    assert told == [1, 2, 102, 202, 253]


def test_what_was_put_before_a_failure_stays_and_is_counted(memory):
    """The text says how many, so that one can go on behind them."""
    with memory.connect() as connection:
        connection.admin.create_queue("closed", puts_disabled=True)
        messages = [journaled("x", number=one) for one in range(1, 151)]
        messages.append(journaled("no", destination="queue:closed"))
        with pytest.raises(ledgermq.RepublishStoppedError, match=r"^100 messages were") as caught:
            republish(connection, messages)
        assert isinstance(caught.value.__cause__, ledgermq.LedgerMQError)
        assert len(received(connection)) == 100


def test_what_no_copy_can_be_made_of_is_left_out_and_named(memory):
    """It counts for whoever goes on behind it, and stops only whom it is not told to."""
    broken = replace(journaled("x", number=2), content=b"garbage")
    messages = [journaled("x", number=1), broken, journaled("x", number=3)]
    told, left_out = [], []

    def leave_out(one, why):
        left_out.append((one.put_index, why))

    with memory.connect() as connection:
        assert republish(connection, messages, tell=told.append, leave_out=leave_out) == 2
        assert len(received(connection)) == 2
        with pytest.raises(ledgermq.RepublishStoppedError, match=r"^0 messages were"):
            republish(connection, messages)
    ((index, why),) = left_out
    assert (told, index) == ([3], 2)
    assert "cannot be read" in why


def test_copies_keep_their_group_unless_they_are_to_stand_alone(memory):
    """A topic takes no groups, so there they always do."""
    group = {
        "group_id": b"g" * 24,
        "group_sequence": 2,
        "offset": 0,
        "length": 0,
        "in_group": True,
        "last_in_group": True,
        "segment": False,
        "last_segment": False,
        "logical_order": True,
    }
    one = journaled("x", group=group)
    with memory.connect() as connection, connection.session() as session:
        republish(connection, [one])
        republish(connection, [one], to="queue:alone", groups=False)
        consumer = session.consumer("topic:t")
        republish(connection, [one], to="topic:t")
        assert consumer.receive(timeout=10).group_id is None
        (copy,), (alone,) = received(connection), received(connection, "alone")
    assert (copy.group_id, copy.group_sequence, copy.group_status) == (
        *(b"g" * 24, 2),
        ledgermq.GroupStatus.LAST_MESSAGE_IN_GROUP,
    )
    assert alone.group_id is None


def test_a_journaled_message_reads_like_a_browsed_one():
    """Body, properties and header fields, and where it was put."""
    message = journal_message(journaled("text", properties={"a": 1}, correlation_id="c"))
    assert (message.body, dict(message.properties), message.correlation_id) == (
        "text",
        {"a": 1},
        "c",
    )
    assert (message.destination, message.sequence, message.put_position) == ("queue:q", 0, 7)
    assert message.timestamp == datetime(2026, 1, 1, tzinfo=UTC)
    with pytest.raises(ledgermq.IllegalStateError):
        message.acknowledge()
