"""Bodies that are put to a queue, and what is left of them."""

from __future__ import annotations

from typing import Any

from ledgermq import Connection


def put(connection: Connection, queue: str, *bodies: Any) -> None:
    """Puts bodies, one after the other."""
    with connection.session() as session:
        session.producer(queue).send_many(bodies)


def left(connection: Connection, queue: str) -> list[tuple[Any, int]]:
    """Bodies and delivery counts of what is available, in delivery order."""
    return [(one.body, one.delivery_count) for one in connection.browser(queue)]
