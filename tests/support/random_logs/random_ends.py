"""What a random log does so that messages that expire meet deletions, corrections and takings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ledgermq.protocol import operations as op
from support.brokers.log_writer import Script, ScriptSession, color_header

# Times to live, delivery delays and ages, in ms.
TIMES = ((0, 0, 0), (1_000, 0, 0), (4_000, 0, 500), (0, 2_000, 0), (3_000, 2_500, 0))
TIMES += ((1_000, 3_000, 0), (60_000, 0, 0), (500, 0, 2_000))
# Queues and a topic that few use, so that their deletion is seldom refused.
QUEUES = ("v", "w")
TOPIC = "v"


def timed_message(script: Script, times: tuple[int, int, int], color: str = "red") -> op.PutMessage:
    """A message with a time to live, a delivery delay and an age, in ms."""
    header = color_header(color)
    header["time_to_live_ms"], header["delivery_delay_ms"], header["age_ms"] = times
    return script.message("x", script.random.choice((4, 4, 9)), header)


class RandomEnds:
    """Chooses at random; it looks at the state, so that most of it is legal."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._random = script.random

    def weights(self) -> dict[Callable[..., None], int]:
        """What it does, and how often."""
        return {
            self.put: 40,
            self.take: 25,
            self.delete: 12,
            self.correct: 12,
            self.subscribe: 8,
        }

    def wait(self) -> None:
        """Lets some time pass, often none."""
        self._script.wait(self._random.choice((0, 0, 0, 0.05, 0.3, 1.1)))

    def put(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Puts timed messages to what is to be deleted, and to what is not."""
        random = self._random
        queue = random.choice((*QUEUES, *QUEUES, "q"))
        destination = "topic:" + TOPIC if random.random() < 0.35 else "queue:" + queue
        messages = [
            timed_message(self._script, random.choice(TIMES), random.choice(("red", "blue")))
            for _ in range(random.choice((1, 1, 2)))
        ]
        session.send(op.Put, destination=destination, messages=messages)
        if transacted and session.handle in self._script.state.sessions and random.random() < 0.7:
            self.wait()
            session.commit()

    def take(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Gets a message of a queue for a while, mostly to give it back."""
        random = self._random
        known = self._script.state.sessions.get(session.handle)
        number = (known.consumer_highest if known else 0) + 1
        session.consumer(random.choice(QUEUES), number, credit=random.choice((1, 2)))
        self.wait()
        mine = self._script.in_flight(session)
        if random.random() < 0.4:
            (session.commit if transacted else session.acknowledge)(*mine[-1:])
        elif random.random() < 0.3:
            session.close(*mine[:1])
            return
        elif random.random() < 0.8:
            (session.rollback if transacted else session.recover)(*mine[:1])
        session.send(op.CloseConsumer, consumer=number, unseen=[])

    def delete(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Deletes a queue or the topic, sometimes only if it is empty."""
        random = self._random
        purge = random.random() < 0.4
        if random.random() < 0.3:
            session.send(op.DeleteTopic, topic=TOPIC, purge=purge)
        else:
            session.send(op.DeleteQueue, queue=random.choice(QUEUES), purge=purge)

    def correct(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Removes or releases a message, one that may have gone since."""
        random, state = self._random, self._script.state
        name = random.choice((*QUEUES, "q"))
        queue = state.queues.get(name)
        numbers = list(queue.messages) if queue else []
        last = queue.next_sequence - 1 if queue else 0
        taken = [one for one in numbers if queue and queue.messages[one].consumer is not None]
        sequence = random.choice((*(taken or numbers), last, 0))
        self.wait()
        action = random.choice(("REMOVE", "RELEASE")) if taken else "REMOVE"
        fields: dict[str, Any] = {"action": action, "actor": "op", "reason": "test"}
        session.send(op.Correct, queue=name, sequence=sequence, **fields)

    def subscribe(self, session: ScriptSession, held: list[int], transacted: bool) -> None:
        """Takes from the topic with a subscription that lasts, or one that goes with it."""
        random = self._random
        known = self._script.state.sessions.get(session.handle)
        number = (known.consumer_highest if known else 0) + 1
        fields: dict[str, Any] = {"shared": True, "subscription": "v"}
        if random.random() < 0.6:
            fields["durable"] = True
        elif random.random() < 0.3:
            fields = {}
        session.subscribe(TOPIC, number, credit=random.choice((0, 1, 2)), **fields)
        self.wait()
        if random.random() < 0.6:
            mine = self._script.in_flight(session)
            (session.rollback if transacted else session.recover)(*mine[:1])
            session.send(op.CloseConsumer, consumer=number, unseen=[])
        if random.random() < 0.3:
            # Shared and durable: the name is its own, whatever the client id.
            session.send(op.Unsubscribe, subscription="v")
