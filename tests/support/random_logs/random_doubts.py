"""Random logs of sessions that are lost with what they held, some of it in segments (H20)."""

from __future__ import annotations

from ledgermq.protocol import operations as op
from support.brokers.log_writer import Script, ScriptSession
from support.random_logs.random_groups import SEGMENT, group_header, options, place

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

    def grow(self, steps: int) -> Script:
        """So many things that sessions do, or that happen to them."""
        for _ in range(steps):
            self.step()
        return self.script

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


def lose(script: Script, session: ScriptSession) -> None:
    """A session is not heard of again."""
    script.add(op.Suspect(worker="w", sessions=[session.handle]))
    script.wait(1.1)
    script.add(op.Tick(worker="w"))
