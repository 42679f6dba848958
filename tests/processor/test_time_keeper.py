"""The time keeper alone: one entry at a time, back-off, the choice between Tick and TimeAgreed."""

import asyncio
import time

import pytest

from ledgermq.core.apply import apply, new_state
from ledgermq.core.operations import Alive, Open, Tick, TimeAgreed
from ledgermq.processor import duties
from ledgermq.processor.duties import TimeKeeper
from ledgermq.processor.producer import LogClock
from ledgermq.wire.codec import decode_operation
from ledgermq.wire.registry import Claim

SECOND_US = 1_000_000


class Ledger:
    """Stands in for the producer: takes entries, says what time it is."""

    def __init__(self, now_us):
        self.clock = LogClock()
        self.entries = []
        self.next_position = 1
        self.set_time(now_us)

    def set_time(self, now_us):
        """Sets the log's clock."""
        self.clock.observe(now_us // 1000)

    def append_operation(self, partition, key, value, headers):
        """Takes an entry."""
        self.entries.append(decode_operation(value))
        appended = asyncio.get_running_loop().create_future()
        appended.set_result(self.next_position)
        self.next_position += 1
        return appended


def opened(time_us):
    """A state with one unconfirmed session, which has a deadline 30 s later."""
    state = new_state()
    operation = Open(
        connection=bytes(16),
        lane=0,
        session_key=bytes(16),
        acknowledge_mode="CLIENT",
        suspect_timeout_ms=1_000,
    )
    apply(state, operation, 0, time_us)
    return state


@pytest.fixture
def start_us():
    """A time near the real one: the keeper's own clock is the machine's."""
    return int(time.time()) * SECOND_US


def keep(ledger):
    """A keeper that writes to a ledger."""
    return TimeKeeper(Claim("QM1", 0, 1), ledger, "worker")


def test_a_tick_is_written_when_the_deadline_has_passed_and_not_before(start_us):
    """Before the deadline nothing, after it one Tick; while that is unfolded no second (H7)."""
    state, ledger = opened(start_us), Ledger(start_us + 29 * SECOND_US)
    keeper = keep(ledger)
    asyncio.run(keeper.let_time_pass(state, heartbeat_heard=True))
    assert not ledger.entries
    ledger.set_time(start_us + 31 * SECOND_US)
    for _ in range(5):
        asyncio.run(keeper.let_time_pass(state, heartbeat_heard=True))
    assert [type(one) for one in ledger.entries] == [Tick]
    assert keeper.busy


def test_a_tick_without_effect_backs_off(start_us, monkeypatch):
    """A Tick whose append time was too early does not repeat at once (H7)."""
    monkeypatch.setattr(duties, "BACK_OFF_SECONDS", 1000.0)
    state, ledger = opened(start_us), Ledger(start_us + 31 * SECOND_US)
    keeper = keep(ledger)
    asyncio.run(keeper.let_time_pass(state, heartbeat_heard=False))
    apply(state, ledger.entries[0], 1, start_us)
    keeper.folded_to(state)
    asyncio.run(keeper.let_time_pass(state, heartbeat_heard=False))
    assert len(ledger.entries) == 1
    assert keeper.busy


def test_a_tick_with_effect_frees_the_keeper(start_us):
    """After a Tick that ended the session the keeper is ready and has nothing to do."""
    state, ledger = opened(start_us), Ledger(start_us + 31 * SECOND_US)
    keeper = keep(ledger)
    asyncio.run(keeper.let_time_pass(state, heartbeat_heard=False))
    apply(state, ledger.entries[0], 1, start_us + 31 * SECOND_US)
    keeper.folded_to(state)
    assert not keeper.busy
    asyncio.run(keeper.let_time_pass(state, heartbeat_heard=False))
    assert len(ledger.entries) == 1


def test_beyond_a_minute_the_time_is_agreed_instead_of_ticked(start_us):
    """A deadline long past needs TimeAgreed, since a Tick's advance would not count (H6)."""
    state, ledger = opened(start_us), Ledger(start_us + 90 * SECOND_US)
    asyncio.run(keep(ledger).let_time_pass(state, heartbeat_heard=False))
    assert [type(one) for one in ledger.entries] == [TimeAgreed]


def test_a_heartbeat_keeps_the_time_fresh_only_when_it_is_stale(start_us):
    """A heartbeat calls for TimeAgreed when the last entry is over 40 s old, not before (H6)."""
    state = opened(start_us)
    alive = Alive(session=0, session_sequence=1, answered_through=0)
    apply(state, alive, 1, start_us)
    ledger = Ledger(start_us + 39 * SECOND_US)
    keeper = keep(ledger)
    asyncio.run(keeper.let_time_pass(state, heartbeat_heard=True))
    ledger.set_time(start_us + 41 * SECOND_US)
    asyncio.run(keeper.let_time_pass(state, heartbeat_heard=False))
    assert not ledger.entries
    asyncio.run(keeper.let_time_pass(state, heartbeat_heard=True))
    assert [type(one) for one in ledger.entries] == [TimeAgreed]


def test_time_is_not_agreed_on_twice_for_one_leap(start_us):
    """Many entries beyond the leap call for one TimeAgreed while it is unfolded (H6)."""
    state, ledger = opened(start_us), Ledger(start_us)
    keeper = keep(ledger)
    for position in range(1, 6):
        alive = Alive(session=0, session_sequence=position, answered_through=0)
        apply(state, alive, position, start_us + 100 * SECOND_US)
        assert state.time_stood_still
        asyncio.run(keeper.agree_time(state))
    assert len(ledger.entries) == 1
