"""Stories of messages that expire, and of what else may end them meanwhile."""

from __future__ import annotations

from typing import Any

from ledgermq.protocol import operations as op
from ledgermq.protocol.outcomes import Refused
from support.brokers.log_writer import Script, ScriptSession
from support.random_logs.random_ends import timed_message

# Time to live, delivery delay and age in ms.
SHORT, LONG, LATE = (1_000, 0, 0), (50_000, 0, 0), (0, 2_000, 0)


class Desk:
    """Plays short stories, each with a queue or topic of its own, in one log."""

    def __init__(self) -> None:
        self.script = Script()
        self.session = self.script.session()

    def put(self, name: str, *times: tuple[int, int, int], by: ScriptSession | None = None) -> None:
        """Puts timed messages to queue NAME or topic:NAME."""
        destination = name if name.startswith("topic:") else "queue:" + name
        messages = [timed_message(self.script, one) for one in times]
        (by or self.session).send(op.Put, destination=destination, messages=messages)

    def delete(self, name: str, *, purge: bool = False) -> None:
        """Deletes a queue."""
        self.session.send(op.DeleteQueue, queue=name, purge=purge)

    def correct(self, name: str, sequence: int, action: str = "REMOVE") -> None:
        """Corrects a message."""
        self.session.send(
            op.Correct, queue=name, sequence=sequence, action=action, actor="op", reason="test"
        )

    def taker(self, queue: str, credit: int = 1) -> ScriptSession:
        """A session with a consumer of a queue."""
        session = self.script.session()
        session.consumer(queue, credit=credit)
        return session

    def subscriber(
        self, topic: str, name: str | None = None, credit: int = 0, mode: str = "CLIENT"
    ) -> ScriptSession:
        """A session with a subscription, shared unless it has no name."""
        session = self.script.session(mode)
        named: dict[str, Any] = (
            {} if name is None else {"subscription": name, "shared": True, "durable": True}
        )
        session.subscribe(topic, credit=credit, **named)
        return session


def expired_first(desk: Desk, name: str) -> None:
    """Its time is over before somebody deletes the queue if it is empty."""
    desk.put(name, SHORT)
    desk.script.wait(2)
    desk.delete(name)


def expired_with_the_entry(desk: Desk, name: str) -> None:
    """Its time is over at the very entry that deletes the queue."""
    desk.put(name, SHORT, LONG)
    desk.script.wait(1.2)
    desk.delete(name, purge=True)


def not_yet(desk: Desk, name: str) -> None:
    """The queue is not empty, then it is."""
    desk.put(name, SHORT)
    desk.delete(name)
    desk.script.wait(2)
    desk.delete(name)


def under_another_queue(desk: Desk, name: str) -> None:
    """What was purged would have expired under the next queue of that name, which has one too."""
    desk.put(name, SHORT, SHORT)
    desk.delete(name, purge=True)
    desk.put(name, LONG)
    desk.script.wait(2)
    desk.delete(name)


def removed_while_it_lives(desk: Desk, name: str) -> None:
    """Removed by hand; by the deletion it would have expired, another one has not."""
    desk.put(name, SHORT, LONG)
    desk.correct(name, 0)
    desk.script.wait(2)
    desk.delete(name)
    desk.correct(name, 1)
    desk.delete(name)


def corrected_too_late(desk: Desk, name: str) -> None:
    """What has expired cannot be removed."""
    desk.put(name, SHORT)
    desk.script.wait(2)
    desk.correct(name, 0)


def deleted_after_a_correction(desk: Desk, name: str) -> None:
    """A removal empties the queue, so it is another queue whose message a correction names."""
    desk.put(name, LONG)
    desk.correct(name, 0)
    desk.delete(name)
    desk.put(name, SHORT)
    desk.script.wait(2)
    desk.correct(name, 0)


def unborn_when_purged(desk: Desk, name: str) -> None:
    """It would have been born into the next queue of that name."""
    desk.put(name, LATE)
    desk.delete(name, purge=True)
    taker = desk.taker(name, credit=3)
    desk.script.wait(3)
    desk.put(name, LONG)
    taker.close()


def unborn_when_removed(desk: Desk, name: str) -> None:
    """Removed before its birth; what came after it is delivered first and alone."""
    desk.put(name, LATE, LONG)
    desk.correct(name, 0)
    desk.script.wait(3)
    desk.taker(name, credit=2).acknowledge(1)


def held_when_released(desk: Desk, name: str) -> None:
    """Its time is over while somebody holds it; a release lets it expire."""
    desk.put(name, SHORT)
    taker = desk.taker(name)
    desk.script.wait(2)
    taker.send(op.CloseConsumer, consumer=1, unseen=[])
    desk.delete(name, purge=True)
    desk.correct(name, 0, "RELEASE")
    desk.delete(name)


