"""Selections of messages that administration acts on by hand (PROTOCOL.md §17)."""

from __future__ import annotations

from ledgermq.protocol.administration import MessageSelection


def of_queue(queue: str, *numbers: int) -> MessageSelection:
    """A selection of some messages of a queue, from the first number to the last, or of all."""
    return {
        "source": f"queue:{queue}",
        "subscription": "",
        "client_id": "",
        "durable": False,
        "selector": "",
        "after_sequence": -1,
        "limit": 0,
        "sequences": [{"first": numbers[0], "last": numbers[-1]}] if numbers else [],
    }
