"""The audit's scans of sessions come to what the fold does, on random logs, without Spark."""

import random
from copy import deepcopy
from dataclasses import replace

import pytest

from ledgermq.core.puts import quotas as storing
from ledgermq.protocol import operations as op
from ledgermq.protocol.outcomes import Delivered, Refused
from ledgermq_spark.derivation import refusing
from support.audits.conduct_feed import Scans
from support.audits.fifo_feed import NumberedScript, judged
from support.brokers.log_writer import Script
from support.random_logs.random_endings import RandomEndings
from support.random_logs.random_groups import options


def refused_in(script, scans):
    """Operations that the fold refused, and why; a refusal given again is left out."""
    again = {one.position for one in scans.acts if one.what == "act" and one.reason == "repeated"}
    told = [one.outcome for found in script.outcomes for one in found]
    return {
        one.position: one.reason
        for one in told
        if isinstance(one, Refused) and one.position not in again
    }


def compare(script, scans):
    """Asserts that scans and fold agree on all sessions; returns what was refused."""
    expected = refused_in(script, scans)
    found = {at: reason for at, reason in scans.refused.items() if reason != "repeated"}
    assert found == expected
    assert [one for one in scans.acts if one.what == "stray"] == []
    assert scans.sessions.keys() == script.state.sessions.keys()
    for handle, known in script.state.sessions.items():
        mine = scans.sessions[handle]
        assert list(mine.in_flight) == list(known.deliveries)
        assert mine.open_bytes == {} or sum(mine.open_bytes.values()) == known.open_bytes
        assert mine.unit_puts == sum(map(len, known.open_puts.values()))
        assert mine.unit_ended == bool(known.unit_of_work_ended_by)
        assert mine.has_unit == known.has_unit_of_work
        for number, consumer in known.consumers.items():
            assert mine.consumers[number].credit == consumer.credit
    return expected


@pytest.mark.parametrize("seed", range(6))
def test_what_administration_ends_is_what_the_fold_ends(seed):
    """Units of work and sessions, what is refused since, and what is there to end (SES-20)."""
    script = Script(random=random.Random(seed))
    RandomEndings(script).grow(400)
    reasons = set(compare(script, Scans(script)).values())
    assert {"target-unknown", "reason-invalid", "unit-of-work-ended"} <= reasons


def test_what_is_too_large_for_a_segment_is_refused():
    """A unit of work with all that it holds already, or a message alone (DB-09)."""
    script = Script(random=random.Random(5))
    RandomEndings(script).grow(2_000)
    reasons = list(compare(script, Scans(script)).values())
    assert reasons.count("transaction-too-large") > 10


def test_what_an_operation_names_beyond_its_bounds_is_refused(monkeypatch):
    """What an Open says of its client, ids to match, and destinations of a unit of work (§3)."""
    monkeypatch.setattr(storing, "UNIT_OF_WORK_DESTINATIONS_MAX", 2)
    monkeypatch.setattr(refusing, "UNIT_DESTINATIONS_MAX", 2)
    script = Script()
    opening = {"lane": 0, "acknowledge_mode": "AUTO", "suspect_timeout_ms": 1_000}
    for size in (1_024, 1_025):
        for text in ({"client": "x" * size}, {"client_id": "c", "takeover": b"x" * size}):
            ids = {"connection": script.identifier(), "session_key": script.identifier()}
            script.add(op.Open(**opening, **ids, **text))
    session = script.session("TRANSACTED")
    for number in (1, 2, 1, 3):
        session.put(f"q{number}", "x")
    session.consumer("q1")
    for ids in ({"message_id": bytes(17)}, {"correlation_id": "c" * 65_537}):
        for match in (ids, {name: one[:-1] for name, one in ids.items()}):
            session.send(op.Get, consumer=1, credit=1, options=options(**match))
    reasons = list(compare(script, Scans(script)).values())
    assert reasons == ["setting-invalid"] * 2 + ["transaction-too-large"] + ["options-invalid"] * 2


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("mode", ["PROTECTED", "SERIALIZED", None])
@pytest.mark.parametrize("second", ["queue:b", "topic:t"])
def test_what_is_out_of_turn_is_refused(monkeypatch, second, mode, seed):
    """What was received before, who asks too early, and what came back first (DB-22, H19)."""
    script = NumberedScript(random.Random(seed), monkeypatch)
    modes = (mode,) if mode else ("PROTECTED", "SERIALIZED", "CONCURRENT", "PROTECTED")
    RandomEndings(script, fifo_modes=modes, places=("queue:a", second)).grow(400)
    scans, found = judged(script)
    assert found == []
    reasons = list(compare(script, scans).values())
    assert ("out-of-turn" in reasons) == (mode != "SERIALIZED")


@pytest.mark.parametrize("seed", range(8))
def test_what_was_born_later_was_received_later(monkeypatch, seed):
    """Births of several moments that one entry finds due are served one moment after another."""
    script = NumberedScript(random.Random(seed), monkeypatch)
    RandomEndings(script, fifo_modes=("PROTECTED",), delays_ms=(50, 150, 400)).grow(400)
    scans, found = judged(script)
    assert found == []
    assert "out-of-turn" in compare(script, scans).values()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("mode", ["PROTECTED", "SERIALIZED"])
def test_segments_are_in_turn_one_by_one_and_out_together(monkeypatch, mode, seed):
    """A logical message that is got complete is one; each of its segments keeps its own turn."""
    script = NumberedScript(random.Random(seed), monkeypatch)
    RandomEndings(script, fifo_modes=(mode,), segmented=True).grow(400)
    scans, found = judged(script)
    assert found == []
    assert ("out-of-turn" in compare(script, scans).values()) == (mode == "PROTECTED")


def test_a_delivery_to_a_session_whose_unit_of_work_was_ended_is_told():
    """It is given nothing until it rolls back; the same outcome after that is none of these."""
    script = Script()
    putter, taker = script.session(), script.session("TRANSACTED")
    taker.consumer("q", credit=1)
    putter.put("q", "a", "b")
    given = next(one for one in script.outcomes[-1] if isinstance(one.outcome, Delivered))
    ended = putter.send(op.RollbackTransaction, target_session=taker.handle, actor="a", reason="r")
    taker.rollback()
    for position, kinds in ((ended, ["unit ended"]), (ended + 1, [])):
        planted = deepcopy(script)
        again = replace(given.outcome, position=position, index=1, first_delivery=2)
        planted.outcomes[position].append(given._replace(outcome=again))
        strays = [one.kind for one in Scans(planted).acts if one.what == "stray"]
        assert strays == kinds


def test_what_was_given_back_unseen_is_in_flight_no_longer():
    """The consumer stays, with its credit; only what it holds can go back (SES-66)."""
    script = Script()
    putter, taker = script.session(), script.session("CLIENT")
    taker.consumer("q", credit=9)
    putter.put("q", "a", "b", "c")
    first = [{"first": 1, "last": 1}, {"first": 3, "last": 3}]
    taker.send(op.GiveBack, consumer=1, unseen=first)
    taker.send(op.GiveBack, consumer=1, unseen=first)
    taker.send(op.GiveBack, consumer=2, unseen=[])
    taker.send(op.Get, consumer=1, credit=0)
    taker.send(op.CloseConsumer, consumer=1, unseen=[])
    taker.send(op.GiveBack, consumer=1, unseen=[{"first": 2, "last": 2}])
    reasons = compare(script, Scans(script)).values()
    assert list(reasons) == ["delivery-unknown", "consumer-unknown", "consumer-unknown"]
    assert list(script.state.sessions[taker.handle].deliveries) == [2, 4, 5]
