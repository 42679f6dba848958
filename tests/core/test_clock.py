"""State time over clocks that leap and are set back (PROTOCOL.md §6; H6)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgermq.core.apply import apply, new_state, next_deadline
from ledgermq.core.clock import time_after
from ledgermq.protocol.operations import Tick, TimeAgreed
from ledgermq.wire.framing.codec import decode_operation
from support.checks import checks
from support.checks.checked_histories import check_new_history, examples
from support.generators.clock_generators import clock_histories
from support.messages.opening import opening
from support.planted.fold_faults import CLOCK
from support.planted.planted_faults import expect_found_by, named

SECOND = 1_000_000
DAY = 86_400 * SECOND
MINUTE = 60 * SECOND
STEPS = st.one_of(
    st.integers(-2 * MINUTE, 2 * MINUTE),
    st.sampled_from((0, 1, MINUTE, MINUTE + 1, -1, -MINUTE, -MINUTE - 1)),
    st.integers(-DAY, DAY),
)
# How the clock goes until an entry, and whether that is a TimeAgreed that agrees.
COURSES = st.lists(st.tuples(STEPS, st.booleans()), max_size=30)


def follow(clock, time, reference, course):
    """Yields what each entry comes to: clock, time and reference before and after, counted."""
    for step, agreed in course:
        clock = max(0, clock + step)
        after, kept, counts = time_after(time, reference, clock, agreed=agreed)
        yield clock, time, reference, after, kept, counts
        time, reference = after, kept


@given(COURSES)
def test_time_never_falls_and_a_reference_is_always_behind_it(course):
    """Whatever the clock does, state time never falls; while there is a reference it is below
    state time, and without one state time is an append time that counted (H6).
    """
    counted = {10 * DAY}
    for clock, time, reference, after, kept, counts in follow(10 * DAY, 10 * DAY, -1, course):
        assert after >= time
        assert kept < after
        if counts:
            counted.add(clock)
        else:
            assert (after, kept) == (time, reference)
        if kept < 0:
            assert after in counted


@given(COURSES)
def test_no_entry_moves_time_beyond_the_clock_but_by_seven_eighths_of_a_small_step(course):
    """TimeAgreed of anybody's, at any place, lets time pass no faster than the log's clock: an
    entry takes it to its own append time, or on by ⅞ of what that is above the reference (H6).
    """
    for clock, time, reference, after, _, _ in follow(10 * DAY, 10 * DAY, -1, course):
        passed = max(0, clock - reference) if reference >= 0 else 0
        if passed > MINUTE:
            passed = 0
        assert after <= max(time, clock, time + passed * 7 // 8)


@given(COURSES, st.lists(st.tuples(st.integers(0, MINUTE), st.booleans()), min_size=1))
def test_once_the_clock_is_healed_time_passes_and_the_clocks_come_together(course, healed):
    """After one TimeAgreed of a clock that goes on in steps of at most a minute, at least ⅞ of
    what passes is passed, up to 1 µs an entry, and state time comes no further ahead (H6).
    """
    start = (10 * DAY, 0, -1, 10 * DAY, -1, True)
    clock, _, _, time, reference, _ = [start, *follow(10 * DAY, 10 * DAY, -1, course)][-1]
    time, reference, counts = time_after(time, reference, clock, agreed=True)
    assert counts
    began_clock, began_time = max(clock, reference), time
    for number, (now, _, _, after, _, counted) in enumerate(
        follow(began_clock, time, reference, healed), start=1
    ):
        assert counted
        if began_time - began_clock > MINUTE:
            assert after - began_time >= (now - began_clock) * 7 // 8 - number
        assert max(0, after - now) <= max(0, began_time - began_clock) + number


@given(COURSES)
def test_a_deadline_that_the_clock_itself_has_reached_is_never_left_undone(course):
    """State time is at or above every append time that counted: however long it was ahead (H6)."""
    for clock, _, _, after, _, counts in follow(10 * DAY, 10 * DAY, -1, course):
        assert after >= clock or not counts


def test_a_day_ahead_is_caught_up_in_eight_days():
    """With a TimeAgreed each 40 s, a day is caught up after eight, and no earlier (H6)."""
    time, reference, counts = time_after(2 * DAY, -1, DAY, agreed=True)
    assert (time, reference, counts) == (2 * DAY, DAY, True)
    entries = 0
    while reference >= 0:
        time, reference, _ = time_after(time, reference, reference + 40 * SECOND, agreed=True)
        entries += 1
    assert entries == 8 * DAY // (40 * SECOND)
    assert time == 9 * DAY


def opened():
    """A state with an unconfirmed session, a day ahead of the clock."""
    state = new_state()
    apply(state, TimeAgreed(worker="w", writer_time=DAY), 0, DAY)
    apply(state, TimeAgreed(worker="w", writer_time=2 * DAY), 1, 2 * DAY)
    apply(state, opening(), 2, DAY)
    return state


def test_what_is_due_is_done_in_eight_sevenths_of_its_time_once_the_clock_is_agreed_on():
    """A session that never came ends 30 s · 8/7 after the TimeAgreed, not a day later (H6)."""
    state = opened()
    assert state.time_stood_still
    assert next_deadline(state) == 2 * DAY + 30 * SECOND
    apply(state, TimeAgreed(worker="w", writer_time=DAY), 3, DAY)
    moment = DAY + 30 * SECOND * 8 // 7 + 1
    assert not apply(state, Tick(worker="w"), 4, moment - 2)
    (ended,) = apply(state, Tick(worker="w"), 5, moment + 7)
    assert type(ended.outcome).__name__ == "SessionEnded"
    assert state.time_reference == moment + 7


@pytest.mark.parametrize("ahead", [False, True])
def test_the_reference_stands_in_a_checkpoint_only_while_there_is_one(ahead):
    """The Root of a state that is not ahead is written as it was before references came, in the
    schema without them; with one it is in the Root, and comes back (§2, §10).
    """
    state = opened()
    if ahead:
        apply(state, TimeAgreed(worker="w", writer_time=DAY), 3, DAY)
    frozen = checks.freeze(state)
    assert (frozen.root[2:10].hex() == "69f114e29461b9f0") is not ahead
    assert checks.thaw(frozen).time_reference == (DAY if ahead else -1)


@examples(60)
@given(clock_histories())
def test_histories_of_clocks_that_are_set_back_leave_a_state_that_the_model_agrees_with(history):
    """Outcomes as the model's, the same time and reference, invariants, and a checkpoint that
    tells all of it, after every entry (H6).
    """
    check_new_history(history)


@examples(20)
@given(clock_histories(steps=15))
def test_a_state_restored_while_time_is_ahead_goes_on_as_the_one_that_was_not(history):
    """From every split on the same outcomes, and in the end the same digest (D5)."""
    frozen, outcomes, state = [], [], new_state()
    for position, entry in enumerate(history):
        frozen.append(checks.freeze(state))
        operation = decode_operation(entry.value, state.active_version)
        outcomes.append(apply(state, operation, position, entry.time))
    for split, before in enumerate(frozen):
        restored = checks.thaw(before)
        for position in range(split, len(history)):
            operation = decode_operation(history[position].value, restored.active_version)
            assert (
                apply(restored, operation, position, history[position].time) == outcomes[position]
            )
        assert checks.digest(restored) == checks.digest(state)


@pytest.mark.parametrize("planted", named(CLOCK))
def test_fault_planted_in_the_clock_is_found(planted):
    """The properties are not blind: another pace, another limit of a leap turn them red."""
    expect_found_by(CLOCK, planted)
