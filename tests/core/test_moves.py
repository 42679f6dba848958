"""Every move of a message is one of a literal table, and is reported to who listens (INF-19)."""

from copy import deepcopy

import pytest

from ledgermq.core.apply import apply, new_state
from ledgermq.core.entry import Entry
from ledgermq.core.moves import move
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.message_states import (
    AVAILABLE,
    CAUSES,
    CONSUMED,
    GONE,
    MOVES,
    NAMES,
    NEW,
    UNBORN,
)
from ledgermq.core.state.records import Message, Queue
from ledgermq.core.state.storage import FIRST_SEGMENT
from ledgermq.wire.framing.codec import decode_operation
from support.checkout import SCRIPTS
from support.checks.message_states import drawn, shown
from support.checks.moves_book import MovesBook
from support.checks.single_moves import Move, for_each
from support.generators.storage_generators import storage_history
from support.scripts.play import play, play_lines
from support.scripts.script import scripts_at


def test_the_protocol_shows_the_moves_that_the_fold_makes():
    """The diagram on the page is what `python -m support.checks.message_states` draws."""
    assert shown() == drawn()


@pytest.mark.slow
def test_scripts_come_to_every_move_and_every_cause():
    """Each line of the table is walked by some script, with each cause that a message goes for."""
    wanted = {(before, after, "") for before in MOVES for after in MOVES[before] if after != GONE}
    wanted |= {(before, GONE, cause) for before, causes in CAUSES.items() for cause in causes}
    missing = {(NAMES[one], NAMES[two], cause) for one, two, cause in wanted}
    for path in sorted(SCRIPTS.glob("*.txt")):
        for script in scripts_at(path):
            if missing:
                missing -= play(script, checked=False).book.seen.keys()
    assert not missing


def test_who_does_not_listen_gets_the_same_outcomes():
    """A listener changes nothing; one that sees entries from the middle on sees the same moves."""
    alone, heard, late = new_state(), new_state(), new_state()
    rows: list[Move] = []
    late_rows: list[Move] = []
    history = storage_history(3)
    for position, entry in enumerate(history):
        operation = decode_operation(entry.value)
        found = apply(alone, operation, position, entry.time)
        assert apply(heard, operation, position, entry.time, for_each(rows.append)) == found
        listener = for_each(late_rows.append) if position >= 20 else None
        assert apply(late, operation, position, entry.time, listener) == found
    assert late_rows == [one for one in rows if one.position >= 20]
    assert rows


def test_a_move_in_no_flight_names_no_consumer_and_no_delivery():
    """Consumers and deliveries are numbered from 1; 0 says that none had part in a move."""
    rows: list[Move] = []
    state = new_state()
    for position, entry in enumerate(storage_history(3)[:20]):
        apply(state, decode_operation(entry.value), position, entry.time, for_each(rows.append))
    came = [one for one in rows if one.before == NAMES[NEW]]
    assert came
    assert {(one.consumer, one.delivery) for one in came} == {(0, 0)}


def test_a_move_tells_its_session_and_how_many_backouts_do_not_count():
    """-1 is nobody's; of what a lost session held nobody knows whether it was handed over (H20)."""
    lines = """open CLIENT timeout=1000
        put q M{ttl=60s} -> enqueued 0..0
        consumer 1 q
        get 1 -> accepted; delivered M@0
        suspect S -> suspected
        tick +1s -> ended LOST returned=1
        tick +60s"""
    rows: list[Move] = []
    state = new_state()
    for position, (value, time) in enumerate(play_lines(lines).log):
        apply(state, decode_operation(value), position, time, for_each(rows.append))
    told = [(one.after, one.session, one.backouts, one.uncounted) for one in rows]
    assert told == [
        ("available", 0, 0, 0),
        ("unacknowledged", 0, 0, 0),
        ("available", 0, 1, 1),
        ("gone", -1, 1, 1),
    ]
    assert {one.segment for one in rows} == {FIRST_SEGMENT}


def test_a_move_that_is_none_raises():
    """A caller that asks for another move is wrong, and stops the fold at once."""
    queue = Queue("q", 0)
    entry = Entry(new_state(), 0)
    message = Message(queue, 0, 0, bytes(16), 4, True, 1)
    with pytest.raises(AssertionError, match="available to unborn is no move"):
        move(entry, queue, [message], AVAILABLE, UNBORN)
    with pytest.raises(AssertionError, match="available is not gone as consumed"):
        move(entry, queue, [message], AVAILABLE, GONE, cause=CONSUMED)


def test_a_book_finds_a_move_that_was_not_reported():
    """The book is not blind: what was not reported to it, it finds in the state."""
    found = 0
    for left_out in range(3, 12):
        state, book = new_state(), MovesBook()
        for position, entry in enumerate(storage_history(3)[:left_out]):
            apply(state, decode_operation(entry.value), position, entry.time, for_each(book.take))
        rows: list[Move] = []
        entry = storage_history(3)[left_out]
        apply(state, decode_operation(entry.value), left_out, entry.time, for_each(rows.append))
        for leave in range(len(rows)):
            with pytest.raises(AssertionError):
                _read(deepcopy(book), state, rows[:leave] + rows[leave + 1 :])
            found += 1
    assert found


def _read(book: MovesBook, state: QueueManager, rows: list[Move]) -> None:
    for step, row in enumerate(rows):
        book.take(row._replace(step=step))
    book.compare(state)
