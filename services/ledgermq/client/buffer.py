"""A consumer's buffer: what has been delivered and not yet handed over, and the credit behind it.

Of `prefetch` messages, each is at any time either standing credit at the queue manager, or in this
buffer, or **due**: taken by the application and not yet granted again. A grant covers all that is
due, and is made when half of the prefetch is.
"""

from __future__ import annotations

from collections import deque

from ledgermq.client.ranges import DeliveryRanges
from ledgermq.core.outcomes import DeliveredMessage

__all__ = ["ConsumerBuffer"]


class ConsumerBuffer:
    """Deliveries of one consumer in delivery order; knows nothing of threads or Kafka.

    `doubt` is the delivery in doubt that the queue manager must hear of first; 0: none.
    """

    __slots__ = (
        "_batch",
        "_batches",
        "_first",
        "_place",
        "count",
        "destination",
        "doubt",
        "due",
        "number",
        "prefetch",
        "threshold",
    )

    def __init__(self, number: int, destination: str, prefetch: int) -> None:
        self.number = number
        self.destination = destination
        self.prefetch = prefetch
        self.threshold = max(1, prefetch // 2)
        self.due = prefetch
        self.count = 0
        self.doubt = 0
        self._batches: deque[tuple[int, list[DeliveredMessage]]] = deque()
        self._batch: list[DeliveredMessage] = []
        self._first = 0
        self._place = 0

    def deliver(self, first_delivery: int, messages: list[DeliveredMessage]) -> None:
        """Takes in messages numbered from `first_delivery` on."""
        self._batches.append((first_delivery, messages))
        self.count += len(messages)

    def take(self) -> tuple[int, DeliveredMessage]:
        """Hands over the next message with its delivery number; only while `count` is above 0."""
        if self._place == len(self._batch):
            self._first, self._batch = self._batches.popleft()
            self._place = 0
        place = self._place
        self._place = place + 1
        self.count -= 1
        self.due += 1
        return self._first + place, self._batch[place]

    def take_run(self, limit: int) -> tuple[int, list[DeliveredMessage]]:
        """Hands over up to `limit` messages that are numbered one after the other."""
        if self._place == len(self._batch):
            self._first, self._batch = self._batches.popleft()
            self._place = 0
        place = self._place
        run = self._batch[place : place + limit]
        self._place = place + len(run)
        self.count -= len(run)
        self.due += len(run)
        return self._first + place, run

    @property
    def next_delivery(self) -> int:
        """The delivery number of the next message; only while `count` is above 0."""
        if self._place < len(self._batch):
            return self._first + self._place
        return self._batches[0][0]

    @property
    def in_doubt(self) -> bool:
        """Whether the next message must be told of before it is handed over (H20)."""
        return self.doubt > 0 and self.count > 0 and self.next_delivery == self.doubt

    def resolve(self, doubt: int) -> None:
        """The queue manager knows that a message in doubt is handed over."""
        if self.doubt == doubt:
            self.doubt = 0

    def grant(self) -> int:
        """How much credit to write now; it then counts as granted."""
        due, self.due = self.due, 0
        return due

    def withdraw(self) -> None:
        """Forgets everything buffered and granted, as after a rollback."""
        self._batches.clear()
        self._batch = []
        self._place = 0
        self.count = 0
        self.doubt = 0
        self.due = self.prefetch

    def unseen(self) -> DeliveryRanges:
        """The deliveries in the buffer."""
        ranges = DeliveryRanges()
        left = len(self._batch) - self._place
        if left:
            first = self._first + self._place
            ranges.add_range(first, first + left - 1)
        for first, messages in self._batches:
            ranges.add_range(first, first + len(messages) - 1)
        return ranges
