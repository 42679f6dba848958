"""The slow model's FIFO modes and active consumers: who is in turn (PROTOCOL.md §18)."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
RESIDENT = ("available", "unborn", "delayed", "flight")


class ModelFifo:
    """What was received, numbered in the order of first delivery, and what follows from it."""

    messages: list[Row]
    receipts: int
    # Session and number of the consumer that was given a message last, by queue or subscription.
    active: dict[str, tuple[int, int]]

    def settings_of(self, store: str) -> Row:
        """The settings of a queue, or of the topic of a subscription."""
        raise NotImplementedError

    def destination_row(self, store: str) -> Row:
        """A queue, or the topic of a subscription."""
        raise NotImplementedError

    def receivers(self, store: str) -> list[Row]:
        """Open consumers of a queue or subscription."""
        raise NotImplementedError

    def touch(self, name: str) -> None:
        """Notes a queue for delivery."""
        raise NotImplementedError

    def fifo_mode(self, store: str) -> str:
        """The mode of a queue or subscription."""
        return str(self.settings_of(store)["fifo_mode"])

    def keeps_group_order(self, store: str) -> bool:
        """Whether groups of a queue or subscription wait for a delayed message of theirs."""
        return bool(self.settings_of(store)["keeps_group_order"])

    def receive(self, message: Row) -> None:
        """A message is delivered; where a mode asks for it, its first delivery counts."""
        if self.fifo_mode(message["queue"]) != "CONCURRENT" and message["received"] is None:
            self.receipts += 1
            message["received"] = self.receipts

    def change_mode(self, store: str, before: str) -> None:
        """The mode of a queue or subscription was another one."""
        mine = [one for one in self.messages if one["queue"] == store]
        if self.fifo_mode(store) == "CONCURRENT":
            for message in mine:
                message["received"] = None
        elif before == "CONCURRENT":
            held = [one for one in mine if one["place"] == "flight"]
            for message in sorted(held, key=_in_delivery_order):
                self.receive(message)

    def received(self, store: str) -> list[Row]:
        """What was received and is there, what comes first before the others."""
        mine = [one for one in self.messages if one["queue"] == store]
        mine = [one for one in mine if one["received"] is not None and one["place"] in RESIDENT]
        return sorted(mine, key=_in_delivery_order)

    def is_out_of_turn(self, named: list[Row]) -> bool:
        """Whether deliveries are to be settled before others that must be settled first."""
        for message in named:
            if self.fifo_mode(message["queue"]) != "PROTECTED":
                continue
            for other in self.received(message["queue"]):
                before = other["received"] < message["received"]
                before = before and _in_delivery_order(other) < _in_delivery_order(message)
                if before and not any(other is one for one in named):
                    return True
        return False

    def in_turn(self, store: str, order: list[Row]) -> list[Row]:
        """What of the available messages of a queue or subscription may be delivered now."""
        if self.fifo_mode(store) != "SERIALIZED":
            return order
        mine = [one for one in self.messages if one["queue"] == store]
        if any(one["place"] == "flight" for one in mine):
            return []
        back = self.received(store)
        return [one for one in order if not back or one is back[0]]

    def is_single(self, store: str) -> bool:
        """Whether one consumer at a time is given messages."""
        return bool(self.destination_row(store)["single_active_consumer"])

    def active_of(self, store: str) -> tuple[int, int] | None:
        """Who is active, as long as it is open."""
        active = self.active.get(store)
        is_open = any((one["session"], one["number"]) == active for one in self.receivers(store))
        return active if is_open else None

    def stands_by(self, consumer: Row) -> bool:
        """Whether another consumer is active, or what others hold comes first."""
        store = consumer["queue"]
        active = self.active_of(store)
        if not self.is_single(store):
            return False
        if active is None:
            flying = [one for one in self.messages if one["place"] == "flight"]
            return any(one["queue"] == store for one in flying)
        return active != (consumer["session"], consumer["number"])


def _in_delivery_order(message: Row) -> tuple[int, int]:
    return (-message["priority"], message["sequence"])
