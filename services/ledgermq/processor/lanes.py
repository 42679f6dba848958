"""Lanes: outcomes gathered into chunks per connection and handed to the producer (PROTOCOL.md
§7).
"""

from __future__ import annotations

from typing import Any

from ledgermq.core.outcomes import Addressed, Delivered, Outcome, Refused
from ledgermq.processor.bodies import BodyStore
from ledgermq.processor.producer import LaneBook, LogProducer
from ledgermq.wire.answers import ANSWER
from ledgermq.wire.codec import encode_chunk
from ledgermq.wire.headers import address_of, chunk_headers
from ledgermq.wire.registry import Claim
from ledgermq.wire.topics import lane_partition

__all__ = ["Folded", "LaneWriter"]

CHUNK = "ledgermq.outcome.Chunk"
OUTCOME_BYTES = 80
DELIVERED_MESSAGE_BYTES = 70

# A record of the log, what its fold came to, and the digest chain up to it.
Folded = tuple[Any, list[Addressed], bytes]


class _Draft:
    """A chunk being gathered."""

    __slots__ = ("chain", "lane", "outcomes", "previous_index", "previous_position", "size_bytes")

    def __init__(
        self, lane: int, previous_position: int, previous_index: int, chain: bytes
    ) -> None:
        self.chain = chain
        self.lane = lane
        self.previous_position = previous_position
        self.previous_index = previous_index
        self.outcomes: list[Outcome] = []
        self.size_bytes = 0


class LaneWriter:
    """Writes one queue manager's outcomes and answers to its lanes."""

    def __init__(
        self, claim: Claim, producer: LogProducer, bodies: BodyStore, chunk_bytes: int
    ) -> None:
        self._claim = claim
        self._producer = producer
        self._bodies = bodies
        self._chunk_bytes = chunk_bytes
        self.book = LaneBook(claim.lanes)
        self.outcomes_written = 0
        self.refused: dict[str, int] = {}

    async def send(self, folded: list[Folded]) -> None:
        """Sends the outcomes of a slice, in order per connection.

        Raises:
            BodyLostError: A body that must go out is gone from the log.
            WriteFailedError: A lane takes no more.
        """
        drafts: dict[bytes, _Draft] = {}
        for record, found, chain in folded:
            for connection, lane, previous_position, previous_index, outcome in found:
                size = OUTCOME_BYTES
                if isinstance(outcome, Delivered):
                    size = await self._complete(outcome)
                elif isinstance(outcome, Refused):
                    self._count_refusal(outcome)
                    size += len(outcome.detail)
                if connection is None:
                    self._send_unchained(record, outcome, chain)
                    continue
                draft = drafts.get(connection)
                if draft is None:
                    draft = drafts[connection] = _Draft(
                        lane, previous_position, previous_index, chain
                    )
                elif draft.size_bytes + size > self._chunk_bytes:
                    self._send_chunk(connection, draft)
                    draft = drafts[connection] = _Draft(
                        lane, previous_position, previous_index, chain
                    )
                    if self._producer.crowded:
                        await self._producer.wait_for_room()
                draft.outcomes.append(outcome)
                draft.chain = chain
                draft.size_bytes += size
        for connection, draft in drafts.items():
            self._send_chunk(connection, draft)
        self._producer.poll()
        if self._producer.crowded:
            await self._producer.wait_for_room()

    async def _complete(self, outcome: Delivered) -> int:
        """Fills in the bodies; the size of the outcome in bytes."""
        messages = outcome.messages
        size = self._bodies.fill(messages)
        if size < 0:
            size = await self._bodies.fill_cold(messages)
        return size + OUTCOME_BYTES + DELIVERED_MESSAGE_BYTES * len(messages)

    def _send_chunk(self, connection: bytes, draft: _Draft) -> None:
        found = draft.outcomes
        value = encode_chunk(draft.previous_position, draft.previous_index, found, draft.chain)
        self._produce(connection, draft.lane, value, CHUNK, found[0].position, found[0].index)
        self.outcomes_written += len(found)

    def _send_unchained(self, record: Any, outcome: Outcome, chain: bytes) -> None:
        """Sends a refusal without a known session where the record's headers say (H29)."""
        address = address_of(record.headers)
        value = encode_chunk(-1, -2, [outcome], chain)
        lane = address.lane if address.connection is not None else 0
        self._produce(address.connection, lane, value, CHUNK, outcome.position, outcome.index)
        self.outcomes_written += 1

    def _count_refusal(self, outcome: Refused) -> None:
        self.refused[outcome.reason] = self.refused.get(outcome.reason, 0) + 1

    def send_answer(self, connection: bytes, lane: int, value: bytes, position: int) -> None:
        """Sends an encoded answer that is true at a position."""
        self._produce(connection, lane, value, ANSWER, position, 0)

    def _produce(
        self,
        connection: bytes | None,
        lane: int,
        value: bytes,
        full_name: str,
        position: int,
        index: int,
    ) -> None:
        name, partition, lanes = self._claim
        lane %= lanes
        self._producer.send_outcomes(
            self.book,
            lane,
            lane_partition(partition, lanes, lane),
            b"" if connection is None else connection.hex().encode(),
            value,
            chunk_headers(name, connection, position, index, full_name),
        )
