"""Messages in groups as the log carries them, in the notation of the scripts; raw gets of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ledgermq.client.admin.admin import Admin
from ledgermq.client.connection import Connection
from ledgermq.client.session import Session
from ledgermq.protocol.operations import Acknowledge, Commit, Get, OpenConsumer, Put
from support.scripts.verbs import group_id, message_of

__all__ = ["consume", "get_items", "group_id", "put_items", "put_uncommitted"]

PLAIN: dict[str, Any] = {
    "logical_order": False,
    "all_messages_available": False,
    "all_segments_available": False,
    "complete_message": False,
    "message_id": b"",
    "correlation_id": None,
    "group_id": b"",
    "group_sequence": 0,
    "offset": -1,
    "sequence": -1,
}


def put_items(connection: Connection, queue: str, *items: str) -> int:
    """Puts `A`, `Y1{g=Y.1}`, `Y2{g=Y.2!@0+10}` ... (see `support.scripts.verbs`); the position."""
    messages = [message_of(item) for item in items]
    return connection.admin._change(Put, destination=f"queue:{queue}", messages=messages)


def put_uncommitted(
    connection: Connection, session: Session, queue: str, *items: str
) -> Callable[[], int]:
    """Puts in a transacted session's unit of work, the only puts there; what commits it."""
    change = Admin(lambda: session._engine, connection._running.questions)._change
    messages = [message_of(item) for item in items]
    change(Put, destination=f"queue:{queue}", messages=messages)
    return lambda: change(Commit, deliveries=[], puts=len(messages))


def get_items(
    connection: Connection, queue: str, count: int = 1, *, consumer: int = 1, **options: Any
) -> int:
    """Opens a consumer of the administration's session that holds what comes; its session."""
    change = connection.admin._change
    change(OpenConsumer, consumer=consumer, destination=f"queue:{queue}")
    change(Get, consumer=consumer, credit=count, options={**PLAIN, **options})
    return connection._running.control_session().handle


def consume(connection: Connection, *deliveries: int) -> None:
    """Acknowledges deliveries of `get_items`, by their numbers from 1."""
    ranges = [{"first": one, "last": one} for one in deliveries]
    connection.admin._change(Acknowledge, deliveries=ranges)
