"""A story of messages that are written again, rightly and wrongly (PROTOCOL.md §22, H24)."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from ledgermq.protocol import operations as op
from ledgermq.protocol.administration import Relocate, RelocatedMessage
from support.brokers.log_writer import Script, ScriptSession
from support.generators.naive_operations import sample_message


def copy_of(
    message: op.PutMessage, position: int, index: int, *places: tuple[int, int]
) -> RelocatedMessage:
    """A message that is written again; places as (creation, number)."""
    plain: Any = {name: value for name, value in message.items() if name != "header"}
    header = message.get("header")
    return {
        "put_position": position,
        "put_index": index,
        "places": [{"created_position": one, "sequence": number} for one, number in places],
        "message": plain,
        "header": [] if header is None else [header],
    }


class Relocated:
    """Messages of a queue and of a topic are written again, rightly and wrongly."""

    def __init__(self) -> None:
        self.script = script = Script()
        session = script.session()
        queue = session.send(op.CreateQueue, queue="q")
        session.send(op.CreateTopic, topic="t")
        subscribed = {"subscription": "s", "durable": True, "shared": True}
        subscription = session.send(
            op.OpenConsumer, consumer=1, destination="topic:t", selector="", **subscribed
        )
        self.message = message = sample_message(7, 4, 30, "red")
        other = sample_message(8, 3, 20, "")
        put = session.send(op.Put, destination="queue:q", messages=[message, other])
        published = session.send(op.Put, destination="topic:t", messages=[other])
        of_queue = copy_of(message, put, 0, (queue, 0))
        self.first = relocate(session, of_queue)
        of_topic = copy_of(other, published, 0, (subscription, 0))
        self.second = relocate(session, of_queue, of_topic)
        heavier = deepcopy(of_queue)
        heavier["message"]["priority"] = 9
        self.refused = {relocate(session, heavier): "message-differs"}
        self.refused[relocate(session)] = "message-invalid"
        self.refused[relocate(session, of_queue, actor="")] = "reason-invalid"
        session.consumer("q", 2, credit=1)
        session.send(op.Acknowledge, deliveries=[{"first": 1, "last": 1}])
        # What is gone is skipped, whatever is said of it.
        self.late = relocate(session, heavier, of_queue)
        session.close()


def relocate(session: ScriptSession, *copies: RelocatedMessage, actor: str = "operator") -> int:
    """Writes messages again; gives the position."""
    return session.send(Relocate, messages=list(copies), actor=actor, reason="disk")
