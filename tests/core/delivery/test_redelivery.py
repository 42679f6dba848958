"""What the fold keeps of redelivery: invariants that are not blind, memory, bounded work."""

from __future__ import annotations

import pytest

from ledgermq.core.destinations.times import redelivery_limit
from ledgermq.core.snapshot.state_records import take_touched_blocks
from ledgermq.core.state.held_header import held_header
from ledgermq.core.state.message_states import AVAILABLE, DELAYED, DROPPED, MOVED, UNBORN
from ledgermq.core.state.records import Message
from ledgermq.protocol.operations import NO_HEADER
from ledgermq.protocol.settings import DEFAULTS
from support.checks.calls import lines_within
from support.invariants import whole_state as invariants
from support.scripts.play import play_lines

LINES = (
    "open CLIENT redelivery=5s",
    "put q A B{delay=9s} -> enqueued 0..1",
    "consumer 1 q",
    "get 1 -> accepted; delivered A@0",
    "recover 1 -> returned 1",
)


def delayed_state():
    """A state with a delayed message, number 0, and an unborn one."""
    return play_lines(*LINES).state


def test_a_delayed_message_is_sound():
    """The state that the tests below break is whole before (INF-10)."""
    state = delayed_state()
    invariants.check(state)
    assert (state.queues["q"].counts[DELAYED], state.queues["q"].counts[UNBORN]) == (1, 1)


def _counted_as_unborn(state):
    state.queues["q"].counts[DELAYED] -= 1
    state.queues["q"].counts[UNBORN] += 1


def _bytes_counted_as_unborn(state):
    state.queues["q"].sizes[DELAYED] -= 1
    state.queues["q"].sizes[UNBORN] += 1


def _bytes_counted_as_current(state):
    state.queues["q"].sizes[DELAYED] -= 1
    state.queues["q"].sizes[AVAILABLE] += 1


def _without_a_backout(state):
    state.queues["q"].messages[0].backout_count = 0


def _unborn_with_a_backout(state):
    state.queues["q"].messages[1].backout_count = 1


def _available_and_delayed(state):
    state.queues["q"].counts[AVAILABLE] += 1


def _moved_and_still_here(state):
    state.queues["q"].gone[MOVED] += 1


def _dropped_and_still_here(state):
    state.queues["q"].gone[DROPPED] += 1


BROKEN = [
    (_counted_as_unborn, "unborn"),
    (_bytes_counted_as_unborn, "unborn bytes"),
    (_bytes_counted_as_current, "current bytes"),
    (_without_a_backout, "delayed without a backout"),
    (_unborn_with_a_backout, "unborn with a backout"),
    (_available_and_delayed, "current \\+ pending"),
    (_moved_and_still_here, "SEQ-14"),
    (_dropped_and_still_here, "SEQ-14"),
]


@pytest.mark.parametrize(
    ("broken", "text"), BROKEN, ids=[one.__name__.strip("_") for one, _ in BROKEN]
)
def test_broken_redelivery_is_found(broken, text):
    """Whatever is wrong with what waits to be redelivered, the check names it (INF-19)."""
    state = delayed_state()
    broken(state)
    with pytest.raises(AssertionError, match=text):
        invariants.check(state)


def test_messages_that_never_came_back_cost_nothing():
    """Without a limit of its own, a message has nothing of redelivery, on a queue with delays."""
    lines = ("open", "create q redelivery_override=5s error_destination=none", "put q A")
    state = play_lines(*lines[:2], f"{lines[2]} -> enqueued 0..0").state
    assert state.queues["q"].messages[0].times is None
    assert not [name for name in Message.__slots__ if "redeliver" in name or "delay" in name]


def test_a_delay_that_is_over_leaves_nothing_behind():
    """A message that was delayed once costs no more than before."""
    lines = (*LINES, "tick +5s")
    state = play_lines(*lines).state
    assert state.queues["q"].messages[0].times is None


def test_begin_and_end_of_a_delay_touch_the_message_for_the_next_checkpoint():
    """A checkpoint tells until when a message is delayed, so both change its block (D5)."""
    player = play_lines(*LINES[:-1])
    for text in (LINES[-1], "tick +5s"):
        take_touched_blocks(player.state)
        player.go_on(text)
        assert take_touched_blocks(player.state) == [(1, 0)], text


def test_a_header_that_leaves_out_its_limit_has_none():
    """A Put that was not read from the log may leave out what a record says by default."""
    given = {name: value for name, value in NO_HEADER.items() if name != "redelivery_limit"}
    assert redelivery_limit(held_header(given), DEFAULTS) == -1


def test_a_delay_is_worked_out_in_few_steps_after_any_number_of_backouts():
    """A message that came back a thousand million times grows its delay in some hundred steps."""
    lines = ("open CLIENT", "create q redelivery_override=100ms multiplier=101", "consumer 1 q")
    lines += ("get 1", "put q A -> enqueued 0..0; delivered A@0")
    player = play_lines(*lines, with_model=False)
    for state in (player.state, player.thawed):
        state.queues["q"].messages[0].backout_count = 10**9
    lines_within(100_000, lambda: player.go_on("recover 1 -> returned 1"))
    assert player.state.queues["q"].counts[DELAYED] == 1
