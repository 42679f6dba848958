"""Tests of tables and audit on logs whose messages expire or may not be delivered at once."""

import random

import pytest

from ledgermq.protocol import operations as op
from ledgermq_spark.derivation.history import life_of
from support.audits.audits import audited, subject_of
from support.brokers.log_writer import Script
from support.random_logs.random_ends import TIMES, timed_message

pytestmark = [pytest.mark.spark, pytest.mark.slow]


class RandomLifetimes:
    """Chooses what three sessions do; nothing is deleted or corrected."""

    def __init__(self, script):
        self.script = script
        self.random = script.random
        self.sessions = [self.open(number) for number in range(3)]

    def open(self, number):
        """A session with consumers of a queue and of two subscriptions."""
        mode = ("CLIENT", "TRANSACTED", "CLIENT")[number]
        session = self.script.session(mode, connection=bytes([number]) * 16)
        session.consumer("q", 1, credit=3)
        session.subscribe("t", 2, credit=3)
        session.subscribe("t", 3, credit=2, shared=True, subscription="s", selector="size > 3")
        return session

    def held(self, session):
        """Some of the deliveries in flight."""
        return [one for one in self.script.in_flight(session) if self.random.random() < 0.6]

    def step(self):
        """One operation of one session, after a while."""
        self.script.wait(self.random.choice((0, 0, 0.1, 0.7, 1.5)))
        number = self.random.randrange(3)
        session, transacted = self.sessions[number], number == 1
        what = self.random.random()
        if what < 0.45:
            messages = [
                timed_message(
                    self.script, self.random.choice(TIMES), self.random.choice(("red", "blue"))
                )
                for _ in range(self.random.randint(1, 3))
            ]
            destination = self.random.choice(("queue:q", "topic:t"))
            session.send(op.Put, destination=destination, messages=messages)
        elif what < 0.60:
            session.get(self.random.randint(1, 3), self.random.randint(1, 3))
        elif what < 0.80:
            (session.commit if transacted else session.acknowledge)(*self.held(session))
        elif what < 0.93:
            (session.rollback if transacted else session.recover)(*self.held(session))
            session.get(2, 1)
        else:
            session.close(*self.held(session))
            self.sessions[number] = self.open(number)


@pytest.mark.long
@pytest.mark.parametrize("seed", [9])
def test_a_random_log_of_messages_that_expire_agrees(spark, tmp_path, seed):
    """Births, expiries, returns and all totals are what the fold makes them (INF-19)."""
    script = Script(random=random.Random(seed))
    log = RandomLifetimes(script)
    for _ in range(260):
        log.step()
    report = audited(spark, tmp_path, script.entries)
    assert report.anomalies == []
    assert report.verdict == "agrees"
    assert all(one["balances"] for one in [*report.totals, *report.subscription_totals])
    assert {one["kind"]: one["expired"] > 5 for one in report.totals} == {
        "queue": True,
        "topic": True,
    }


def test_the_life_of_a_message_tells_its_birth_and_its_end(spark, tmp_path):
    """It waited, came, went back, and expired when its time was over."""
    script = Script()
    session = script.session()
    session.consumer("q", credit=1)
    message = timed_message(script, (5_000, 2_000, 0))
    session.send(op.Put, destination="queue:q", messages=[message])
    script.wait(3)
    session.send(op.Alive)
    script.wait(4)
    session.recover(1)
    subject = subject_of(spark, tmp_path, script.entries)
    life = life_of(subject.tables, "QM1", message["message_id"])
    assert life.fate == "expired"
    assert [one.what for one in life.steps] == ["put", "born", "delivered", "returned", "expired"]
