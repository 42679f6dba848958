"""Limits that take many lines or long names to reach, and what the fold says to programmers."""

import re
from pathlib import Path

import pytest

from ledgermq.core import operations, query, reasons
from ledgermq.core.apply import apply, new_state
from ledgermq.core.operations import Tick
from ledgermq.core.outcomes import Refused
from support.play import Player, play
from support.script import read_scripts

PROTOCOL = Path(__file__).parents[2] / "schemas" / "PROTOCOL.md"


def play_lines(*lines: str):
    """Plays lines as one script."""
    return play(read_scripts("\n".join(lines))[0])


def test_session_window_is_full_at_256_kept_replies_and_consumes_no_number():
    """Reply 257 is refused, session-window-full, until the writer takes answers (H15)."""
    play_lines(
        "open",
        *["alive"] * 255,
        "alive",
        "session replies=256 last_sequence=256",
        "put q A -> refused session-window-full",
        "alive n=258 -> refused session-sequence-gap expected=257",
        "close -> refused session-window-full",
        "again n=3",
        "session replies=256 last_sequence=256",
        "status q none",
        "put q A answered=1 -> enqueued 0..0",
        "session replies=256 last_sequence=257",
        "again n=257 -> enqueued 0..0",
        "alive -> refused session-window-full",
        "alive answered=257",
        "session replies=1",
    )


def test_what_waits_counts_in_the_session_window():
    """255 kept replies and a blocked put are 256: session-window-full (H15, H18)."""
    play_lines(
        "open",
        "create q messages_max=1",
        "put q A -> enqueued 0..0",
        "put q B block=9s -> nothing",
        *["alive"] * 253,
        "alive -> refused session-window-full",
        "again n=3 -> nothing",
        "alive answered=2",
        "session replies=254 last_sequence=257",
    )


def test_session_has_at_most_64_blocked_puts():
    """The next one of the session is refused at once, that of another is not: quota-exceeded
    (H18).
    """
    play_lines(
        "open",
        "create q messages_max=1",
        "put q A -> enqueued 0..0",
        *["put q B block=9s -> nothing"] * 64,
        "put r C -> enqueued 0..0",
        "put q D block=9s -> refused quota-exceeded",
        "B: open",
        "B: put q E block=9s -> nothing",
        "blocked q puts=65",
    )


def test_queue_name_has_at_most_128_characters():
    """128 characters name a queue, 129 do not: name-invalid, destination-invalid."""
    play_lines(
        "open",
        f"create {'n' * 129} -> refused name-invalid",
        f"put {'n' * 129} A -> refused destination-invalid",
        f"consumer 1 {'n' * 129} -> refused destination-invalid",
        f"create {'n' * 128}",
        f"put {'m' * 128} A -> enqueued 0..0",
        "manager queues=2",
    )


def test_queue_names_are_plain_letters():
    """Letters beyond ASCII, spaces and line ends name no queue: name-invalid."""
    play_lines(
        "open",
        "create Grüße -> refused name-invalid",
        "create ① -> refused name-invalid",
        "put ñ A -> refused destination-invalid",
        "create grusse",
    )


def test_apply_takes_the_next_position_only():
    """A position out of turn is the caller's fault and raises."""
    state = new_state()
    apply(state, Tick(worker="w"), 0, 0)
    for position in (0, 2, -1):
        with pytest.raises(AssertionError, match="after 0"):
            apply(state, Tick(worker="w"), position, 0)
    assert apply(state, Tick(worker="w"), 1, 0) == []


def test_time_may_start_at_zero():
    """The first entry sets the time, also to 1970; the next must not leap from there (H6)."""
    state = new_state()
    assert (state.position, state.time, state.time_stood_still) == (-1, -1, False)
    apply(state, Tick(worker="w"), 0, 0)
    apply(state, Tick(worker="w"), 1, 60_000_001)
    assert (state.time, state.time_stood_still) == (0, True)
    state = new_state()
    apply(state, Tick(worker="w"), 0, 10**15)
    assert (state.time, state.time_stood_still) == (10**15, False)


def test_enqueue_time_may_be_zero():
    """A queue whose only message was consumed in 1970 has a time, not a blank (SEQ-19)."""
    script = read_scripts("open\nput q A -> enqueued 0..0\ncorrect q 0 REMOVE")[0]
    player = Player()
    player.clock_us = 0
    for line in script.lines:
        player.line(line)
    status = query.queue_status(player.state, "q")
    assert status is not None
    assert (status["first_enqueued_at"], status["last_enqueued_at"]) == (0, 0)


def test_operations_ask_for_nothing_special_unless_told():
    """What a writer leaves out has the default of the schema."""
    common = {"session": 0, "session_sequence": 1, "answered_through": 0}
    opened = operations.Open(
        connection=bytes(16),
        lane=0,
        session_key=bytes(16),
        acknowledge_mode="AUTO",
        suspect_timeout_ms=1_000,
    )
    assert opened.client == ""
    created = operations.CreateQueue(**common, queue="q")
    assert (created.description, created.message_bytes_max) == ("", 0)
    altered = operations.AlterQueue(**common, queue="q")
    assert (altered.description, altered.message_bytes_max, altered.gets_disabled) == (None,) * 3
    assert operations.DeleteQueue(**common, queue="q").purge is False
    assert operations.AlterQueueManager(**common).automatic_creation is None
    refused = Refused(position=0, index=0, session=0, session_sequence=1, reason="", detail="")
    assert refused.expected_sequence == 0


def test_apply_stops_at_a_version_that_it_does_not_know():
    """After an Upgrade to an unknown version no entry is folded (H3)."""
    state = play_lines("open", "upgrade 2").state
    with pytest.raises(AssertionError, match="unknown version"):
        apply(state, Tick(worker="w"), 2, 0)


def test_a_retry_costs_the_window_nothing():
    """Answering again keeps no further reply (D7)."""
    player = play_lines("open", "alive", *["again"] * 300, "session replies=1")
    assert player.state.position == 301


@pytest.mark.parametrize("name", [one for one in reasons.__all__ if one.isupper()])
def test_reason_code_stands_in_the_protocol(name):
    """A code is for programs: it is its constant's name, and PROTOCOL.md tells what it means."""
    code = getattr(reasons, name)
    assert code == name.lower().replace("_", "-")
    assert re.search(f"`(Refused )?{code}`", PROTOCOL.read_text(encoding="utf-8"))
