"""Lanes: outcomes, gathered into chunks per connection, go to the producer (PROTOCOL.md §7).

Where a body left the cache, the outcomes of that connection are held, in order, until it was read
back from the log; all others go on (H21). When very much is held, the fold waits.

What is not chained goes in turn too, as do answers to RESYNC: a reader whose session has closed
would take that for lost if it were told first that there is no such session.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from ledgermq.errors import LedgerMQError
from ledgermq.processor.lanes.bodies import BodyStore
from ledgermq.processor.lanes.producer import LaneBook, LogProducer
from ledgermq.processor.metrics.tally import Tally
from ledgermq.protocol.header_size import header_bytes
from ledgermq.protocol.outcomes import Addressed, Committed, Delivered, Outcome, Refused
from ledgermq.wire.framing.codec import encode_chunk
from ledgermq.wire.framing.headers import address_of
from ledgermq.wire.framing.schemas import ANSWER, CHUNK
from ledgermq.wire.topics.registry import Claim

OUTCOME_BYTES = 80
DELIVERED_MESSAGE_BYTES = 70
# Of a header beside its texts: times, group and origin; then of each property, and of a run.
HEADER_BYTES = 300
PROPERTY_BYTES = 8
RUN_BYTES = 24

# Instead of the time at which an operation was appended: it is not counted.
NOT_LIVE = -1

# What may be held before the fold waits: messages of deliveries, each other outcome as one.
HELD_MESSAGES_MAX = 20_000
POLL_SECONDS = 0.005

# A record of the log, what its fold came to, and the digest chain up to it.
Folded = tuple[Any, list[Addressed], bytes]


class SendMark(NamedTuple):
    """What had been handed to the lanes at one moment: records per lane, and outcomes held."""

    sent: tuple[int, ...]
    held: int


class _Held(NamedTuple):
    """An outcome that waits for a body, or behind one that does; numbered over all connections.

    Or, with `send`, a record of its own that waits behind one.
    """

    number: int
    addressed: Addressed | None
    chain: bytes = b""
    appended_ms: int = NOT_LIVE
    send: Callable[[], None] | None = None

    @property
    def outcome(self) -> Outcome | None:
        return None if self.addressed is None else self.addressed.outcome

    @property
    def weight(self) -> int:
        return len(self.outcome.messages) if isinstance(self.outcome, Delivered) else 1


@dataclass(slots=True)
class _Draft:
    """The next chunk of a connection; `chain` is of the position of its last outcome.

    `appended` has how many of its outcomes answer operations that were appended at each time in ms.
    """

    lane: int
    previous_position: int
    previous_index: int
    chain: bytes = b""
    outcomes: list[Outcome] = field(default_factory=list)
    appended: dict[int, int] = field(default_factory=dict)
    size_bytes: int = 0


def _bytes_beside_bodies(delivered: Delivered) -> int:
    size = OUTCOME_BYTES + DELIVERED_MESSAGE_BYTES * len(delivered.messages)
    for message in delivered.messages:
        header = message.get("header")
        if header is not None:
            size += HEADER_BYTES + PROPERTY_BYTES * len(header["properties"])
            size += header_bytes(header)
    return size


class LaneWriter:
    def __init__(
        self,
        claim: Claim,
        producer: LogProducer,
        bodies: BodyStore,
        chunk_bytes: int,
        tally: Tally,
    ) -> None:
        self._producer = producer
        self._bodies = bodies
        self._chunk_bytes = chunk_bytes
        self._tally = tally
        self.book = LaneBook(claim)
        self._held: dict[bytes, deque[_Held]] = {}
        self._held_number = 0
        self._held_messages = 0
        self._releasing = 0
        self._fault: LedgerMQError | None = None
        self._wake = asyncio.Event()
        self.outcomes_written = 0

    async def send(self, folded: list[Folded]) -> None:
        """Sends the outcomes of a slice, in order per connection.

        Raises:
            LogUnreadableError: The log did not answer in time.
            WriteFailedError: A lane takes no more.
        """
        drafts: dict[bytes, _Draft] = {}
        tally = self._tally
        for record, found, chain in folded:
            live = record.offset >= tally.live_from
            appended_ms = record.timestamp if live else NOT_LIVE
            for addressed in found:
                connection, outcome = addressed.connection, addressed.outcome
                if live and isinstance(outcome, Refused):
                    tally.refused[outcome.reason] += 1
                if connection is None:
                    named = address_of(record.headers).connection
                    send = partial(self._send_unchained, record, outcome, chain, appended_ms)
                    self._send_draft(named, drafts)
                    self._send_in_turn(named, send)
                    continue
                size = -1 if connection in self._held else self._complete(outcome)
                if size >= 0:
                    if self._draft(drafts, addressed, size, chain, appended_ms):
                        await self._producer.wait_for_room()
                    continue
                self._send_draft(connection, drafts)
                self._hold(connection, _Held(self._held_number + 1, addressed, chain, appended_ms))
        for connection, draft in drafts.items():
            self._send_chunk(connection, draft)
        self._producer.poll()
        await self._producer.wait_for_room()
        while self._held_messages > HELD_MESSAGES_MAX:
            if self._fault is not None:
                raise self._fault
            await asyncio.sleep(POLL_SECONDS)

    def _complete(self, outcome: Outcome) -> int:
        """The size of an outcome in bytes, its bodies filled in; -1 if one is not in memory."""
        if isinstance(outcome, Delivered):
            size = self._bodies.fill(outcome.messages)
            return size if size < 0 else size + _bytes_beside_bodies(outcome)
        if isinstance(outcome, Refused):
            return OUTCOME_BYTES + len(outcome.detail)
        if isinstance(outcome, Committed):
            runs = outcome.enqueued
            return OUTCOME_BYTES + sum(len(run["destination"]) + RUN_BYTES for run in runs)
        return OUTCOME_BYTES

    def _draft(
        self,
        drafts: dict[bytes, _Draft],
        addressed: Addressed,
        size: int,
        chain: bytes,
        appended_ms: int,
    ) -> bool:
        """Adds an outcome to the chunk of its connection; whether a full one was sent."""
        connection, lane, previous_position, previous_index, outcome = addressed
        assert connection is not None, "what has no connection is not chained"
        draft = drafts.get(connection)
        full = draft is not None and draft.size_bytes + size > self._chunk_bytes
        if draft is not None and full:
            self._send_chunk(connection, draft)
        if draft is None or full:
            draft = drafts[connection] = _Draft(lane, previous_position, previous_index)
        draft.chain = chain
        draft.outcomes.append(outcome)
        draft.size_bytes += size
        if appended_ms != NOT_LIVE:
            draft.appended[appended_ms] = draft.appended.get(appended_ms, 0) + 1
        return full

    # What waits for bodies --------------------------------------------------------------------

    def _hold(self, connection: bytes, held: _Held) -> None:
        self._held_number = held.number
        self._held_messages += held.weight
        self._held.setdefault(connection, deque()).append(held)
        self._wake.set()

    def _send_in_turn(self, connection: bytes | None, send: Callable[[], None]) -> None:
        """Sends a record of its own behind what is held for its connection."""
        if connection is not None and connection in self._held:
            self._hold(connection, _Held(self._held_number + 1, None, send=send))
        else:
            send()

    async def release(self) -> None:
        """Sends what is held as its bodies come, for as long as the owner runs.

        Raises:
            LogUnreadableError: The log did not answer in time.
            WriteFailedError: A lane takes no more.
        """
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while self._held:
                    # In turn: who drains a deep queue does not keep others from a single body.
                    connection = next(iter(self._held))
                    await self._release_some(connection, self._held[connection])
        except LedgerMQError as error:
            self._fault = error
            raise

    async def _release_some(self, connection: bytes, waiting: deque[_Held]) -> None:
        """Reads one delivery back; sends it, and what is behind it and needs no reading.

        What comes meanwhile is held behind it, as long as the connection stands among the held.
        """
        self._releasing = waiting[0].number
        first = waiting[0].outcome
        size = -1
        if isinstance(first, Delivered):
            size = await self._bodies.fill_cold(first.messages, first.destination)
            size += _bytes_beside_bodies(first)
        drafts: dict[bytes, _Draft] = {}
        while waiting:
            held = waiting[0]
            _, addressed, chain, appended_ms, send = held
            if addressed is not None and size < 0:
                size = self._complete(addressed.outcome)
                if size < 0:
                    break
            waiting.popleft()
            self._held_messages -= held.weight
            if addressed is None:
                assert send is not None, "it is one or the other"
                self._send_draft(connection, drafts)
                send()
                continue
            if self._draft(drafts, addressed, size, chain, appended_ms):
                await self._producer.wait_for_room()
            size = -1
        for draft in drafts.values():
            self._send_chunk(connection, draft)
        del self._held[connection]
        if waiting:
            self._held[connection] = waiting
        self._releasing = 0
        self._producer.poll()
        await self._producer.wait_for_room()

    def mark(self) -> SendMark:
        held = self._held_number if self._held else 0
        return SendMark(tuple(self.book.sent), held)

    async def acknowledged(self, mark: SendMark) -> None:
        """Waits until everything of a mark is on the lanes, what was held then too (H1)."""
        sent = mark.sent
        if mark.held:
            while self._holds(mark.held):
                await asyncio.sleep(POLL_SECONDS)
            sent = tuple(self.book.sent)
        while not self.book.covers(sent):
            await asyncio.sleep(POLL_SECONDS)

    def _holds(self, number: int) -> bool:
        oldest = [one[0].number for one in self._held.values() if one]
        return any(one <= number for one in oldest) or 0 < self._releasing <= number

    def _send_draft(self, connection: bytes | None, drafts: dict[bytes, _Draft]) -> None:
        """Sends what has gathered for a connection, if anything has."""
        draft = None if connection is None else drafts.pop(connection, None)
        if connection is not None and draft is not None:
            self._send_chunk(connection, draft)

    def _send_chunk(self, connection: bytes | None, draft: _Draft) -> None:
        found = draft.outcomes
        first = found[0]
        self._producer.send_outcomes(
            self.book,
            connection,
            draft.lane,
            encode_chunk(draft.previous_position, draft.previous_index, found, draft.chain),
            CHUNK,
            first.position,
            first.index,
            partial(self._tally.latency.observe, draft.appended),
        )
        self.outcomes_written += len(found)

    def _send_unchained(
        self, record: Any, outcome: Outcome, chain: bytes, appended_ms: int
    ) -> None:
        """Sends a refusal without a known session where the record's headers say (H29)."""
        address = address_of(record.headers)
        lane = address.lane if address.connection is not None else 0
        appended = {} if appended_ms == NOT_LIVE else {appended_ms: 1}
        self._send_chunk(address.connection, _Draft(lane, -1, -2, chain, [outcome], appended))

    def send_answer(
        self, connection: bytes, lane: int, value: bytes, position: int, kind: str
    ) -> None:
        to = (self.book, connection, lane)
        send = partial(self._producer.send_outcomes, *to, value, ANSWER, position)
        # It tells which sessions there are; nothing else that is asked needs a turn.
        if kind == "RESYNC":
            self._send_in_turn(connection, send)
        else:
            send()
