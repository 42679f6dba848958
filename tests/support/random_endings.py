"""Random logs of sessions whose units of work, or they themselves, administration ends (§18)."""

from __future__ import annotations

from ledgermq.core import operations as op
from support.log_writer import Script, ScriptSession

__all__ = ["RandomEndings"]

MODES = ("TRANSACTED", "TRANSACTED", "CLIENT", "TRANSACTED")
QUEUES = ("a", "b")


class RandomEndings:
    """Sessions that put and get, end one another, and go on with what was ended."""

    def __init__(self, script: Script, *, fifo_modes: tuple[str, ...] = ("CONCURRENT",)) -> None:
        self.script = script
        self.random = script.random
        self.fifo_modes = fifo_modes
        self.connections = [script.identifier() for _ in range(2)]
        self.sessions = [self.open(number) for number in range(len(MODES))]
        for queue in QUEUES:
            self.sessions[2].put(queue, "x")
            self.alter(queue)

    def grow(self, steps: int) -> Script:
        """So many things that sessions do, or that happen to them."""
        for _ in range(steps):
            self.step()
        return self.script

    def open(self, number: int) -> ScriptSession:
        """A session with a consumer of each queue."""
        session = self.script.session(
            MODES[number], connection=self.connections[number % 2], lane=number % 2
        )
        for consumer, queue in enumerate(QUEUES, 1):
            session.consumer(queue, consumer, credit=self.random.randint(0, 4))
        return session

    def alter(self, queue: str) -> None:
        """The FIFO mode of a queue becomes another one, or the same."""
        settings = {"fifo_mode": self.random.choice(self.fifo_modes)}
        self.sessions[2].send(op.AlterQueue, queue=queue, settings=settings)

    def step(self) -> None:
        """One thing that happens."""
        number = self.random.randrange(len(MODES))
        session = self.sessions[number]
        if session.handle not in self.script.state.sessions:
            # What it sends now is refused, once.
            session.send(op.Alive)
            self.sessions[number] = self.open(number)
            return
        what = self.random.random()
        if what < 0.30:
            bodies = ["x"] * self.random.randint(1, 3)
            session.put(self.random.choice(QUEUES), *bodies, priority=self.random.choice((4, 7)))
        elif what < 0.50:
            session.get(self.random.randint(0, 4), self.random.choice((1, 2)))
        elif what < 0.66:
            named = self.named(session)
            transacted = MODES[number] == "TRANSACTED"
            (session.commit if transacted else session.acknowledge)(*named)
        elif what < 0.78:
            undo = session.rollback if MODES[number] == "TRANSACTED" else session.recover
            undo(*self.named(session))
        elif what < 0.95:
            self.end(session)
        elif what < 0.98:
            self.alter(self.random.choice(QUEUES))
        else:
            session.close(*self.named(session))

    def named(self, session: ScriptSession) -> list[int]:
        """What it holds, or a part of it, or what it does not hold."""
        held = self.script.in_flight(session)
        chance = self.random.random()
        if chance < 0.05:
            return [(1, 2**40)]
        if chance < 0.4:
            return held[: self.random.randint(0, 2)]
        return [one for one in held if chance < 0.7 or self.random.random() < 0.6]

    def end(self, session: ScriptSession) -> None:
        """A session asks to end another's unit of work, or the other, which may not be there."""
        handles = [one.handle for one in self.sessions]
        target = self.random.choice([*handles, *handles, 0, 2**40, len(self.script.entries)])
        kind = op.RollbackTransaction if self.random.random() < 0.8 else op.EndSession
        actor = self.random.choice(("a",) * 9 + ("", "a" * 129))
        reason = self.random.choice(("r",) * 9 + ("", "r" * 1_025))
        session.send(kind, target_session=target, actor=actor, reason=reason)
