"""Traffic for tests of the processor: puts, commits, gets, rollbacks, groups, from a seed."""

from __future__ import annotations

import random
from typing import Any

from ledgermq.protocol import operations as op
from ledgermq.protocol.get_options import Options
from support.brokers.raw_client import RawClient, RawSession
from support.scripts.verbs import message_of

WHOLE_GROUPS = Options(logical_order=True, all_messages_available=True).record()


class Traffic:
    """A producer and a consumer session of two connections that never wait for replies.

    What they write is legal most of the time; what is refused is part of the history as well. With
    the name of a deep queue they put to that and take from it too, as much as they put.
    """

    def __init__(
        self, producer: RawClient, consumer: RawClient, seed: int = 1, *, deep: str = ""
    ) -> None:
        self.random = random.Random(seed)
        self.producer: RawSession = producer.open("TRANSACTED")
        self.consumer: RawSession = consumer.open("TRANSACTED")
        self.consumer.consumer(1, "queue:work", 50)
        self.consumer.do(op.OpenConsumer, consumer=2, destination="queue:groups")
        self.consumer.do(op.Get, consumer=2, credit=50, options=WHOLE_GROUPS)
        self._consumers = [1, 2]
        self._deep = deep
        if deep:
            self.consumer.consumer(3, deep, 50)
            self._consumers.append(3)
        self._settled = 0
        self._groups = 0

    def step(self) -> None:
        """Writes one unit of work on each side, without waiting."""
        count = self.random.randint(1, 30)
        self.producer.put("queue:work", count, size=self.random.choice([20, 200, 3000]))
        count += self._put_groups()
        if self._deep:
            more = self.random.randint(1, 30)
            self.producer.put(self._deep, more, size=200)
            count += more
        if self.random.random() < 0.15:
            self.producer.write(op.Rollback, seen=[])
        else:
            self.producer.write(op.Commit, deliveries=[], puts=count)
        self.consumer.client.read(0.01)
        through = max(
            (one.first_delivery + len(one.messages) - 1 for one in self.consumer.delivered),
            default=0,
        )
        if through > self._settled:
            span: list[Any] = [{"first": self._settled + 1, "last": through}]
            if self.random.random() < 0.2:
                self.consumer.write(op.Rollback, seen=span)
            else:
                self.consumer.write(op.Commit, deliveries=span, puts=0)
            for consumer in self._consumers:
                came = self._came(consumer, self._settled)
                if came:
                    self.consumer.write(op.Get, consumer=consumer, credit=came)
            self._settled = through
        # Replies are taken so that the window of unanswered operations does not fill.
        for session in (self.producer, self.consumer):
            session.client.read(0.0)
            session.answered = self._answered(session)

    def _put_groups(self) -> int:
        """Puts two groups, their messages in any order; one of them may lack a message."""
        words = []
        for _ in range(2):
            self._groups += 1
            last = self.random.randint(1, 4)
            numbers = [one for one in range(1, last + 1) if one == 1 or self.random.random() < 0.9]
            group = f"G{self._groups}"
            words += [f"{group}M{n}{{g={group}.{n}{'!' * (n == last)}}}" for n in numbers]
        self.random.shuffle(words)
        messages = [message_of(word) for word in words]
        self.producer.write(op.Put, destination="queue:groups", messages=messages)
        return len(messages)

    def _came(self, consumer: int, after: int) -> int:
        """How many messages a consumer was delivered behind a delivery."""
        found = (one for one in self.consumer.delivered if one.consumer == consumer)
        return sum(len(one.messages) for one in found if one.first_delivery > after)

    def _answered(self, session: RawSession) -> int:
        return max(
            (
                one.session_sequence
                for one in list(session.client.outcomes.values())[-60:]
                if getattr(one, "session", -1) == session.handle
                and hasattr(one, "session_sequence")
            ),
            default=session.answered,
        )

    def run(self, steps: int) -> None:
        """Writes many units of work."""
        for _ in range(steps):
            self.step()
        self.producer.client.flush()
        self.consumer.client.flush()

    def settle(self) -> None:
        """Waits until the worker has folded everything that was written."""
        for session in (self.producer, self.consumer):
            session.client.flush()
            positions = [one[0] for one in session.positions.values() if one]
            answer = session.client.ask(
                "QUEUE_MANAGER", not_before=max(positions), wait_ms=60_000, wait_seconds=60.0
            )
            assert not answer["reason"], answer
