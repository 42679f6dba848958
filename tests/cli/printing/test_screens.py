"""The queue status screen, field by field (SEQ-13)."""

import pytest

from ledgermq.cli.printing.screens import caps_time, screen, screen_document

# 21 March 2005, 08:33:09 UTC.
NINE_PAST = 1_111_393_989_000_000

STATUS = {
    "name": "PTP",
    "created_position": 3,
    "description": "",
    "message_bytes_max": 0,
    "gets_disabled": False,
    "receivers": 2,
    "message_count": 4,
    "sent_and_committed": 245,
    "removed_by_administration": 0,
    "min_sequence": 245,
    "max_sequence": 248,
    "next_sequence": 249,
    "first_enqueued_at": NINE_PAST,
    "last_enqueued_at": NINE_PAST + 1_999_999,
    "current": 4,
    "pending": 0,
    "uncommitted_puts": 0,
    "unacknowledged": 0,
    "uncommitted_gets": 0,
}

SCREEN = """\
Queue Name: PTP
First enqueue time: 03212005:08:33:09
Last enqueue time: 03212005:08:33:10
Number of current receivers: 2
Message count: 4
Messages sent and committed: 245
Min sequence number: 245
Max sequence number: 248
Suspended: No"""


def test_seq_13_screen_of_the_reference_is_word_for_word():
    """SEQ-13: the queue PTP of the Java CAPS reference prints as in the reference."""
    assert screen(STATUS) == SCREEN


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("name", "orders/EU", "Queue Name: orders/EU"),
        ("first_enqueued_at", NINE_PAST + 51_000_000, "First enqueue time: 03212005:08:34:00"),
        ("last_enqueued_at", NINE_PAST + 86_400_000_000, "Last enqueue time: 03222005:08:33:09"),
        ("receivers", 0, "Number of current receivers: 0"),
        ("message_count", 5, "Message count: 5"),
        ("sent_and_committed", 246, "Messages sent and committed: 246"),
        ("min_sequence", 246, "Min sequence number: 246"),
        ("max_sequence", 250, "Max sequence number: 250"),
        ("gets_disabled", True, "Suspended: Yes"),
    ],
)
def test_seq_13_each_field_changes_its_own_line(key, value, line):
    """SEQ-13: each of the nine fields shows in its line, and in no other."""
    before = SCREEN.splitlines()
    after = screen({**STATUS, key: value}).splitlines()
    changed = [new for old, new in zip(before, after, strict=True) if old != new]
    assert changed == [line]


def test_seq_19_times_are_blank_on_a_queue_that_never_held_a_message():
    """SEQ-19: without a time the line ends after its label."""
    lines = screen({**STATUS, "first_enqueued_at": None, "last_enqueued_at": None}).splitlines()
    assert lines[1:3] == ["First enqueue time: ", "Last enqueue time: "]


def test_times_are_utc_whatever_the_time_zone(live_in):
    """SEQ-19: the screen shows UTC also where the machine lives in another zone."""
    live_in("Asia/Kolkata")
    assert caps_time(NINE_PAST) == "03212005:08:33:09"


def test_programs_get_the_same_nine_values():
    """With --json the labels are keys in snake case; times are ISO 8601, Suspended is a boolean."""
    assert screen_document(STATUS) == {
        "queue_name": "PTP",
        "first_enqueue_time": "2005-03-21T08:33:09.000000Z",
        "last_enqueue_time": "2005-03-21T08:33:10.999999Z",
        "number_of_current_receivers": 2,
        "message_count": 4,
        "messages_sent_and_committed": 245,
        "min_sequence_number": 245,
        "max_sequence_number": 248,
        "suspended": False,
    }
