"""The time keeper alone: one entry at a time, back-off, the choice between Tick and TimeAgreed."""

import asyncio
import math
import time

import pytest

from ledgermq.core.apply import apply, new_state
from ledgermq.processor.lanes.producer import LogClock
from ledgermq.processor.owner import time_keeper
from ledgermq.processor.owner.time_keeper import TimeKeeper
from ledgermq.protocol.administration import VersionOffered
from ledgermq.protocol.operations import Alive, Open, Suspect, Tick, TimeAgreed
from ledgermq.wire.framing.codec import decode_operation
from ledgermq.wire.topics.registry import Claim
from support.messages.opening import opening

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
    apply(state, opening(), 0, time_us)
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


def test_a_deadline_does_not_wait_for_a_clock_that_was_set_back(start_us, monkeypatch):
    """The worker's own clock, that is, by less than a minute: Kafka's may be right (H7)."""
    state, ledger = opened(start_us), Ledger(start_us)
    keeper = keep(ledger)
    clock, monotonic_ns = time.time, time.monotonic_ns
    monkeypatch.setattr(time, "time", lambda: clock() + 31 - 50)
    monkeypatch.setattr(time, "monotonic_ns", lambda: monotonic_ns() + 31_000_000_000)
    asyncio.run(keeper.let_time_pass(state, heartbeat_heard=False))
    assert [type(one) for one in ledger.entries] == [Tick]


def test_a_tick_without_effect_backs_off(start_us, monkeypatch):
    """A Tick whose append time was too early does not repeat at once (H7)."""
    monkeypatch.setattr(time_keeper, "BACK_OFF_SECONDS", 1000.0)
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


