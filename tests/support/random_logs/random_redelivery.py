"""What a random log does so that messages are redelivered late, and go where they fail too often.

Error destinations form cycles, of queues and a topic, so that a message may come back to where it
was; limits are low, so that this happens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ledgermq.protocol import operations as op
from ledgermq.protocol.settings import FIFO_MODES, given_settings, redelivery_in
from support.brokers.log_writer import Script, ScriptSession, ranges
from support.random_logs.random_ends import timed_message

QUEUES = ("q", "v", "w")
TOPIC = "v"
DESTINATIONS = ("queue:q", "queue:v", "queue:w", "topic:v", "queue:none", "")
DELAYS_MS = (0, 0, 40, 300, 1_500)
LIMITS = (-1, -1, 0, 1, 2)
STEPS: tuple[Any, ...] = (
    [],
    [{"retries": 0, "delay_ms": 200}, {"retries": 2, "delay_ms": 0}],
    [{"retries": 1, "delay_ms": 700}],
    [{"retries": 1, "delay_ms": 700}, {"retries": 1, "delay_ms": 5}],
)


class RandomRedelivery:
    """Chooses at random; refused settings are among it."""

    def __init__(self, script: Script, *, ordered: bool = False) -> None:
        self._script = script
        # Whether groups keep their order, and messages are of groups.
        self._ordered = ordered
        self._random = script.random

    def begin(self) -> None:
        """Lays a cycle of error destinations, through queues and a topic, some with limits."""
        session = self._script.session()
        for queue in QUEUES:
            session.send(op.CreateQueue, queue=queue)
        session.send(op.CreateTopic, topic=TOPIC)
        for name, destination, limit in (("q", "queue:v", 1), ("v", "queue:w", 0), ("w", "", 2)):
            told: dict[str, Any] = {"error_destination": destination, "redelivery_limit": limit}
            told["keeps_group_order"] = self._ordered
            session.send(op.AlterQueue, queue=name, settings=given_settings(told))
        told = {"error_destination": "queue:q", "redelivery_delay_override_ms": 400}
        told["keeps_group_order"] = self._ordered
        session.send(op.AlterTopic, topic=TOPIC, settings=given_settings(told))
        session.close()

    def weights(self) -> dict[Callable[..., None], int]:
        """What it does, and how often."""
        return {
            self.alter: 8,
            self.put: 20,
            self.receive: 15,
            self.give_back: 25,
            self.reject: 5,
            self.lose: 5,
        }

    def delay_ms(self) -> int:
        """A redelivery delay that a session asks for."""
        return self._random.choice(DELAYS_MS)

    def alter(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Changes settings of redelivery of a queue or the topic."""
        random = self._random
        choices = {
            "redelivery_delay_override_ms": (-1, -1, 0, 100, 2_000),
            "redelivery_limit": (*LIMITS, -2),
            "redelivery_delay_multiplier_percent": (100, 150, 333, 10_000),
            "redelivery_delay_max_ms": (0, 500, 3_000),
            "redelivery_steps": STEPS,
            "error_destination": DESTINATIONS,
            "fifo_mode": FIFO_MODES,
        }
        told = {
            name: random.choice(some) for name, some in choices.items() if random.random() < 0.4
        }
        if self._ordered:
            told["keeps_group_order"] = random.random() < 0.8
        fields = {"inherits_redelivery": random.choice((None, None, True, False))}
        settings = given_settings(told)
        whose = random.random()
        if whose < 0.3 and settings is not None:
            session.send(op.AlterQueueManager, redelivery=redelivery_in(settings))
        elif whose < 0.5:
            session.send(op.AlterTopic, topic=TOPIC, settings=settings, **fields)
        else:
            session.send(op.AlterQueue, queue=random.choice(QUEUES), settings=settings, **fields)

    def put(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Puts messages with redelivery limits of their own."""
        random = self._random
        times = random.choice(((0, 0, 0), (0, 0, 0), (2_000, 0, 0), (0, 500, 0)))
        messages = [timed_message(self._script, times) for _ in range(random.choice((1, 2)))]
        for one in messages:
            if self._ordered and random.random() < 0.7:
                one["header"]["properties"]["JMSXGroupID"] = random.choice("xy")
            if "header" in one and one["header"] is not None:
                one["header"]["redelivery_limit"] = random.choice(LIMITS)
        destination = random.choice(("queue:q", "queue:q", "queue:v", "queue:w", "topic:" + TOPIC))
        session.send(op.Put, destination=destination, messages=messages)
        if transacted and session.handle in self._script.state.sessions:
            session.commit()

    def receive(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Gets messages with a consumer that may have a redelivery delay of its own."""
        random = self._random
        known = self._script.state.sessions.get(session.handle)
        number = (known.consumer_highest if known else 0) + 1
        fields: dict[str, Any] = {"destination": "queue:" + random.choice(QUEUES)}
        if random.random() < 0.3:
            fields = {"destination": "topic:" + TOPIC, "shared": True, "subscription": "v"}
            fields["durable"] = random.random() < 0.7
        delay_ms = random.choice((-1, -1, *DELAYS_MS, -2))
        session.send(op.OpenConsumer, consumer=number, redelivery_delay_ms=delay_ms, **fields)
        session.get(random.choice((1, 3, 5)), number)

    def give_back(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Rolls back or recovers all that was seen, then perhaps asks for more."""
        (session.rollback if transacted else session.recover)(*held)
        known = self._script.state.sessions.get(session.handle)
        self._script.wait(self._random.choice((0, 0, 0.1, 0.5)))
        if known is not None and known.consumers:
            session.get(3, self._random.choice(list(known.consumers)))

    def reject(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Rejects some of what one consumer holds, or has it put back; now and then too much."""
        random = self._random
        known = self._script.state.sessions.get(session.handle)
        flights = {} if known is None else known.deliveries
        holders = sorted({one.consumer.number for one in flights.values()}) or [1]
        number = random.choice(holders)
        mine = [at for at, one in flights.items() if one.consumer.number == number]
        named = ranges(*[one for one in mine if random.random() < 0.6])
        if random.random() < 0.1:
            number, named = random.choice(((number + 1, named), (number, ranges(99))))
        reason = random.choice(("", "", "it cannot be read", "x" * 1_025))
        requeue = random.random() < 0.4
        delays_ms = (-1, -1, 0, 300, 2_000) if requeue else (-1,)
        session.send(
            op.Reject,
            consumer=number,
            deliveries=named,
            requeue=requeue,
            reason=reason,
            redelivery_delay_ms=random.choice((*delays_ms * 3, 100)),
        )

    def lose(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Lets sessions be lost while delays go on; one entry finds both over."""
        random = self._random
        handles = list(self._script.state.sessions)
        chosen = random.sample(handles, k=min(len(handles), random.choice((1, 2, 5))))
        self._script.add(op.Suspect(worker="w", sessions=chosen))
        self._script.wait(random.choice((0.6, 1.1, 2.1, 46)))
        self._script.add(op.Tick(worker="w"))
