"""Which destinations have series of their own, so that their number stays bounded."""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from ledgermq.protocol.limits import TEMPORARY as TEMPORARY_PREFIX

# Names of destinations begin with queue: or topic:, so that no destination is called like these.
TEMPORARY: Final = "temporary"
TEMPORARY_DESTINATIONS: Final = ("queue:" + TEMPORARY_PREFIX, "topic:" + TEMPORARY_PREFIX)
OTHERS: Final = "others"


class Labels:
    """Gives the first `own_max` destinations their own label; the others share one.

    Temporary ones share one in any case: they are many, and none lives long.
    """

    def __init__(self, own_max: int) -> None:
        self.own_max = own_max
        self._own: set[str] = set()

    def of(self, destination: str) -> str:
        if destination in self._own:
            return destination
        if destination.startswith(TEMPORARY_DESTINATIONS):
            return TEMPORARY
        if len(self._own) < self.own_max:
            self._own.add(destination)
            return destination
        return OTHERS

    def forget_all_but(self, destinations: Set[str]) -> set[str]:
        """Lets others have the labels of destinations that are gone; those labels."""
        gone = self._own - destinations
        self._own -= gone
        return gone