class Installation:
    """A keeper and the fold of what it writes; the log's clock and the machine's are one, and
    a test sets them.
    """

    def __init__(self, monkeypatch, start_us):
        self.now_us = start_us
        monkeypatch.setattr(time, "time", lambda: self.now_us / SECOND_US)
        monkeypatch.setattr(time, "monotonic", lambda: self.passed_us / SECOND_US)
        self.passed_us = 10**9
        self.state = opened(start_us)
        self.ledger = Ledger(start_us)
        self.keeper = keep(self.ledger)

    def fold(self, operation):
        """Appends and folds an entry, of the keeper's or another's."""
        state = self.state
        self.ledger.next_position = state.position + 2
        ended = apply(state, operation, state.position + 1, self.now_us // 1000 * 1000)
        if state.time_stood_still:
            self._write(self.keeper.agree_time(state))
        self.keeper.folded_to(state)
        return [type(one.outcome).__name__ for one in ended]

    def _write(self, duty):
        before = len(self.ledger.entries)
        self.ledger.next_position = self.state.position + 1
        asyncio.run(duty)
        told = []
        for operation in self.ledger.entries[before:]:
            self.ledger.set_time(self.now_us)
            told += self.fold(operation)
        return told

    def suspect(self, *sessions):
        """Lets the keeper put sessions under suspicion."""
        return self._write(self.keeper.suspect(self.state, list(sessions)))

    def run(self, seconds, *, heard=False, step=0.25):
        """Lets time pass, with the keeper's time_keeper; what ended, and after how long."""
        found = []
        for number in range(1, int(seconds / step) + 1):
            self.now_us += int(step * SECOND_US)
            self.passed_us += int(step * SECOND_US)
            duty = self.keeper.let_time_pass(self.state, heartbeat_heard=heard)
            found += [(one, number * step) for one in self._write(duty)]
        return found

    def leap(self, seconds):
        """Sets the clock."""
        self.now_us += int(seconds * SECOND_US)


@pytest.fixture
def day_ahead(monkeypatch, start_us):
    """An installation whose clock leapt ahead by a day while a session lived, and was set back."""
    found = Installation(monkeypatch, start_us)
    found.fold(Alive(session=0, session_sequence=1, answered_through=0))
    found.leap(86_400)
    found.fold(Alive(session=0, session_sequence=2, answered_through=1))
    assert found.state.time == found.now_us
    found.leap(-86_400)
    found.run(2)
    return found


def test_a_client_that_is_dead_after_the_clock_was_set_back_is_lost_in_time(day_ahead):
    """A day ahead, a suspected session ends 8/7 of its time-out after the TimeAgreed, which the
    keeper writes a second after the Suspect, and by one Tick (H6, H7).
    """
    assert day_ahead.suspect(0) == ["Suspected"]
    ((ended, after),) = day_ahead.run(10)
    assert ended == "SessionEnded"
    assert 1 + 8 / 7 <= after <= 2.5
    kinds = [type(one) for one in day_ahead.ledger.entries]
    assert kinds == [TimeAgreed, Suspect, TimeAgreed, Tick]


def test_with_nothing_to_wait_for_a_clock_that_was_set_back_costs_no_entry(day_ahead):
    """No deadline and no heartbeat: a ledger at rest is left at rest, however time lies (H7)."""
    written = len(day_ahead.ledger.entries)
    assert not day_ahead.run(500)
    assert len(day_ahead.ledger.entries) == written


def test_a_heartbeat_after_the_clock_was_set_back_lets_time_go_on(day_ahead):
    """While a connection lives, a TimeAgreed each 40 s keeps time passing, at 7/8 (H6)."""
    before = len(day_ahead.ledger.entries)
    began = day_ahead.state.time
    day_ahead.run(401, heard=True)
    assert len(day_ahead.ledger.entries) - before == 10
    assert day_ahead.state.time - began == pytest.approx(360 * SECOND_US * 7 / 8, rel=0.01)


def test_a_deadline_far_off_is_kept_while_ahead_by_an_entry_each_40_s(monkeypatch, start_us):
    """Nobody is there, but something waits: time is kept passing until it is done (H6, H7)."""
    found = Installation(monkeypatch, start_us)
    found.leap(86_400)
    found.run(5)
    found.leap(-86_400)
    found.run(1)
    assert found.state.sessions == {}
    found.fold(
        Open(
            connection=bytes(16),
            lane=0,
            session_key=bytes(16),
            acknowledge_mode="CLIENT",
            suspect_timeout_ms=45_000,
        )
    )
    (session,) = found.state.sessions
    found.fold(Alive(session=session, session_sequence=1, answered_through=0))
    found.suspect(session)
    before = len(found.ledger.entries)
    ((ended, after),) = found.run(120)
    assert ended == "SessionEnded"
    assert 45 * 8 / 7 <= after <= 45 * 8 / 7 + 1
    assert len(found.ledger.entries) - before == 2


def test_a_worker_that_was_away_while_time_is_ahead_goes_on_from_where_time_was(day_ahead):
    """Five minutes without an entry do not count as passed: the session still has its time-out
    (H6), and nothing is written in a storm (H7).
    """
    day_ahead.fold(Suspect(worker="w", sessions=[0]))
    before, began = len(day_ahead.ledger.entries), day_ahead.state.time
    day_ahead.leap(300)
    day_ahead.run(0.5)
    assert day_ahead.state.time - began <= SECOND_US
    ((ended, after),) = day_ahead.run(10)
    assert ended == "SessionEnded"
    assert after <= 8 / 7
    assert len(day_ahead.ledger.entries) - before <= 3


def test_a_worker_that_cannot_agree_says_so_now_and_then(monkeypatch, start_us, caplog):
    """Its clock is three hours ahead; nobody else would notice that deadlines wait for it (H6)."""
    found = Installation(monkeypatch, start_us)
    found.leap(10 * 3_600)
    monkeypatch.setattr(time, "time", lambda: found.now_us / SECOND_US + 3 * 3_600)
    found.run(90)
    assert found.state.time_stood_still
    told = [one for one in caplog.messages if "log time stands still" in one]
    assert len(told) == 2
    assert "this machine's clock is 10800 s ahead of Kafka's" in told[0]


def test_clocks_that_disagree_after_one_was_set_back_cost_an_entry_a_second(day_ahead, monkeypatch):
    """The log's clock was set back, the worker's was not: each TimeAgreed is refused, and one a
    second is written at most (H7).
    """
    shown = lambda: (day_ahead.now_us + 60 * SECOND_US) / SECOND_US  # noqa: E731
    monkeypatch.setattr(time, "time", shown)
    day_ahead.ledger.set_time(day_ahead.now_us)
    before = len(day_ahead.ledger.entries)
    day_ahead.run(20, heard=True)
    assert 15 <= len(day_ahead.ledger.entries) - before <= 21
    assert day_ahead.state.time_reference < 0


def test_how_far_log_time_is_ahead_is_shown(day_ahead):
    """The metric's number: a day, and less as the clock catches up by an eighth (H6)."""
    keeper, state = day_ahead.keeper, day_ahead.state
    assert keeper.ahead_seconds(state) == pytest.approx(86_398, abs=1)
    day_ahead.run(401, heard=True)
    assert keeper.ahead_seconds(state) == pytest.approx(86_398 - 402 / 8, abs=42)


def test_a_version_above_all_that_were_offered_is_offered_once(start_us, monkeypatch):
    """A worker of version 1 offers nothing; a newer one offers its version until it stands (H3)."""
    state, ledger = opened(start_us), Ledger(start_us)
    keeper = keep(ledger)
    asyncio.run(keeper.offer_version(state))
    assert not ledger.entries
    monkeypatch.setattr(time_keeper, "PROTOCOL_VERSION", 2)
    for _ in range(3):
        asyncio.run(keeper.offer_version(state))
    assert ledger.entries == [VersionOffered(worker="worker", version=2)]
    apply(state, ledger.entries[0], 1, start_us)
    keeper.folded_to(state)
    monkeypatch.setattr(time_keeper.time, "monotonic", lambda: 1e9)
    asyncio.run(keeper.offer_version(state))
    assert len(ledger.entries) == 1


def test_an_entry_that_waits_for_its_broker_tells_until_when_that_was_away(start_us, monkeypatch):
    """And one that is taken at once tells nothing."""
    state, ledger = opened(start_us), Ledger(start_us + 31 * SECOND_US)
    keeper, now = keep(ledger), [1000.0]
    append = ledger.append_operation

    def take(*entry):
        now[0] += taking
        return append(*entry)

    monkeypatch.setattr(ledger, "append_operation", take)
    monkeypatch.setattr(time_keeper.time, "monotonic", lambda: now[0])
    taking = 0.5
    asyncio.run(keeper.suspect(state, [0]))
    assert keeper.away_until == -math.inf
    keeper, taking = keep(ledger), 20
    asyncio.run(keeper.suspect(state, [0]))
    assert keeper.away_until == now[0]


def test_of_many_suspected_sessions_the_line_names_some_and_counts_the_others(start_us, caplog):
    """A thousand are suspected at once; it once read as if these were twenty."""
    caplog.set_level("INFO")
    keeper = keep(Ledger(start_us))
    asyncio.run(keeper.suspect(opened(start_us), [*range(25)]))
    (line,) = [one.getMessage() for one in caplog.records if "suspected" in one.getMessage()]
    assert "18, 19 and 5 more; they are suspected" in line
