"""Why messages of a queue are not delivered, and its consumers get none (PROTOCOL.md §9)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from ledgermq.protocol.documents.fields import BESIDE
from ledgermq.protocol.instants import utc_text

# What holds up messages, then what holds up consumers: the rest of a sentence on each.
_OF_MESSAGES: Final = {
    "no-consumer": "available, and no session has a consumer of this queue",
    "gets-disabled": "available, but gets of this queue are disabled: `ledgermq queue resume`",
    "group-reserved": "of group {group} reserved for {holder}, which is inside of it",
    "behind-delayed": "of group {detail} behind one that waits to be redelivered",
    "in-flight": "delivered to {holder}{since} and not settled",
    "uncommitted-put": "put by {holder}{since} and not committed",
    "blocked-put": "sent by {holder}{since}, waiting for room in a quota",
    "unborn": "not to be delivered yet, the first{until}",
    "delayed": "waiting to be redelivered, the first{until}",
}
_OF_CONSUMERS: Final = {
    "no-credit": "asks for nothing: the application has not called receive, or has not acknowledged"
    " what it prefetched ({in_flight} in flight)",
    "suspected": "gets nothing: its client has not been heard of, and its session ends{until}",
    "unit-of-work-ended": "gets nothing until its session rolls back: administration or a "
    "limit ended its unit of work",
    "in-doubt": "was sent a message that an application may have fallen over, and gets nothing "
    "before it has handed that over",
    "unacknowledged-max": "gets nothing: its session holds {in_flight} unsettled messages, as many "
    "as unacknowledged_max allows",
    "stand-by": "stands by: the queue delivers to one consumer at a time, and {detail}",
    "fifo-mode": "waits its time: the queue is serialized, and {detail}",
    "nothing-available": "asks for messages, and none is available",
    "nothing-selected": "asks for messages, and none that is available matches {detail}",
    "group-incomplete": "asks for whole groups or messages, and {detail}",
    "next-in-group": "is inside of group {group} and waits for {detail}",
    "bonded-to-others": "asks for messages, and what it may have is of groups that go to other "
    "consumers",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """What holds up messages of a queue, or a consumer.

    Attributes:
        cause: A key of PROTOCOL.md §9 Obstacles.
        messages: How many messages it holds up; None: it is about a consumer.
        session: Handle of the session that holds them, or has the consumer; None: no one session.
        consumer: Number of that consumer in its session.
        in_flight: Deliveries of that consumer that are not settled.
        group_id: The group that it is about; None: no one group.
        since: Since when, where that is known.
        until: When it ends by itself, or for the first message, in log time.
        detail: What else the sentence says, in words.
    """

    cause: str
    messages: int | None = None
    session: int | None = None
    consumer: int | None = None
    in_flight: int | None = None
    group_id: bytes | None = None
    since: datetime | None = None
    until: datetime | None = None
    detail: str = ""

    @property
    def text(self) -> str:
        """One sentence for people."""
        holder = "another session" if self.session is None else f"session {self.session}"
        if self.consumer is not None:
            holder = f"consumer {self.consumer} of {holder}"
        facts = {
            "holder": holder,
            "group": "" if self.group_id is None else self.group_id.hex(),
            "in_flight": self.in_flight,
            "detail": self.detail,
            "since": "" if self.since is None else f" since {_moment(self.since)}",
            "until": "" if self.until is None else f" at {_moment(self.until)}",
        }
        if self.messages is None:
            rest = _OF_CONSUMERS.get(self.cause, self.cause)
            return f"{holder} {rest.format_map(facts)}"
        what = "message is" if self.messages == 1 else "messages are"
        if self.cause in ("group-reserved", "behind-delayed"):
            what = what.partition(" ")[0]
        rest = _OF_MESSAGES.get(self.cause, self.cause)
        return f"{self.messages:,} {what} {rest.format_map(facts)}"


def _moment(moment: datetime) -> str:
    return utc_text(moment, "seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueObstacles:
    """Why nothing moves in a queue, at a log position: everything that can be delivered has been.

    Attributes:
        message_count: Messages in the queue that have a number.
        available: Those of them that nobody holds and that are due: nobody may have one now.
        consumers: Consumers that are there.
        obstacles: What holds up messages, most of them first, then what holds up each consumer.
        more: Whether there are more obstacles than are listed.
    """

    position: int = field(metadata=BESIDE)
    destination: str
    message_count: int
    available: int
    consumers: int
    obstacles: tuple[Obstacle, ...]
    more: bool

    @property
    def summary(self) -> str:
        """The whole in one sentence."""
        named = self.destination.replace(":", " ", 1)
        if not self.message_count:
            return f"{named} holds no message"
        if self.message_count == 1:
            can = (
                "can be delivered, and nobody may have it"
                if self.available
                else "cannot be delivered"
            )
            return f"the one message of {named} {can} now"
        if self.available:
            return (
                f"{self.available:,} of the {self.message_count:,} messages of {named} can be "
                "delivered, and nobody may have them now"
            )
        return f"none of the {self.message_count:,} messages of {named} can be delivered now"
