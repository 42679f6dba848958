"""A queue or topic of another queue manager as the goal of transfers: they are its source (§5)."""

from __future__ import annotations

from collections.abc import Sequence

from ledgermq.client.connection import Connection
from ledgermq.client.destinations import is_topic
from ledgermq.errors import GroupNotAllowedError
from ledgermq.protocol.outcomes import DeliveredMessage
from ledgermq.relay.taking import Item, Taker
from ledgermq.relay.transfers import put_message


def _expires(raw: DeliveredMessage) -> bool:
    header = raw.get("header")
    return header is not None and header["expires_at"] >= 0


class QueueGoal:
    """Where the queue manager of a connection puts what is transferred from that of `origin`."""

    def __init__(
        self, connection: Connection, destination: str, source: str, origin: Connection
    ) -> None:
        self._origin = origin
        self._taker = Taker(connection, destination, source, self._name_of)

    @property
    def taken(self) -> int | None:
        """The last transfer that the destination remembers, as far as this goal knows."""
        return self._taker.taken.get(0)

    def check(self, message: DeliveredMessage) -> None:
        """GroupNotAllowedError: it has a place in a group, and goes to a topic.

        Contents are not read here: they go on as they are.
        """
        target, header = self._taker.target, message.get("header")
        if header is not None and header.get("group") is not None and is_topic(target):
            raise GroupNotAllowedError(f"{target} takes no groups", destination=target)

    def take(self, number: int, messages: Sequence[DeliveredMessage]) -> None:
        """Puts the messages in one Put; what was put by somebody else meanwhile is not."""
        log_time_us = self._log_time_us() if any(map(_expires, messages)) else 0
        items = [Item(number, put_message(raw, log_time_us)) for raw in messages]
        self._taker.take(0, items)

    def _log_time_us(self) -> int:
        """The time of the log that the messages come from, in µs since 1970."""
        time = self._origin.admin.queue_manager_status().time
        assert time is not None, "a message came from it"
        return round(time.timestamp() * 1_000_000)

    @staticmethod
    def _name_of(_: int, item: Item) -> str:
        return f"message {item.message['message_id'].hex()} of transfer {item.position}"
