"""The audit and messages in doubt: what lost sessions held, worked out without the fold (H20)."""

import random
from copy import deepcopy
from dataclasses import replace

import pytest

from ledgermq.protocol import operations as op
from ledgermq.protocol.outcomes import Delivered
from ledgermq_spark.audit.audit import audit
from ledgermq_spark.derivation.history import life_of
from support.audits.audits import audited, subject_of
from support.brokers.log_writer import Script, ScriptSession, fold
from support.random_logs.random_groups import SEGMENT, group_header, options, place, put_group

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PLACES = ("queue:q", "topic:t")


class RandomDoubts:
    """Sessions that take messages of a queue and a topic, and of which many are lost."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.random = script.random
        self.connections = [script.identifier() for _ in range(3)]
        self.sessions = [self.open(number) for number in range(3)]

    def open(self, number: int) -> ScriptSession:
        """A session with two consumers that have credit."""
        session = self.script.session(
            "TRANSACTED" if number else "CLIENT",
            connection=self.connections[number],
            lane=number,
            suspect_timeout_ms=1_000,
        )
        session.consumer("q", 1, credit=self.random.randint(1, 6))
        session.send(
            op.OpenConsumer,
            consumer=2,
            destination="topic:t",
            subscription="s",
            durable=False,
            shared=True,
        )
        session.get(self.random.randint(1, 6), 2)
        return session

    def held(self, session: ScriptSession) -> list[int]:
        """Some of what a session holds."""
        return [one for one in self.script.in_flight(session) if self.random.random() < 0.6]

    def step(self) -> None:
        """One thing that a session does, or that happens to it."""
        what, number = self.random.random(), self.random.randrange(3)
        session = self.sessions[number]
        known = self.script.state.sessions[session.handle]
        if self.random.random() < 0.3:
            session.handed = self.random.randrange(known.next_delivery + 1)
        if what < 0.25:
            destination = self.random.choice(PLACES)
            session.send(op.Put, destination=destination, messages=self.messages(destination))
        elif what < 0.40:
            self.get(session)
        elif what < 0.60:
            doubts = [one.doubt for one in known.consumers.values() if one.doubt]
            held = self.script.in_flight(session)
            told = doubts if self.random.random() < 0.6 else held
            session.send(op.Alive, handing=self.random.choice(told or [1, 2]))
        elif what < 0.75:
            (session.commit if known.transacted else session.acknowledge)(*self.held(session))
        elif what < 0.85:
            (session.rollback if known.transacted else session.recover)(*self.held(session))
            session.get(3, 1)
        else:
            lose(self.script, session)
            self.sessions[number] = self.open(number)

    def messages(self, destination: str) -> list[op.PutMessage]:
        """Three messages."""
        return [self.script.message("x") for _ in range(3)]

    def get(self, session: ScriptSession) -> None:
        """A session's consumer gets more."""
        session.get(self.random.randint(1, 4), self.random.randint(1, 2))


class SegmentDoubts(RandomDoubts):
    """The same with logical messages in segments, that are got complete or one by one."""

    def open(self, number: int) -> ScriptSession:
        """The same, mostly to get messages complete from the beginning."""
        session = super().open(number)
        self.ask(session, 0)
        return session

    def messages(self, destination: str) -> list[op.PutMessage]:
        """A message, and one in segments, that a Put may bring in part."""
        if destination not in PLACES[:1]:
            return super().messages(destination)
        name, last = self.random.choice("abcdefghijklmnopqrstuvwxyz"), self.random.randint(1, 3)
        offsets = [at for at in range(last + 1) if self.random.random() < 0.97]
        groups = [None] + [
            place(name, 1, SEGMENT * at, in_group=False, last_segment=at == last) for at in offsets
        ]
        return [self.script.message("x", 4, group_header(one)) for one in groups]

    def get(self, session: ScriptSession) -> None:
        """A session's consumer gets more, often under other options."""
        if self.random.random() < 0.4:
            super().get(session)
            return
        self.ask(session, self.random.randint(1, 4))

    def ask(self, session: ScriptSession, credit: int) -> None:
        """A Get with options."""
        chance = self.random.random
        asked = options(complete_message=chance() < 0.7, logical_order=chance() < 0.4)
        session.send(op.Get, consumer=1, credit=credit, options=asked)


def grown(seed: int, steps: int, kind: type[RandomDoubts] = RandomDoubts) -> Script:
    """A random log."""
    script = Script(random=random.Random(seed))
    log = kind(script)
    for _ in range(steps):
        log.step()
    return script


@pytest.mark.long
@pytest.mark.parametrize("seed", [4])
def test_a_random_log_of_lost_sessions_agrees(spark, tmp_path, seed):
    """Backouts, counted or not, and what was told to be in doubt are what the fold says (H20)."""
    script = grown(seed, 120)
    told = [one.outcome for found in fold(script.entries)[1] for one in found]
    assert sum(isinstance(one, Delivered) and one.in_doubt for one in told) > 30
    report = audited(spark, tmp_path, script.entries)
    assert report.anomalies == []
    assert report.verdict == "agrees"


