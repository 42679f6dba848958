"""What a checkpoint tells of a queue, topic or subscription, as it was when it was taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ledgermq.core.state.topics import SubscriptionKey
from ledgermq.protocol.settings import Settings
from ledgermq.selector import Selector


@dataclass(slots=True, eq=False, repr=False)
class Taken:
    """Nothing in it changes any more but `encoded`: its bytes, once somebody made them."""

    fields: tuple[Any, ...]
    settings: Settings
    owner: bytes
    gone: tuple[int, ...]
    received: tuple[int, ...]
    parked: dict[bytes, int] | None
    # Of queues: None, or the consumers by bucket. Of subscriptions: topic, key and selector.
    bonds: list[dict[str, int]] | None
    subscribed: tuple[str, SubscriptionKey, Selector | None] | None
    encoded: bytes | None = None
