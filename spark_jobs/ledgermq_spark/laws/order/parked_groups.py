"""Groups that are parked at a store: what is numbered behind them is not left there (§15)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ledgermq_spark.laws.order.store_records import IN_FLIGHT, Message

PARKED_MAX: Final = 10_000


class ParkedGroups:
    """Behind which number each key is parked, and what of it must be gone when the entry is over.

    Whatever of a key comes from elsewhere ends its parking here, though not every reason does so:
    moves do not tell the reason.
    """

    def __init__(self) -> None:
        self.behind: dict[bytes, int] = {}
        self._left: dict[int, Message] = {}

    def park(self, message: Message, others: Iterable[Message]) -> None:
        """A message went to the error destination; it was that or followed another one."""
        key = message.key
        if key is None:
            return
        if message.group is not None and message.group.is_last:
            self.behind.pop(key, None)
            return
        self.behind[key] = min(self.behind.get(key, message.sequence), message.sequence)
        if len(self.behind) > PARKED_MAX:
            del self.behind[next(iter(self.behind))]
        for one in others:
            self.look_at(one)

    def unpark(self, message: Message) -> None:
        """Something of a key came from elsewhere."""
        if message.key is not None:
            self.behind.pop(message.key, None)

    def unpark_all(self) -> None:
        """Nothing asks for it any longer."""
        self.behind = {}

    def look_at(self, message: Message) -> None:
        """A message may have to follow before the entry is over."""
        if self.behind and self._is_behind(message):
            self._left[message.sequence] = message

    def _is_behind(self, message: Message) -> bool:
        key = message.key
        return key is not None and message.sequence > self.behind.get(key, message.sequence)

    def take_left(self) -> Iterator[Message]:
        """What nobody holds and did not follow in the entry that is over."""
        left, self._left = self._left, {}
        for message in left.values():
            if message.state not in (*IN_FLIGHT, "gone") and self._is_behind(message):
                yield message
