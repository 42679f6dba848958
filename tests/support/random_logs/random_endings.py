"""Random logs of sessions whose units of work, or they themselves, administration ends (§18)."""

from __future__ import annotations

from ledgermq.protocol import operations as op
from support.brokers.log_writer import Script, ScriptSession, color_header
from support.random_logs.random_groups import SEGMENT, group_header, options
from support.random_logs.random_groups import place as place_in_group

MODES = ("TRANSACTED", "TRANSACTED", "CLIENT", "TRANSACTED")
QUEUES = ("queue:a", "queue:b")


class RandomEndings:
    """Sessions that put and get, end one another, and go on with what was ended."""

    def __init__(
        self,
        script: Script,
        *,
        fifo_modes: tuple[str, ...] = ("CONCURRENT",),
        places: tuple[str, str] = QUEUES,
        delays_ms: tuple[int, ...] = (),
        redelivery_ms: tuple[int, ...] = (0,),
        segmented: bool = False,
        single_active: bool = False,
        priorities: tuple[int, ...] = (0,),
    ) -> None:
        self.script = script
        self.random = script.random
        self.fifo_modes = fifo_modes
        self.places = places
        self.delays_ms = delays_ms
        self.redelivery_ms = redelivery_ms
        self.segmented = segmented
        self.single_active = single_active
        self.priorities = priorities
        self.connections = [script.identifier() for _ in range(2)]
        self.sessions = [self.open(number) for number in range(len(MODES))]
        for place in places:
            self.put(self.sessions[2], place, 1, 4)
            self.alter(place)

    def grow(self, steps: int) -> Script:
        """So many things that sessions do, or that happen to them."""
        for _ in range(steps):
            self.step()
        return self.script

    def open(self, number: int) -> ScriptSession:
        """A session with a consumer of each queue, or of the one subscription of a topic."""
        session = self.script.session(
            MODES[number],
            connection=self.connections[number % 2],
            lane=number % 2,
            redelivery_delay_ms=self.redelivery_ms[number % len(self.redelivery_ms)],
        )
        for consumer, place in enumerate(self.places, 1):
            kind, _, name = place.partition(":")
            credit = self.random.randint(0, 4)
            told = {"consumer_priority": self.priorities[number % len(self.priorities)]}
            if kind == "queue":
                session.consumer(name, consumer, credit=credit, **told)
            else:
                named = {"subscription": "s", "durable": True, "shared": True}
                session.subscribe(name, consumer, credit, **named, **told)
        return session

    def put(self, session: ScriptSession, place: str, count: int, priority: int) -> None:
        """Some messages of a priority."""
        if self.segmented and place.startswith("queue:") and self.random.random() < 0.6:
            self.put_segments(session, place, count, priority)
            return
        messages = [self.script.message("x", priority, self.header()) for _ in range(count)]
        session.send(op.Put, destination=place, messages=messages)

    def put_segments(self, session: ScriptSession, destination: str, count: int, high: int) -> None:
        """A logical message in segments."""
        name = self.random.choice("abcdefghijklmnopqrstuvwxyz")
        messages = []
        for at in range(count):
            last = at == count - 1
            told = place_in_group(name, 1, SEGMENT * at, in_group=False, last_segment=last)
            messages.append(self.script.message("x", high, group_header(told)))
        session.send(op.Put, destination=destination, messages=messages)

    def get(self, session: ScriptSession) -> None:
        """Credit, or none of it, of a consumer that may want logical messages complete."""
        consumer, credit = self.random.choice((1, 2)), self.random.randint(0, 4)
        if self.segmented and self.random.random() < 0.6:
            complete, ordered = self.random.random() < 0.7, self.random.random() < 0.3
            asked = options(complete_message=complete, logical_order=ordered)
            session.send(op.Get, consumer=consumer, credit=credit, options=asked)
        else:
            session.get(credit, consumer)

    def header(self) -> op.Header | None:
        """A delivery delay, where there are any."""
        if not self.delays_ms or self.random.random() < 0.4:
            return None
        told = color_header("red")
        told["delivery_delay_ms"] = self.random.choice(self.delays_ms)
        return told

    def alter(self, place: str) -> None:
        """The FIFO mode of a queue or topic becomes another one, or the same, or who is active."""
        kind, _, name = place.partition(":")
        told = {"settings": {"fifo_mode": self.random.choice(self.fifo_modes)}}
        if self.single_active:
            told["single_active_consumer"] = self.random.choice((True, True, False))
        if kind == "queue":
            self.sessions[2].send(op.AlterQueue, queue=name, **told)
        else:
            self.sessions[2].send(op.AlterTopic, topic=name, **told)

    def step(self) -> None:
        """One thing that happens."""
        number = self.random.randrange(len(MODES))
        session = self.sessions[number]
        if session.handle not in self.script.state.sessions:
            # What it sends now is refused, once.
            session.send(op.Alive)
            self.sessions[number] = self.open(number)
            return
        pauses_ms = [one for one in (*self.delays_ms, *self.redelivery_ms) if one]
        if pauses_ms and self.random.random() < 0.2:
            self.script.wait(self.random.choice(pauses_ms) / 500)
        what = self.random.random()
        if what < 0.30:
            place, priority = self.random.choice(self.places), self.random.choice((4, 7))
            self.put(session, place, self.random.randint(1, 3), priority)
        elif what < 0.50:
            self.get(session)
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
            self.alter(self.random.choice(self.places))
            # A unit of work of some messages, of one at most, or of any number.
            most = self.random.choice((1_000, 100, 2**24))
            session.send(op.AlterQueueManager, segment_bytes=most)
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
