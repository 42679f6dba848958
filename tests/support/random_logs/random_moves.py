"""What a random log does so that messages go elsewhere: settings, lifetimes, expiry destinations.

Destinations form cycles, of queues and topics, so that a message may come back to where it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ledgermq.protocol import administration
from ledgermq.protocol import operations as op
from ledgermq.protocol.settings import given_settings
from support.brokers.log_writer import Script, ScriptSession

QUEUES = ("q", "v", "w")
TOPICS = ("t", "v")
DESTINATIONS = ("queue:q", "queue:v", "queue:w", "topic:t", "topic:v", "queue:none", "q", "")
# Units of work of a few messages fit in the smaller ones, or do not.
SEGMENTS_BYTES = (None, None, 250, 500, 2**24, 0)
LIFETIMES_MS = (0, 2_000, 3_000, 5_000, 8_000, 8_000, 2_592_000_000, -1)


class RandomMoves:
    """Chooses at random; refused settings are among it."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._random = script.random

    def begin(self) -> None:
        """Lays a cycle of expiry destinations, through queues and a topic."""
        session = self._script.session()
        for queue in QUEUES:
            session.send(op.CreateQueue, queue=queue)
        session.send(op.CreateTopic, topic="v")
        for kind, name, destination in (
            (op.AlterQueue, "q", "queue:v"),
            (op.AlterQueue, "v", "queue:w"),
            (op.AlterQueue, "w", "topic:v"),
            (op.AlterTopic, "v", "queue:q"),
        ):
            settings = given_settings({"expiry_destination": destination})
            named = {"topic" if kind is op.AlterTopic else "queue": name}
            session.send(kind, settings=settings, **named)
        session.send(op.AlterQueueManager, maximum_lifetime_ms=8_000)
        session.close()

    def weights(self) -> dict[Callable[..., None], int]:
        """What it does, and how often."""
        return {self.alter: 14, self.create: 5, self.limit: 5, self.handle: 10}

    def _settings(self) -> dict[str, Any] | None:
        random = self._random
        told: dict[str, Any] = {}
        if random.random() < 0.7:
            told["expiry_destination"] = random.choice(DESTINATIONS)
        if random.random() < 0.2:
            told["time_to_live_override_ms"] = random.choice((-1, -1, 0, 700, 3_000, -2))
        if random.random() < 0.2:
            told["delivery_delay_override_ms"] = random.choice((-1, -1, 0, 400, 1_500))
        if random.random() < 0.2:
            told["puts_disabled"] = random.random() < 0.4
        return given_settings(told)

    def alter(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Changes settings of a queue or topic."""
        random, settings = self._random, self._settings()
        if random.random() < 0.3:
            session.send(op.AlterTopic, topic=random.choice(TOPICS), settings=settings)
        else:
            session.send(op.AlterQueue, queue=random.choice(QUEUES), settings=settings)

    def create(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Creates a queue or topic with settings."""
        random, settings = self._random, self._settings()
        if random.random() < 0.4:
            session.send(op.CreateTopic, topic=random.choice(TOPICS), settings=settings)
        else:
            session.send(op.CreateQueue, queue=random.choice(QUEUES), settings=settings)

    def handle(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Purges, deletes, moves or copies messages by hand, some of it refused."""
        random = self._random
        source = random.choice(DESTINATIONS)
        name = random.choice(("v", "v", "")) if source.startswith("topic:") else ""
        selection: Any = {
            "source": source,
            "subscription": name,
            "client_id": "",
            "durable": random.random() < 0.7,
            "selector": random.choice(("", "", "color = 'red'", "size >")),
            "sequences": random.choice(([], [{"first": 0, "last": 40}], [{"first": 2, "last": 1}])),
            "after_sequence": random.choice((-1, -1, 3)),
            "limit": random.choice((0, 0, 1, 2)),
        }
        fields = {
            "selection": selection,
            "actor": "op",
            "reason": random.choice(("test", "test", "")),
        }
        what = random.randrange(6)
        if what == 0:
            session.send(administration.PurgeQueue, **fields)
        elif what == 1:
            session.send(administration.DeleteMessages, **fields)
        elif what == 2:
            target = random.choice(DESTINATIONS)
            session.send(administration.CopyMessages, target=target, **fields)
        elif what == 3:
            session.send(administration.MoveMessages, to_origin=True, **fields)
        else:
            target = random.choice(DESTINATIONS)
            session.send(administration.MoveMessages, target=target, **fields)

    def limit(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Gives the queue manager another maximum lifetime, and perhaps another segment size."""
        lifetime_ms = self._random.choice(LIFETIMES_MS)
        segment_bytes = self._random.choice(SEGMENTS_BYTES)
        session.send(
            op.AlterQueueManager, maximum_lifetime_ms=lifetime_ms, segment_bytes=segment_bytes
        )
