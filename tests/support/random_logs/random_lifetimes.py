"""Random logs of messages that expire or are born late, and are only got, settled and returned."""

from __future__ import annotations

from ledgermq.protocol import operations as op
from support.brokers.log_writer import Script, ScriptSession
from support.random_logs.random_ends import TIMES, timed_message


class RandomLifetimes:
    """Chooses what three sessions do; nothing is deleted or corrected."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.random = script.random
        self.sessions = [self.open(number) for number in range(3)]

    def open(self, number: int) -> ScriptSession:
        """A session with consumers of a queue and of two subscriptions."""
        mode = ("CLIENT", "TRANSACTED", "CLIENT")[number]
        session = self.script.session(mode, connection=bytes([number]) * 16)
        session.consumer("q", 1, credit=3)
        session.subscribe("t", 2, credit=3)
        session.subscribe("t", 3, credit=2, shared=True, subscription="s", selector="size > 3")
        return session

    def held(self, session: ScriptSession) -> list[int]:
        """Some of the deliveries in flight."""
        return [one for one in self.script.in_flight(session) if self.random.random() < 0.6]

    def grow(self, steps: int) -> Script:
        """So many operations of these sessions."""
        for _ in range(steps):
            self.step()
        return self.script

    def step(self) -> None:
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
