"""A consumer's buffer: what has been delivered and not yet handed over, and the credit behind it.

Of `prefetch` messages, each is at any time either standing credit at the queue manager, or in this
buffer, or **due**: taken by the application and not yet granted again. A grant covers all that is
due, and is made when half of the prefetch is. Where logical messages come complete, their segments
are joined here and count as one message, as they do for credit. A group that is got as a whole is
**gathered** first: what is set aside counts as taken, so that the rest is asked for, and is handed
over with its last message only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from ledgermq.client.sansio.ranges import DeliveryRanges
from ledgermq.client.sansio.segments import ends_unit, further_of, group_of, join, left_open
from ledgermq.errors.warnings import LedgerMQWarning
from ledgermq.protocol.get_options import PLAIN, Options
from ledgermq.protocol.outcomes import EMPTY_HEADER, DeliveredMessage

NEVER: Final = 2**63
# Of how many messages that were given back it is known that the log sees their time otherwise.
RETURNED_MAX: Final = 10_000


class ConsumerBuffer:
    """Deliveries of one consumer in delivery order; knows nothing of threads or Kafka.

    Attributes:
        count: How many messages can be taken.
        doubt: The delivery in doubt that the queue manager must hear of first; 0: none.
        expires_at: When, by the log, the first of what is here may expire; NEVER: nothing does.
        options: What the credit granted last is for.
        unfinished: What a get in another order now would leave incomplete; None: nothing.
    """

    def __init__(self, number: int, destination: str, prefetch: int) -> None:
        self.number = number
        self.destination = destination
        self.prefetch = prefetch
        self.threshold = max(1, prefetch // 2)
        self.due = prefetch
        self.count = 0
        self.doubt = 0
        self.options: Options = PLAIN
        self.unfinished: type[LedgerMQWarning] | None = None
        self._batches: deque[tuple[int, list[DeliveredMessage]]] = deque()
        self._batch: list[DeliveredMessage] = []
        self._first = 0
        self._place = 0
        self._segments: list[DeliveredMessage] = []
        self._segments_first = 0
        self._gathered: list[tuple[int, DeliveredMessage]] = []
        self._joins = False
        # What was found expired last, and what went back for that, by sequence number.
        self._over: list[int] = []
        self._returned: dict[int, None] = {}
        self.expires_at = NEVER

    def deliver(self, first_delivery: int, messages: list[DeliveredMessage]) -> None:
        self.expires_at = min(self.expires_at, min(map(_expiry, messages), default=NEVER))
        if self.options.complete_message:
            self._join(first_delivery, messages)
        else:
            self._batches.append((first_delivery, messages))
            self.count += len(messages)

    def _join(self, first_delivery: int, messages: list[DeliveredMessage]) -> None:
        """Takes in logical messages, the segments of which may come in several deliveries."""
        self._joins = True
        for delivery, message in enumerate(messages, first_delivery):
            if not self._segments:
                self._segments_first = delivery
            self._segments.append(message)
            if ends_unit(self._segments):
                # A batch of its own each, as a joined message has more than one number.
                self._batches.append((self._segments_first, [join(self._segments)]))
                self._segments = []
                self.count += 1

    def take(self) -> tuple[int, DeliveredMessage]:
        """Hands over the next message with its delivery number; only while `count` is above 0.

        Ctrl-C comes where something is called, so nothing is from the first change to the end.
        """
        if self._place == len(self._batch):
            self._next_batch()
        place = self._place
        self._place = place + 1
        self.count -= 1
        self.due += 1
        return self._first + place, self._batch[place]

    def take_run(self, limit: int) -> tuple[int, list[DeliveredMessage]]:
        """Hands over up to `limit` messages that are numbered one after the other, as `take`."""
        if self._place == len(self._batch):
            self._next_batch()
        place = self._place
        run = self._batch[place : place + limit]
        number = len(run)
        self._place = place + number
        self.count -= number
        self.due += number
        return self._first + place, run

    def _next_batch(self) -> None:
        self._first, self._batch = self._batches[0]
        self._place = 0
        self._batches.popleft()

    def gather(self) -> bool:
        """Sets aside what there is of the group that comes next; True once that is all of it.

        A message in no group is whole by itself. Stops before a message in doubt.
        """
        if self._gathered and left_open(self._gathered[-1][1]) is None:
            return True
        while self.count and not self.in_doubt:
            one = self.take()
            self._gathered.append(one)
            if left_open(one[1]) is None:
                return True
        return False

    @property
    def gathered(self) -> int:
        return len(self._gathered)

    def take_gathered(self) -> list[tuple[int, DeliveredMessage]]:
        """Hands over what was gathered, each with its delivery number."""
        gathered, self._gathered = self._gathered, []
        return gathered

    def put_back_gathered(self) -> None:
        """What was gathered comes one by one: nobody waits for the whole group any more."""
        if self._gathered:
            self.put_back(self._gathered)
            self._gathered = []

    def put_back(self, taken: list[tuple[int, DeliveredMessage]]) -> None:
        """What was taken last comes again; each with the first of its delivery numbers."""
        rest = [(self._first + self._place, self._batch[self._place :])]
        before = [(first, [message]) for first, message in taken]
        self._batches = deque([*before, *(rest if rest[0][1] else ()), *self._batches])
        self._batch = []
        self._place = 0
        self.count += len(taken)
        self.due -= len(taken)

    @property
    def next_delivery(self) -> int:
        """The delivery number of the next message; only while `count` is above 0."""
        if self._place < len(self._batch):
            return self._first + self._place
        return self._batches[0][0]

    @property
    def lowest(self) -> int:
        """The lowest delivery number that was not handed over; 0: none is here."""
        if self._gathered:
            return self._gathered[0][0]
        if self.count:
            return self.next_delivery
        return self._segments_first if self._segments else 0

    @property
    def in_doubt(self) -> bool:
        """Whether the next message must be reported before it is handed over (H20)."""
        if not self.doubt or not self.count:
            return False
        first = self.next_delivery
        if first == self.doubt or not self._joins:
            return first == self.doubt
        # It is the last of the segments of one message.
        message = self._batch[0] if self._place < len(self._batch) else self._batches[0][1][0]
        return first + len(further_of(message)) == self.doubt

    def resolve(self, doubt: int) -> None:
        """The queue manager knows that a message in doubt is handed over."""
        if self.doubt == doubt:
            self.doubt = 0

    def _entries(self) -> Iterator[tuple[int, DeliveredMessage]]:
        """Everything that can be taken, with its first delivery number, in order."""
        place, batch = self._place, self._batch
        yield from enumerate(batch[place:], self._first + place)
        for first, messages in self._batches:
            yield from enumerate(messages, first)

    def expired(self, now: int) -> DeliveryRanges:
        """The deliveries that nobody shall get any more, because they have expired.

        In logical order what follows an item of a group goes with it, and comes again in order if
        it may; a group that was being gathered goes as a whole. What comes back although it was
        returned is not returned again: the log knows the time better.
        """
        expired = DeliveryRanges()
        if self._segments:
            return expired  # the rest of a message is about to come
        self.expires_at = NEVER
        self._over = []
        broken = False
        entries = [*self._gathered, *self._entries()]
        for first, raw in entries:
            whole = (raw, *further_of(raw))
            moment = min(map(_expiry, whole))
            over = moment <= now and raw["sequence"] not in self._returned
            if over:
                self._over.append(raw["sequence"])
                broken = broken or (self.options.logical_order and group_of(raw) is not None)
            if over or broken:
                expired.add_range(first, first + len(whole) - 1)
            elif moment > now:
                self.expires_at = min(self.expires_at, moment)
        if broken and self._gathered:
            expired = self.unseen()
        return expired

    def drop(self, unseen: DeliveryRanges) -> None:
        """Forgets deliveries that went back; they can be asked for again."""
        gone = set(unseen.numbers())
        left = [(first, raw) for first, raw in self._entries() if first not in gone]
        self.due += self.count - len(left)
        self._batch, self._place = [], 0
        self._batches = deque((first, [raw]) for first, raw in left)
        self.count = len(left)
        self._gathered = [one for one in self._gathered if one[0] not in gone]
        if self.doubt in gone:
            self.doubt = 0
        self._returned |= dict.fromkeys(self._over)
        while len(self._returned) > RETURNED_MAX:
            del self._returned[next(iter(self._returned))]

    def grant(self) -> int:
        """How much credit to write now; it then counts as granted."""
        due, self.due = self.due, 0
        return due

    def refused(self, options: Options, credit: int) -> None:
        """A grant was refused: other options than these, those before, are in force."""
        self.options = options
        self.due = min(self.prefetch, self.due + credit)

    def withdrawn(self) -> None:
        """All credit was withdrawn; what had come before that is here."""
        self.due = self.prefetch - self.count

    def withdraw(self) -> None:
        """Forgets everything buffered and granted, as after a rollback."""
        self._batches.clear()
        self._batch = []
        self._place = 0
        self._segments = []
        self._gathered = []
        self.count = 0
        self.doubt = 0
        self.due = self.prefetch
        self.unfinished = None

    def unseen(self) -> DeliveryRanges:
        ranges = DeliveryRanges()
        for first, message in self._gathered:
            ranges.add_range(first, first + len(further_of(message)))
        if self._place < len(self._batch):
            self._add_to(ranges, self._first + self._place, self._batch[self._place :])
        for first, messages in self._batches:
            self._add_to(ranges, first, messages)
        if self._segments:
            first = self._segments_first
            ranges.add_range(first, first + len(self._segments) - 1)
        return ranges

    def _add_to(self, ranges: DeliveryRanges, first: int, messages: list[DeliveredMessage]) -> None:
        further = len(further_of(messages[0])) if self._joins else 0
        ranges.add_range(first, first + len(messages) - 1 + further)


def _expiry(message: DeliveredMessage) -> int:
    """When a message expires, in µs by the log."""
    moment = message.get("header", EMPTY_HEADER).get("expires_at", -1)
    return NEVER if moment < 0 else moment
