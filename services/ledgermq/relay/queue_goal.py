"""A queue or topic of another queue manager as the goal of transfers: they are its source (§5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ledgermq.client.sending.sourced import SourcedPuts
from ledgermq.protocol.outcomes import DeliveredMessage
from ledgermq.relay.taking import Item, Taker
from ledgermq.relay.transfers import put_message

if TYPE_CHECKING:
    from ledgermq.client.connection import Connection


class QueueGoal:
    """Where the queue manager of a connection puts what is transferred."""

    def __init__(self, connection: Connection, destination: str, source: str) -> None:
        puts = SourcedPuts(connection)
        self._taker = Taker(connection, puts, destination, source, self._name_of)

    @property
    def taken(self) -> int | None:
        """The last transfer that the destination remembers, as far as this goal knows."""
        return self._taker.taken.get(0)

    def take(self, number: int, messages: Sequence[DeliveredMessage]) -> None:
        """Puts the messages in one Put; what was put by somebody else meanwhile is not."""
        items = [Item(number, put_message(raw)) for raw in messages]
        self._taker.take(0, items)

    @staticmethod
    def _name_of(_: int, item: Item) -> str:
        return f"message {item.message['message_id'].hex()} of transfer {item.position}"
