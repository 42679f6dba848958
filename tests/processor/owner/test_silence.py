"""The watch over silence alone: nobody is suspected on a guess (H5, H12)."""

import asyncio
import math
import os
import pickle

import pytest

from ledgermq.core.apply import apply, new_state
from ledgermq.processor.owner.silence import Silence, SilenceWatch
from ledgermq.protocol.operations import Alive, Open
from ledgermq.wire.topics.registry import Claim
from support.messages.opening import opening


class SideTopic:
    """Stands in for the side topic."""

    def __init__(self, *, hears=True, ends=True, end_of_operations=2, end_of_questions=5):
        self._hears, self._ends, self._end = hears, ends, end_of_operations
        self._end_of_questions = end_of_questions
        self.on_asked = lambda: None

    def hears(self, partition):
        """Whether the partition is read here."""
        return self._hears

    async def end_of_questions(self, partition):
        """Its end offset, or None; the broker may take its time, or go away in between."""
        self.on_asked()
        return self._end_of_questions

    async def read_to(self, partition, end):
        """Whether it was read to there."""
        return self._ends

    async def read_to_end(self, partition):
        """Whether it was read to its end."""
        return self._ends

    async def end_of_operations(self, partition):
        """The ledger's end offset, or None."""
        return self._end

    async def listen(self, partition, listener):
        """Starts to listen."""


class Keeper:
    """Stands in for the time keeper."""

    def __init__(self):
        self.suspected = []
        self.away_until = -math.inf

    async def suspect(self, state, sessions):
        """Notes who is suspected."""
        self.suspected += sessions


@pytest.fixture
def state():
    """A confirmed session 0 with a suspect timeout of one second."""
    found = new_state()
    apply(found, opening(), 0, 1)
    apply(found, Alive(session=0, session_sequence=1, answered_through=0), 1, 2)
    return found


def watch(monkeypatch, *, counting=True, **side_topic):
    """A watch whose silence has lasted for an hour, and its keeper."""
    keeper = Keeper()
    found = SilenceWatch(Claim("QM1", 0, 1), SideTopic(**side_topic), keeper)
    now = [1000.0]
    monkeypatch.setattr("ledgermq.processor.owner.silence.time.monotonic", lambda: now[0])
    if counting:
        found.silence.count_from_now()
    now[0] += 3600
    return found, keeper, now


def test_a_session_nobody_heard_of_is_suspected(state, monkeypatch):
    """With both topics read to their ends, an hour of silence is a suspicion."""
    found, keeper, _ = watch(monkeypatch)
    asyncio.run(found.suspect(state))
    assert keeper.suspected == [0]


@pytest.mark.parametrize(
    "short_of",
    [{"hears": False}, {"ends": False}, {"end_of_operations": None}, {"end_of_questions": None}],
)
def test_nobody_is_suspected_while_anything_is_unread(state, monkeypatch, short_of):
    """Not beside its partition, not read to the end, or no answer: no suspicion."""
    found, keeper, _ = watch(monkeypatch, **short_of)
    asyncio.run(found.suspect(state))
    assert not keeper.suspected


def test_silence_does_not_count_before_the_side_topic_was_read(state, monkeypatch):
    """Until the first reading to the end nobody is silent, however long it takes."""
    found, keeper, _ = watch(monkeypatch, counting=False)
    asyncio.run(found.suspect(state))
    assert not keeper.suspected


def test_a_partition_that_is_not_read_here_never_lets_silence_count(state, monkeypatch, caplog):
    """Without co-partitioning the watch says so and suspects nobody (H12)."""
    found, _, now = watch(monkeypatch, counting=False, hears=False)
    asyncio.run(found.listen(None))
    now[0] += 3600
    assert "no session will be suspected" in caplog.text
    assert found.silence.silent(state) == []


def test_heartbeats_and_operations_are_signs_of_life(state, monkeypatch):
    """A heartbeat of the connection, or an operation of the session, ends its silence."""
    found, _, now = watch(monkeypatch)
    silence: Silence = found.silence
    assert silence.silent(state) == [0]
    silence.heard(bytes(16), state)
    assert silence.silent(state) == []
    now[0] += 2
    assert silence.silent(state) == [0]
    silence.acted(0, now[0])
    assert silence.silent(state) == []


def test_heartbeats_of_connections_that_nobody_opened_are_not_remembered(state):
    """Anybody can invent as many as Kafka takes; millions of them held a worker up for minutes."""
    silence = Silence()
    before = pickle.dumps(silence)
    for _ in range(1_000):
        silence.heard(os.urandom(16), state)
    assert pickle.dumps(silence) == before


def test_a_connection_that_beat_before_its_open_was_folded_is_not_silent(state, monkeypatch):
    """Its sessions are heard of when they first act, which is later than that heartbeat."""
    found, _, now = watch(monkeypatch)
    silence: Silence = found.silence
    silence.heard(bytes([1] * 16), state)
    now[0] += 3600
    opening = Open(
        connection=bytes([1] * 16),
        lane=0,
        session_key=bytes(16),
        acknowledge_mode="CLIENT",
        suspect_timeout_ms=1_000,
    )
    apply(state, opening, 2, 3)
    assert 2 not in silence.silent(state)
    apply(state, Alive(session=2, session_sequence=1, answered_through=0), 3, 4)
    silence.acted(2, now[0])
    assert 2 not in silence.silent(state)


def test_nobody_is_suspected_for_a_silence_in_which_the_broker_was_away(state, monkeypatch):
    """Clients come back a moment after it; whoever does not is suspected its time-out later."""
    found, keeper, now = watch(monkeypatch)

    def away():
        now[0] += 20

    found._side_topic.on_asked = away
    asyncio.run(found.suspect(state))
    found._side_topic.on_asked = lambda: None
    now[0] += 0.9
    asyncio.run(found.suspect(state))
    assert not keeper.suspected
    now[0] += 0.2
    asyncio.run(found.suspect(state))
    assert keeper.suspected == [0]


def test_a_broker_that_does_not_answer_is_away_until_it_does(state, monkeypatch):
    """Whatever was silent before it was asked, counts anew."""
    found, _, now = watch(monkeypatch, end_of_questions=None)
    asyncio.run(found.suspect(state))
    assert found.silence.silent(state) == []
    now[0] += 2
    assert found.silence.silent(state) == [0]


def test_whether_the_broker_is_there_is_looked_at_before_a_silence_is_over(state, monkeypatch):
    """Else one that is back just before the end of it would not be missed."""
    found, _, now = watch(monkeypatch)
    found.silence.heard(bytes(16), state)
    assert not found.is_anybody_doubtful(state)
    now[0] += 0.6
    assert found.is_anybody_doubtful(state)
    assert found.silence.silent(state) == []


def test_an_entry_of_the_worker_that_waited_for_the_broker_tells_that_it_was_away(
    state, monkeypatch
):
    """While it waits for that, an owner looks after nobody."""
    found, keeper, now = watch(monkeypatch)
    keeper.away_until = now[0]
    assert not found.is_anybody_doubtful(state)
    now[0] += 0.6
    assert found.is_anybody_doubtful(state)
