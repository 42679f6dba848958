"""Properties of the fold over random histories, checked after every entry."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given

from ledgermq.core import apply as apply_module
from ledgermq.core import moves, unblocking
from ledgermq.core.apply import apply, new_state
from ledgermq.core.delivery import delivering as delivery
from ledgermq.core.delivery import redelivery, settling
from ledgermq.core.destinations import by_name
from ledgermq.core.manual import message_operations
from ledgermq.core.order import group_positions, orders
from ledgermq.core.puts import blocked, putting
from ledgermq.core.sessions import consumers, sessions
from ledgermq.core.state.group import Group
from ledgermq.core.state.journal import Journal
from ledgermq.core.structures.available import Available
from ledgermq.protocol.operations import Unreadable
from ledgermq.wire.framing.codec import decode_operation
from support.checks import checks
from support.checks.checked_histories import check_history, examples
from support.generators.generators import Entry, informed_histories, naive_histories
from support.generators.group_generators import group_histories
from support.generators.quota_generators import quota_histories
from support.planted.planted_faults import expect_found, expect_found_by, named
from support.scripts.play import play
from support.scripts.script import read_scripts

SCRIPTS = Path(__file__).parent / "scripts"


@examples(200)
@given(naive_histories())
def test_any_records_leave_a_sound_state_that_the_model_agrees_with(history):
    """Random operations and bytes: outcomes as the model's, invariants, conservation, refusals
    without effect, sequence numbers that rise and never repeat, nothing consumed twice.
    """
    check_history(history)


@examples(250)
@given(informed_histories())
def test_deep_histories_leave_a_sound_state_that_the_model_agrees_with(history):
    """Mostly legal operations, with the same checks after every entry."""
    check_history(history)


@examples(120)
@given(group_histories())
def test_histories_of_groups_leave_a_sound_state_that_the_model_agrees_with(history):
    """Groups, segments, get options, group affinity and browses, with the same checks."""
    check_history(history)


@examples(200)
@given(quota_histories())
def test_histories_with_quotas_leave_a_sound_state_that_the_model_agrees_with(history):
    """Small quotas, several sessions and both policies, with the same checks (INF-18, INF-20)."""
    check_history(history)


def replay(state, history: Sequence[Entry]) -> list[object]:
    """Outcomes of the rest of a history."""
    found: list[object] = []
    for entry in history:
        operation = decode_operation(entry.value, state.active_version)
        found += apply(state, operation, state.position + 1, entry.time)
    return found


@examples(60)
@given(informed_histories(steps=25) | group_histories(steps=25) | quota_histories(steps=25))
def test_checkpoint_and_replay_equal_replay_from_zero_at_every_split(history):
    """A state that is written and read at any position goes on with the same outcomes and ends in
    the same digest (D5).
    """
    frozen, outcomes, state = [], [], new_state()
    for entry in history:
        frozen.append(checks.freeze(state))
        outcomes.append(replay(state, [entry]))
    whole = checks.digest(state)
    for split, at_split in enumerate(frozen):
        restored = checks.thaw(at_split)
        rest = replay(restored, history[split:])
        assert rest == [one for found in outcomes[split:] for one in found], f"split at {split}"
        assert checks.digest(restored) == whole, f"split at {split}"


@examples(100)
@given(informed_histories(steps=15) | group_histories(steps=15) | quota_histories(steps=15))
def test_folding_the_same_history_twice_gives_the_same_outcomes(history):
    """The fold depends on nothing but the log."""
    first, second = new_state(), new_state()
    assert replay(first, history) == replay(second, history)
    assert checks.digest(first) == checks.digest(second)


# Faults that the checks above must find: a thing in the fold, what is wrong with it, and a seed of
# histories if the first ones do not show it.


def _forgetful_backout(original):
    return lambda entry, session, delivery, *, backed_out: original(
        entry, session, delivery, backed_out=False
    )


def _always_backout(original):
    return lambda entry, session, delivery, *, backed_out: original(
        entry, session, delivery, backed_out=True
    )


def _unchecked(original):
    return lambda session, ranges, consumer=None: None


def _reversed(original):
    return lambda self, messages: original(self, list(messages)[::-1])


def _losing(original):
    return lambda self, message: None


def _gap(original):
    def enqueue(entry, target, messages, before, session=None):
        target.next_sequence += 1
        return original(entry, target, messages, before, session)

    return enqueue


def _greedy(original):
    return lambda self, count, available=-1: original(self, count + 1, available)


def _one_too_few(original):
    return lambda self, count, available=-1: original(self, count, available)[:-1]


def _keeps_puts(original):
    return lambda entry, session: 0


def _forgets_reply(original):
    return lambda session, reply: None


def _keeps_suspicion(original):
    return lambda entry, session: None


def _later(original):
    return lambda state, session, due: original(state, session, due + 50_000)


def _does_nothing(original):
    return lambda *arguments, **options: None


def _all_count(original):
    return lambda message: message.backout_count


def _no_step(original):
    return lambda steps, backouts: None


def _shorter(original):
    return lambda message, consumer: original(message, consumer) // 2


def _tells_of_one(original):
    def tell_handing(entry, session, delivery):
        before = dict(session.handed_doubts)
        original(entry, session, delivery)
        for number in [one for one in session.handed_doubts if one not in before]:
            if number != delivery:
                del session.handed_doubts[number]

    return tell_handing


def _stays_on(original):
    return lambda self, position, *, on: original(self, position, on=True)


FAULTS = [
    (redelivery, "_counted_backouts", _all_count, 5),
    (redelivery, "_step_for", _no_step, 2),
    (redelivery, "_delay_ms", _shorter, 1),
    (redelivery, "transfer", _does_nothing, 3),
    (settling, "give_back", _forgetful_backout),
    (settling, "give_back", _always_backout, 1),
    (consumers, "check_deliveries", _unchecked, 8),
    (settling, "check_deliveries", _unchecked),
    (sessions, "check_deliveries", _unchecked),
    (Available, "extend", _reversed),
    (Available, "offer", _losing),
    (Available, "take", _greedy, 1),
    (Available, "take", _one_too_few),
    (putting, "enqueue", _gap),
    (moves, "_take_out", _does_nothing),
    (sessions, "_discard_open_puts", _keeps_puts),
    (sessions, "remember_reply", _forgets_reply),
    (sessions, "tell_handing", _tells_of_one, 3),
    (sessions, "show_life", _keeps_suspicion),
    (sessions, "set_deadline", _later),
    (delivery, "_give", _does_nothing),
    (consumers, "give_back", _does_nothing, 2),
    (message_operations, "end_flight", _does_nothing, 2),
]
JOURNAL_FAULTS = [(Journal, "switch", _stays_on), (Journal, "backed_up", _losing)]


@pytest.mark.parametrize("planted", named(FAULTS))
def test_planted_fault_is_found(planted, monkeypatch):
    """The properties are not blind: each fault planted in the fold turns them red."""
    expect_found_by(monkeypatch, planted, informed_histories())


@pytest.mark.parametrize("planted", named(JOURNAL_FAULTS))
def test_planted_fault_of_the_journal_is_found(planted, monkeypatch):
    """Histories in which the journal is turned on and off and backed up are not blind (DB-17)."""
    expect_found_by(monkeypatch, planted, informed_histories(weights=("put", "journal", "journal")))


def test_open_puts_that_outlive_their_temporary_destination_are_found(monkeypatch):
    """A script shows it, because random histories seldom come to it (SES-39)."""

    def play_scripts() -> None:
        for script in read_scripts((SCRIPTS / "connections.txt").read_text(encoding="utf-8")):
            play(script)

    expect_found(monkeypatch, (by_name, "_drop_open_puts", _does_nothing), play_scripts)


def _agrees(original):
    return lambda *arguments: None


def _no_warning(original):
    return lambda *arguments: ""


def _permits(original):
    return lambda options, message: True


def _one_segment(original):
    return lambda options, head: [head]


def _always(original):
    return lambda *arguments: True


QUOTA_FAULTS = [
    (blocked, "fits", _always),
    (blocked, "stays_behind", _does_nothing, 1),
    (unblocking, "fits", _always),
    (unblocking, "fits", _does_nothing, 1),
    (unblocking, "_commit_if_waiting", _does_nothing),
    (sessions, "drop_blocked", _does_nothing),
    (moves, "_note_high", _does_nothing),
    (apply_module, "is_waiting", _does_nothing),
]


@pytest.mark.parametrize("planted", named(QUOTA_FAULTS))
def test_planted_fault_of_quotas_is_found(planted, monkeypatch):
    """Histories with quotas are not blind either (INF-18, INF-20)."""
    expect_found_by(monkeypatch, planted, quota_histories())


GROUP_FAULTS = [
    (Group, "went", _does_nothing),
    (Group, "came", _does_nothing),
    (Group, "clash", _agrees),
    (Group, "other_priority", _agrees),
    (orders, "is_permitted", _permits),
    (orders, "is_wanted", _permits),
    (moves, "_offer_what_became_whole", _does_nothing, 1),
    (delivery, "bond", _does_nothing),
    (group_positions, "drop_bonds", _does_nothing),
    (delivery, "follow", _does_nothing),
    (delivery, "unit_of", _one_segment),
    (settling, "follow", _does_nothing, 1),
    (group_positions, "reserve_group", _does_nothing),
    (group_positions, "end_reservation", _does_nothing),
    (putting, "check_groups", _no_warning),
    (consumers, "disagreement", _agrees, 6),
    (consumers, "leave_queue", _does_nothing, 1),
]


@pytest.mark.parametrize("planted", named(GROUP_FAULTS))
def test_fault_planted_in_groups_is_found(planted, monkeypatch):
    """Histories of groups are not blind to what is wrong with groups."""
    expect_found_by(monkeypatch, planted, group_histories())


def test_unreadable_is_an_operation_like_any_other():
    """What a reader cannot read reaches the fold with its reason."""
    assert isinstance(decode_operation(b"nonsense"), Unreadable)