def doubts_of(script: Script) -> list[int]:
    """How many messages each of the outcomes brought that say that they are in doubt."""
    told = [one.outcome for found in script.outcomes for one in found]
    return [len(one.messages) for one in told if isinstance(one, Delivered) and one.in_doubt]


@pytest.mark.long
@pytest.mark.parametrize("seed", [22])
def test_segments_in_doubt_together_agree(spark, tmp_path, seed):
    """Who got them complete, in part, or was inside already; what an Alive told (H20, GRP-38)."""
    script = grown(seed, 200, SegmentDoubts)
    assert sum(count > 1 for count in doubts_of(script)) > 8
    report = audited(spark, tmp_path, script.entries)
    assert report.anomalies == []
    assert report.verdict == "agrees"


@pytest.mark.long
def test_who_is_inside_a_message_in_doubt_gets_the_rest_segment_by_segment(spark, tmp_path):
    """Together the segments are handed over by one Alive, else each by its own (H20, GRP-38)."""
    script = Script()
    put_group(
        script.session(),
        "q",
        *(place("S", 1, SEGMENT * at, in_group=False, last_segment=at == 2) for at in range(3)),
    )
    complete, logical = options(complete_message=True), options(logical_order=True)
    for alive in (False, True):
        session = script.session(suspect_timeout_ms=1_000)
        session.consumer("q")
        session.send(op.Get, consumer=1, credit=1, options=complete)
        if alive:
            session.send(op.Alive, handing=3)
        lose(script, session)
    inside = script.session(suspect_timeout_ms=1_000)
    inside.consumer("q")
    inside.send(op.Get, consumer=1, credit=1, options=logical)
    inside.send(op.Alive, handing=1)
    both = {**logical, "complete_message": True}
    inside.send(op.Get, consumer=1, credit=2, options=both)
    lose(script, inside)
    assert doubts_of(script) == [3, 1, 1]
    subject = subject_of(spark, tmp_path, script.entries)
    report = audit(subject)
    assert report.anomalies == []
    rows = subject.tables.messages.orderBy("sequence").collect()
    told = [(one["backout_count"], one["uncounted_backout_count"]) for one in rows]
    assert told == [(3, 1), (3, 2), (2, 1)]


@pytest.fixture(scope="module")
def crashed(spark, tmp_path_factory):
    """Two messages that a session had when it was lost, one of which fells the next one too."""
    script = Script()
    with_two = script.session(suspect_timeout_ms=1_000)
    with_two.put("q", "one", "two")
    with_two.consumer("q", 1, credit=2)
    lose(script, with_two)
    other = script.session(suspect_timeout_ms=1_000)
    other.consumer("q", 1, credit=2)
    other.send(op.Alive, handing=1)
    lose(script, other)
    return script, subject_of(spark, tmp_path_factory.mktemp("crashed"), script.entries)


def lose(script: Script, session: ScriptSession) -> None:
    """A session is not heard of again."""
    script.add(op.Suspect(worker="w", sessions=[session.handle]))
    script.wait(1.1)
    script.add(op.Tick(worker="w"))


def test_the_tables_know_which_backouts_count(crashed):
    """The one that was handed over is blamed for the second loss, its neighbour for none (H20)."""
    _, subject = crashed
    assert audit(subject).verdict == "agrees"
    rows = subject.tables.messages.orderBy("sequence").collect()
    told = [(one["backout_count"], one["uncounted_backout_count"]) for one in rows]
    assert told == [(2, 1), (2, 2)]


def test_the_life_of_a_message_says_whether_a_loss_counts_against_it(crashed):
    """The first return does not, the second does: it was being handed over (H20)."""
    _, subject = crashed
    first = subject.tables.messages.orderBy("sequence").first()
    steps = life_of(subject.tables, "QM1", first["message_id"]).steps
    returns = [one.reason for one in steps if one.what == "returned"]
    assert ["not against it" in one for one in returns] == [True, False]


def test_a_delivery_that_hides_its_doubt_is_found_without_the_fold(spark, tmp_path, crashed):
    """The outcome on the lane says that nobody was lost with it: the claims say otherwise."""
    script, _ = crashed
    recorded = deepcopy(fold(script.entries)[1])
    place, at = next(
        (entry, number)
        for entry in recorded
        for number, one in enumerate(entry)
        if isinstance(one.outcome, Delivered) and one.outcome.in_doubt
    )
    place[at] = place[at]._replace(outcome=replace(place[at].outcome, in_doubt=False))
    found = audited(spark, tmp_path, script.entries, recorded).anomalies
    assert {(one.kind, one.field) for one in found} == {("altered outcome", "in_doubt")}
    assert {one.position for one in found} == {place[at].outcome.position}


def test_a_backout_that_counts_in_the_state_alone_is_found(crashed):
    """What the rebuilt state says of a message is not what the tables worked out."""
    _, subject = crashed
    wrong = subject.rebuilt_messages.replace(1, 0, subset=["uncounted_backout_count"])
    (found,) = audit(replace(subject, rebuilt_messages=wrong)).anomalies
    assert (found.kind, found.field) == ("state mismatch", "uncounted_backout_count")
