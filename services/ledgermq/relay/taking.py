"""How one destination takes parts of a source: what it has is left out, the rest is put once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ledgermq.client.connection import Connection
from ledgermq.client.sansio.sizes import encoded_bytes
from ledgermq.errors import LedgerMQError, QuotaExceededError
from ledgermq.protocol.operations import Put, PutMessage, Source
from ledgermq.protocol.reasons import Reason
from ledgermq.relay.running import SourceMovedError

# What says that a Put was refused because of one of its messages.
OF_A_MESSAGE: Final = (
    Reason.MESSAGE_TOO_LARGE,
    Reason.MESSAGE_INVALID,
    Reason.TRANSACTION_TOO_LARGE,
    Reason.GROUP_NOT_ALLOWED,
    Reason.GROUP_INVALID,
    Reason.GROUP_CLASH,
)
COUNTED: Final = re.compile(r"message (\d+)\b")
PART_MESSAGES_MAX: Final = 1_000
PART_BYTES_MAX: Final = 1024 * 1024


class Item(NamedTuple):
    """A message and the position that it was made of."""

    position: int
    message: PutMessage


# What people know a message of a partition by.
NameOf = Callable[[int, Item], str]


@dataclass(slots=True)
class Pace:
    """How far and how fast a destination is filled; it outlives connections.

    Attributes:
        done: How many messages were put.
        at_once: How many go into one Put: few where the target's quota had no room for more. A
            target that stays full is asked again and again, and what it refuses stands on the log.
    """

    done: int = 0
    at_once: int = PART_MESSAGES_MAX


class Taker:
    """What a destination takes of one source, partition by partition.

    Its puts name the source, so that the destination takes each part of it once (§5). They are of a
    session of their own on the connection, which ends with that.
    """

    def __init__(
        self,
        connection: Connection,
        target: str,
        source: str,
        name_of: NameOf,
        pace: Pace | None = None,
    ) -> None:
        self._pace = pace or Pace()
        self._name_of = name_of
        self._connection = connection
        self._engine = connection.open_work().engine
        self.target = target
        self.source = source
        self.taken: dict[int, int] = {}
        self.refresh()

    def refresh(self) -> None:
        """Asks how far the destination has taken the source; others may take of it too."""
        self.taken = {
            one.partition: one.taken
            for one in self._connection.admin.list_sources()
            if one.destination == self.target and one.name == self.source
        }

    def take(self, partition: int, items: Sequence[Item]) -> None:
        """Puts what was not taken yet, by position; all up to the last one is taken then.

        Raises:
            SourceMovedError: The destination was deleted, or goes on from elsewhere.
            LedgerMQError: It refuses a message, which the text names; all before it is taken.
        """
        for part in _parts(items):
            self._take(partition, part)

    def _take(self, partition: int, items: Sequence[Item]) -> None:
        while left := self._left(partition, items):
            some = _first(left, self._pace.at_once)
            try:
                self._put(partition, some)
            except LedgerMQError as error:
                if error.code not in (Reason.SOURCE_TAKEN, Reason.SOURCE_GAP):
                    self._take_less(error, partition, some)
                    continue
                taken = self.taken.get(partition)
                self.refresh()
                now = self.taken.get(partition)
                if now is None or (taken is not None and now <= taken):
                    raise SourceMovedError(self._moved(partition, taken, now)) from error
            else:
                self.taken[partition] = some[-1].position
                self._pace.at_once = min(2 * self._pace.at_once, PART_MESSAGES_MAX)
                self._pace.done += len(some)

    def _take_less(self, error: LedgerMQError, partition: int, items: Sequence[Item]) -> None:
        """Goes on with fewer at once where a Put of several positions was refused, else raises."""
        is_quota = isinstance(error, QuotaExceededError)
        if error.position is None or not (is_quota or error.code in OF_A_MESSAGE):
            raise error
        if items[0].position < items[-1].position:
            self._pace.at_once = 1
            return
        if is_quota:
            raise error
        # The fold counts the messages of a Put; who reads that knows none of them.
        counted = COUNTED.search(str(error))
        largest = max(items, key=lambda one: encoded_bytes(one.message))
        refused = items[int(counted[1])] if counted else largest
        error.args = (f"{self._name_of(partition, refused)}: {error}",)
        raise error

    def _moved(self, partition: int, taken: int | None, now: int | None) -> str:
        """What the destination remembers of the source, and what it should remember."""
        found = "nothing" if now is None else f"its positions up to {now}"
        expected = "something" if taken is None else f"them up to {taken}"
        return (
            f"{self.target} on {self._connection.queue_manager} remembers {found} of partition "
            f"{partition} of source {self.source}, and should remember {expected}: it was deleted, "
            "or its queue manager was restored to an earlier moment. The run begins again from "
            "what it remembers"
        )

    def _left(self, partition: int, items: Sequence[Item]) -> Sequence[Item]:
        taken = self.taken.get(partition)
        return [one for one in items if taken is None or one.position > taken]

    def _put(self, partition: int, items: Sequence[Item]) -> None:
        """Puts all or none; after an unknown outcome, to put them again is safe."""
        taken = self.taken.get(partition)
        source: Source = {
            "name": self.source,
            "partition": partition,
            "first": items[0].position if taken is None else taken + 1,
            "last": items[-1].position,
        }
        messages = [one.message for one in items]
        fields = {"destination": self.target, "messages": messages, "source": source}
        self._engine.run(self._engine.administer(Put, self.target, fields))


def _first(items: Sequence[Item], count: int) -> Sequence[Item]:
    """As many of the first ones; messages of one position stay together."""
    while count < len(items) and items[count].position == items[count - 1].position:
        count += 1
    return items[:count]


def _parts(items: Sequence[Item]) -> list[list[Item]]:
    """What goes into one Put after the other; messages of one position stay together."""
    parts: list[list[Item]] = []
    size_bytes = 0
    for one in items:
        size = encoded_bytes(one.message)
        part = parts[-1] if parts else []
        is_full = len(part) >= PART_MESSAGES_MAX or size_bytes + size > PART_BYTES_MAX
        if not parts or (is_full and one.position > part[-1].position):
            parts.append([])
            size_bytes = 0
        parts[-1].append(one)
        size_bytes += size
    return parts
