"""What a random log does so that quotas are used up: puts and commits wait, and time out (§16)."""

from __future__ import annotations

from collections.abc import Callable

from ledgermq.protocol import operations as op
from ledgermq.protocol.settings import POLICIES, given_settings
from support.brokers.log_writer import Script, ScriptSession

QUEUES = ("q", "r", "s")
QUOTAS = (0, 1, 2, 4, 8)
BLOCKING_MS = (0, 300, 2_000, 2_000, 60_000)


class RandomQuotas:
    """Chooses at random; small quotas of queues, topics and all, and times to wait for them."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._random = script.random
        script.blocking_ms = self.blocking_ms

    def begin(self) -> None:
        """Gives some of the queues a quota from the beginning."""
        session = self._script.session()
        for queue, policy in zip(QUEUES, (*POLICIES, POLICIES[0]), strict=True):
            told = given_settings({"messages_max": 3, "blocking_send_policy": policy})
            mark = self._random.choice((0, 1, 1, 2, 4))
            session.send(op.CreateQueue, queue=queue, settings=told, messages_resume=mark)
        session.close()

    def blocking_ms(self) -> int:
        """How long a put may wait; now and then what is refused."""
        return -1 if self._random.random() < 0.01 else self._random.choice(BLOCKING_MS)

    def weights(self) -> dict[Callable[..., None], int]:
        """What it does, and how often."""
        return {self.alter: 4, self.tick: 3, self.again: 3}

    def alter(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Changes the quota of a queue, or of all."""
        random = self._random
        if random.random() < 0.2:
            most = random.choice((0, 0, 5, 12, -1))
            quotas = {"messages_max": most, "bytes_max": random.choice((0, 900))}
            session.send(op.AlterQueueManager, **quotas, messages_resume=random.choice((0, 0, 3)))
            return
        told = {
            "messages_max": random.choice((*QUOTAS, -1)),
            "bytes_max": random.choice((0, 0, 300)),
            "blocking_send_policy": random.choice(POLICIES),
        }
        queue = random.choice(QUEUES)
        marks = {
            "messages_resume": random.choice((None, 0, 0, 1, 3)),
            "bytes_resume": random.choice((None, 0, 0, 200)),
        }
        session.send(op.AlterQueue, queue=queue, settings=given_settings(told), **marks)

    def tick(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Lets blocking times run out."""
        self._script.wait(self._random.choice((0.3, 2.1, 2.1)))
        self._script.add(op.Tick(worker="w"))

    def again(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Sends a put or commit again that waits, perhaps where its time runs out."""
        known = self._script.state.sessions.get(session.handle)
        if known is None or not known.blocked:
            return
        self._script.wait(self._random.choice((0, 0, 2.1)))
        number = self._random.choice(list(known.blocked))
        session.again(op.Put, number, destination="queue:q", messages=[], blocking_ms=2_000)