def held_when_removed(desk: Desk, name: str) -> None:
    """Removed from its holder after its time was over."""
    desk.put(name, SHORT)
    desk.taker(name)
    desk.script.wait(2)
    desk.correct(name, 0)


def back_when_the_holder_is_lost(desk: Desk, name: str) -> None:
    """It expires as it comes back at the entry that deletes the queue."""
    desk.put(name, SHORT)
    taker = desk.taker(name)
    desk.script.add(op.Suspect(worker="w", sessions=[taker.handle]))
    desk.script.wait(3)
    desk.delete(name)


# Story; of each queue of that name (expired, purged, removed, consumed, resident); refusals.
QUEUES = (
    (expired_first, [(1, 0, 0, 0, 0)], []),
    (expired_with_the_entry, [(1, 1, 0, 0, 0)], []),
    (not_yet, [(1, 0, 0, 0, 0)], ["queue-not-empty"]),
    (under_another_queue, [(0, 2, 0, 0, 0), (0, 0, 0, 0, 1)], ["queue-not-empty"]),
    (removed_while_it_lives, [(0, 0, 2, 0, 0)], ["queue-not-empty"]),
    (corrected_too_late, [(1, 0, 0, 0, 0)], ["sequence-unknown"]),
    (deleted_after_a_correction, [(0, 0, 1, 0, 0), (1, 0, 0, 0, 0)], ["sequence-unknown"]),
    (unborn_when_purged, [(0, 1, 0, 0, 0), (0, 0, 0, 0, 1)], []),
    (unborn_when_removed, [(0, 0, 1, 1, 0)], []),
    (held_when_released, [(1, 0, 0, 0, 0)], ["queue-in-use"]),
    (held_when_removed, [(0, 0, 1, 0, 0)], []),
    (back_when_the_holder_is_lost, [(1, 0, 0, 0, 0)], []),
)


def unsubscribed(desk: Desk, topic: str) -> None:
    """One copy expired before its subscription ended, one goes with it."""
    subscriber = desk.subscriber(topic, "s" + topic)
    desk.put("topic:" + topic, SHORT, LONG)
    subscriber.send(op.CloseConsumer, consumer=1, unseen=[])
    desk.script.wait(2)
    subscriber.send(op.Unsubscribe, subscription="s" + topic)


def expired_in_one_of_two(desk: Desk, topic: str) -> None:
    """Held by one subscription until it ended, expired in the other long before."""
    subscriber = desk.subscriber(topic, credit=1)
    desk.subscriber(topic, "s" + topic)
    desk.put("topic:" + topic, SHORT)
    desk.script.wait(2)
    subscriber.close()


def purged_with_its_topic(desk: Desk, topic: str) -> None:
    """The topic is deleted with what its durable subscription still has."""
    subscriber = desk.subscriber(topic, "s" + topic)
    desk.put("topic:" + topic, SHORT, LONG, LATE)
    subscriber.send(op.CloseConsumer, consumer=1, unseen=[])
    desk.script.wait(1.5)
    desk.session.send(op.DeleteTopic, topic=topic, purge=True)
    desk.script.wait(2)


def over_when_numbered(desk: Desk, topic: str) -> None:
    """Its time was over before the commit that numbers it also ends its subscription."""
    subscriber = desk.subscriber(topic, credit=1, mode="TRANSACTED")
    desk.put("topic:" + topic, LONG)
    desk.put("topic:" + topic, (500, 0, 1_000), by=subscriber)
    subscriber.send(op.CloseConsumer, consumer=1, unseen=[])
    subscriber.commit(1)


def over_when_numbered_for_two(desk: Desk, topic: str) -> None:
    """Another subscription stands; there it expires after the first one ended."""
    desk.subscriber(topic, "s" + topic)
    over_when_numbered(desk, topic)


# Story; of the topic (expired, dropped, consumed); of each subscription how many expired, and how
# many went with it.
TOPICS = (
    (unsubscribed, (1, 1, 0), [(1, 1)]),
    (expired_in_one_of_two, (1, 0, 0), [(1, 0), (1, 0)]),
    (purged_with_its_topic, (1, 2, 0), [(1, 2)]),
    (over_when_numbered, (0, 1, 1), [(0, 1)]),
    (over_when_numbered_for_two, (1, 0, 0), [(1, 0), (0, 1)]),
)


def told() -> tuple[Script, dict[str, list[str]]]:
    """All of these stories in one log, and why what was refused: by the names of the stories."""
    desk = Desk()
    refusals = {}
    for story, *_ in (*QUEUES, *TOPICS):
        begin = len(desk.script.entries)
        story(desk, story.__name__)
        refusals[story.__name__] = [
            one.outcome.reason
            for found in desk.script.outcomes[begin:]
            for one in found
            if isinstance(one.outcome, Refused)
        ]
    return desk.script, refusals
