"""Random logs: every kind of operation, legal or not, retries, lost sessions, leaps of time.

`topics` adds those of topics, subscriptions, selectors, temporary destinations and client ids,
`ends` messages that expire or wait to be born, and what else may end them meanwhile, `groups` those
of groups, segments, get options and group affinity, `moves` settings of destinations and shorter
lifetimes, so that messages expire and go elsewhere, `redelivery` delays and limits of redelivery,
`quotas` what puts have to wait for, `clock` a clock of the log that leaps and is set back,
`unit_limits` time limits of units of work.
"""

from __future__ import annotations

from ledgermq.protocol import operations as op
from ledgermq.protocol.administration import PositionsSkipped, VersionOffered
from support.brokers.log_writer import Script, ScriptSession, ranges
from support.random_logs.random_ends import RandomEnds
from support.random_logs.random_groups import RandomGroups
from support.random_logs.random_moves import RandomMoves
from support.random_logs.random_quotas import RandomQuotas
from support.random_logs.random_redelivery import RandomRedelivery
from support.random_logs.random_topics import RandomTopics

QUEUES = ("q", "r", "s")
MODES = ("CLIENT", "AUTO", "INDIVIDUAL", "TRANSACTED", "TRANSACTED", "TRANSACTED")


class RandomLog:
    """Grows a script at random; it looks at the state, so that most operations are legal."""

    def __init__(
        self,
        script: Script,
        *,
        topics: bool = False,
        ends: bool = False,
        groups: bool = False,
        moves: bool = False,
        redelivery: bool = False,
        ordered: bool = False,
        quotas: bool = False,
        clock: bool = False,
        unit_limits: bool = False,
    ) -> None:
        self.script = script
        self.clock = clock
        self.unit_limits = unit_limits
        self.random = script.random
        self.sessions: list[ScriptSession] = []
        self.connections = [script.identifier() for _ in range(4)]
        self.topics = RandomTopics(script, self.connections) if topics else None
        self.ends = RandomEnds(script) if ends else None
        self.groups = RandomGroups(script) if groups else None
        self.moves = RandomMoves(script) if moves else None
        if self.moves is not None:
            self.moves.begin()
        self.redelivery = RandomRedelivery(script, ordered=ordered) if redelivery else None
        if self.redelivery is not None:
            self.redelivery.begin()
        self.quotas = RandomQuotas(script) if quotas else None
        if self.quotas is not None:
            self.quotas.begin()

    def grow(self, steps: int) -> None:
        """Appends about so many entries."""
        for _ in range(steps):
            self.step()

    def step(self) -> None:
        """Appends one entry, now and then of a session that is gone."""
        if self.unit_limits:
            self.script.wait(self.random.choice((0, 0, 0, 0.05, 0.3)))
        if self.ends is not None:
            self.ends.wait()
        if self.clock and self.random.random() < 0.06:
            self.set_clock()
        chance = self.random.random()
        alive = [one for one in self.sessions if one.handle in self.script.state.sessions]
        if chance < 0.03 and self.script.entries:
            self.disturb()
        elif len(alive) < 5 and (chance < 0.12 or not alive):
            self.open()
        elif chance < 0.14 and self.sessions:
            self.act(self.random.choice(self.sessions))
        elif alive:
            self.act(self.random.choice(alive))

    def open(self) -> None:
        """Opens a session, sometimes wrongly."""
        number = self.random.randrange(4)
        mode = self.random.choice(MODES) if self.random.random() < 0.95 else "UNKNOWN"
        lane = number if self.random.random() < 0.95 else number + 1
        timeout = self.random.choice((1_000, 2_000, 45_000, 500))
        more = {} if self.topics is None else self.topics.open_fields(number)
        if self.redelivery is not None:
            more["redelivery_delay_ms"] = self.redelivery.delay_ms()
        if self.unit_limits:
            more["unit_of_work_time_limit_ms"] = self.random.choice((0, 0, 100, 2_000))
            more["unit_of_work_idle_limit_ms"] = self.random.choice((0, 0, 50, 500))
        self.sessions.append(
            self.script.session(
                mode,
                connection=self.connections[number],
                lane=lane,
                suspect_timeout_ms=timeout,
                **more,
            )
        )

    def set_clock(self) -> None:
        """Sets the log's clock ahead or back; often a worker agrees with it at once."""
        random, script = self.random, self.script
        script.wait(random.choice((-86_400, -600, -120, -61, -30, 50, 61, 120, 600)))
        if random.random() < 0.7:
            script.wait(0.001)
            script.add(op.TimeAgreed(worker="w", writer_time=script.now_us))

    def disturb(self) -> None:
        """Appends what belongs to no session: worker's entries, damaged records, leaps."""
        random, script = self.random, self.script
        what = random.randrange(8)
        if what == 0:
            script.add_value(random.choice((None, b"", b"\xc3\x01short", random.randbytes(40))))
        elif what == 1:
            whole = script.entries[random.randrange(len(script.entries))].value or b""
            script.add_value(whole[: random.randrange(12, 40)])
        elif what == 2:
            handles = [
                one.handle for one in random.sample(self.sessions, k=min(2, len(self.sessions)))
            ]
            script.add(op.Suspect(worker="w", sessions=[*handles, 10**6]))
        elif what == 3:
            script.wait(random.choice((0.5, 2, 31)))
            script.add(op.Tick(worker="w"))
        elif what == 4:
            script.wait(70)
            script.add(op.Tick(worker="w"))
            now = script.now_us + script.step_us
            away = random.choice((0, 20_000_000))
            script.add(op.TimeAgreed(worker="w", writer_time=now + away))
        elif what == 5:
            script.add_value(script.entries[-1].value, stamp=0)
        elif what == 6:
            script.add(op.Suspect(worker="w", sessions=[]))
            script.add(VersionOffered(worker="w", version=5))
            script.add(PositionsSkipped(first=0, last=0, actor="a", reason="r"))
            script.add(PositionsSkipped(first=7, last=2, actor="a", reason="r"))
        else:
            script.wait(random.random())
            script.add(op.Tick(worker="w"))

    def act(self, session: ScriptSession) -> None:
        """Appends an operation of a session."""
        random = self.random
        known = self.script.state.sessions.get(session.handle)
        if known is not None and random.random() < 0.9:
            session.number = known.last_sequence
        if random.random() < 0.05 and session.number > 0:
            number = session.number + random.choice((0, 0, -1, 2, 3))
            answered = max(0, number - random.choice((1, 1, 3, 10)))
            session.again(op.Alive, number, answered_through=answered)
            return
        if known is not None:
            # By the length of the log, not by chance, so that no seed tells another story.
            place = len(self.script.entries)
            session.handed = known.next_delivery - 1 if place % 3 == 0 else session.handed
            doubts = [one.doubt for one in known.consumers.values() if one.doubt]
            if doubts and place % 2:
                session.send(op.Alive, handing=doubts[0])
                return
        held = self.script.in_flight(session)
        transacted = known is not None and known.transacted
        weights = {
            self.put: 30,
            self.receive: 25 if self.topics is None else 60,
            self.settle: 25,
            self.give_back: 8,
            self.close: 2,
            self.administer: 2,
            self.correct: 1,
            self.err: 3,
        }
        if self.topics is not None:
            weights |= self.topics.weights()
        if self.ends is not None:
            weights |= self.ends.weights()
        if self.groups is not None:
            weights |= self.groups.weights()
        if self.moves is not None:
            weights |= self.moves.weights()
        if self.redelivery is not None:
            weights |= self.redelivery.weights()
        if self.quotas is not None:
            weights |= self.quotas.weights()
        choice = random.choices(list(weights), list(weights.values()))[0]
        choice(session, held, transacted)

    def put(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Puts a few messages."""
        bodies = [str(self.random.random()) for _ in range(self.random.choice((1, 1, 2, 5)))]
        priority = self.random.choice((4, 4, 4, 0, 9, 7, 7, 10))
        if self.topics is None:
            session.put(self.random.choice(QUEUES), *bodies, priority=priority)
        else:
            self.topics.put(session, self.random.choice(QUEUES), bodies, priority)

    def receive(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Opens a consumer, grants credit or closes a consumer."""
        random = self.random
        known = self.script.state.sessions.get(session.handle)
        numbers = list(known.consumers) if known else []
        if not numbers or random.random() < 0.1:
            highest = known.consumer_highest if known else 0
            number, queue = highest + random.choice((1, 1, 2, 0)), random.choice(QUEUES)
            if self.topics is None:
                session.consumer(queue, number)
            else:
                self.topics.subscribe(session, queue, number)
        elif random.random() < 0.1 and known is not None:
            number = random.choice(numbers)
            mine = [at for at, one in known.deliveries.items() if one.consumer.number == number]
            unseen = ranges(*mine[: random.randrange(3)])
            kind = random.choice((op.CloseConsumer, op.GiveBack))
            session.send(kind, consumer=number, unseen=unseen)
        else:
            session.get(random.choice((1, 2, 5)), random.choice(numbers))

    def settle(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Acknowledges or commits some of what is held."""
        some = [one for one in held if self.random.random() < 0.7]
        if transacted:
            session.commit(*some)
        else:
            session.acknowledge(*some)

    def give_back(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Rolls back or recovers, some of it seen."""
        some = [one for one in held if self.random.random() < 0.5]
        if transacted:
            session.rollback(*some)
        else:
            session.recover(*some)

    def close(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Closes the session."""
        session.close(*held[:1])

    def administer(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Creates, alters and deletes queues."""
        random = self.random
        queue = random.choice((*QUEUES, "t", "u", "bad name"))
        what = random.randrange(7)
        if what == 0:
            session.send(
                op.CreateQueue, queue=queue, message_bytes_max=random.choice((0, 0, 95, -1))
            )
        elif what == 1:
            session.send(op.DeleteQueue, queue=queue, purge=random.random() < 0.5)
        elif what == 2:
            session.send(op.AlterQueue, queue=queue, gets_disabled=random.random() < 0.3)
        elif what == 3:
            session.send(op.AlterQueue, queue=queue, message_bytes_max=random.choice((0, 60, 100)))
        elif what == 4 and self.unit_limits:
            session.send(
                op.AlterQueueManager,
                unit_of_work_time_limit_ms=random.choice((None, 0, 1_000)),
                unit_of_work_idle_limit_ms=random.choice((None, 0, 300)),
            )
        elif what == 4:
            session.send(op.AlterQueueManager, automatic_creation=random.random() < 0.7)
        elif what == 5:
            session.send(op.Upgrade, version=1)
        else:
            session.send(op.DeleteQueue, queue=queue, purge=True)

    def correct(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Corrects a message."""
        state, random = self.script.state, self.random
        name = random.choice(QUEUES)
        queue = state.queues.get(name)
        numbers = list(queue.messages) if queue else []
        sequence = random.choice([*numbers, 9999])
        action = random.choice(("REMOVE", "RELEASE", "RELEASE", "UNKNOWN"))
        session.send(
            op.Correct, queue=name, sequence=sequence, action=action, actor="op", reason="test"
        )

    def err(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Asks for what is refused."""
        random = self.random
        what = random.randrange(6)
        if what == 0:
            session.acknowledge(*held, 999)
        elif what == 1:
            session.commit(puts=77)
        elif what == 2:
            session.get(random.choice((0, 2_000_000)))
        elif what == 3:
            session.send(op.Put, destination="topic:x", messages=[self.script.message()])
        elif what == 4:
            session.send(op.Put, destination="queue:q", messages=[])
        else:
            session.rollback(3, 2)
