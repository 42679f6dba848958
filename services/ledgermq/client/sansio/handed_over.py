"""What a session has handed over and the log does not know yet (decision 24).

Each operation says `handed_through`. That is below what any consumer still has in its buffer, and a
session that only holds what it got writes nothing, so that the heartbeats ask here what is left to
report. What was handed over is noticed in one round and reported in a later one, within a second of
its being handed over, and once. A consumer hands its deliveries over in their order, so its last
one reports all of them (PROTOCOL.md §5 Delivery).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from ledgermq.client.sansio.ranges import DeliveryRanges

# Their rounds are half a second apart, so two of them come within the second.
NOTICED_SECONDS: Final = 0.4
PAUSE_SECONDS: Final = 1.0


class HandedOver:
    """Which deliveries of a session the log knows to be handed over.

    Attributes:
        reported_through: What the operation written last said as `handed_through`.
    """

    def __init__(self) -> None:
        self.reported_through = 0
        # By consumer: what it was delivered, and up to where an Alive was `handing` it.
        self._given: dict[int, DeliveryRanges] = {}
        self._reported: dict[int, int] = {}
        self._noticed = DeliveryRanges()
        self._noticed_at = 0.0
        self._reported_at = -math.inf

    def give(self, consumer: int, first: int, last: int) -> None:
        """A consumer was delivered messages, which it will hand over in this order."""
        given = self._given.get(consumer)
        if given is None:
            given = self._given[consumer] = DeliveryRanges()
        given.add_range(first, last)

    def report(self, consumer: int, delivery: int) -> None:
        self._reported[consumer] = delivery

    def due(self, now: float, held: Iterable[DeliveryRanges], through: int) -> list[int]:
        """What Alives are to be `handing` now, which then counts as reported; 0 is none by name.

        `held` is what was handed over and is not settled, `through` what the next operation says
        as `handed_through`.
        """
        untold = self._untold(held, through)
        if not untold:
            return []
        everything = DeliveryRanges()
        for some in untold.values():
            everything.add_all(some)
        if not everything.common(self._noticed):
            self._noticed, self._noticed_at = everything, now
            return []
        if now - self._noticed_at < NOTICED_SECONDS or now - self._reported_at < PAUSE_SECONDS:
            return []
        self._reported_at = now
        beyond = {consumer: some.highest for consumer, some in untold.items()}
        beyond = {consumer: last for consumer, last in beyond.items() if last > through}
        self._reported.update(beyond)
        return list(beyond.values()) or [0]

    def _untold(self, held: Iterable[DeliveryRanges], through: int) -> dict[int, DeliveryRanges]:
        """What is held and no operation has reported, by consumer; forgets what matters no more."""
        everything = DeliveryRanges()
        for some in held:
            everything.add_all(some)
        # What was settled meanwhile is not kept for an older one that is held for long.
        held_below = everything.up_to(through)
        kept: dict[int, DeliveryRanges] = {}
        for consumer, given in self._given.items():
            kept[consumer] = held_below.common(given)
            kept[consumer].add_all(given.above(through))
        self._given = {consumer: given for consumer, given in kept.items() if given}
        reported = self._reported.items()
        self._reported = {one: last for one, last in reported if one in self._given}
        beyond = everything.above(self.reported_through)
        found = {
            consumer: beyond.common(given).above(self._reported.get(consumer, 0))
            for consumer, given in self._given.items()
        }
        return {consumer: some for consumer, some in found.items() if some}
