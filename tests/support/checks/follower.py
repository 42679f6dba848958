"""A follower of an installation: folds the ledger on, and holds what it finds on disk against it.

It reads only what came since it last looked, so that it can look after every round of a long soak.
What a worker may have left undone when it was killed is allowed, and nothing else:

- every outcome on a lane is one of the fold, with the same content, and chains have no hole;
- below the position of the newest manifest no outcome is missing (H1);
- the digest in each manifest is that of the fold's state at its position (D5).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ledgermq.core.apply import apply, new_state
from ledgermq.core.queries.destination_status import queue_statuses, topic_statuses
from ledgermq.core.snapshot.state_records import block_of, root_of, take_touched_blocks
from ledgermq.core.state.manager import QueueManager
from ledgermq.processor.checkpoints.digests import chunk_digest, state_digest
from ledgermq.protocol.administration import bodies_in
from ledgermq.protocol.outcomes import Delivered, Outcome, body_place
from ledgermq.wire.framing.checkpoint_chunks import encode_block_record, encode_root, root_parts
from ledgermq.wire.framing.codec import decode_chunk, decode_operation, decode_record
from ledgermq.wire.framing.confluent import headers_of
from ledgermq.wire.framing.headers import CONNECTION
from ledgermq.wire.topics.log_topics import lane_partition
from ledgermq.wire.topics.reading import PartitionReader
from support.checks.witness import Witness
from support.invariants import whole_state as invariants

Identity = tuple[int, int]

KEPT_MANIFESTS = 3


@dataclass(kw_only=True)
class _Lane:
    """How far a lane was read: the next offset, and the last outcome of each connection."""

    next_offset: int = 0
    last: dict[bytes, Identity] = field(default_factory=dict)


class Follower:
    """Follows the queue manager of a place."""

    def __init__(self, place: Any) -> None:
        self._place = place
        self._reader = PartitionReader(place.bootstrap, 30.0)
        self._lanes = [_Lane() for _ in range(place.claim.lanes)]
        self._next_checkpoint_record = 0
        self._blocks: dict[Identity, list[str]] = {}
        self._bodies: dict[int, list[bytes]] = {}
        # Outcomes that a worker may still write, or write again.
        self._expected: dict[Identity, Outcome] = {}
        self._recorded: set[Identity] = set()
        self._forgotten_through = -1
        self._manifests: dict[int, str] = {}
        self.state: QueueManager = new_state()
        self.witness = Witness()
        self.repeats = 0
        self.manifests_seen = 0

    def close(self) -> None:
        """Lets go of the connection."""
        self._reader.close()

    def look(self, *, whole: bool = False) -> None:
        """Reads what came and asserts all of the above; the place must have no worker, or rest.

        `whole`: nothing may be undone, the invariants are checked, and the witness counts.
        """
        manifests = self._new_manifests()
        self._fold(manifests)
        for number, lane in enumerate(self._lanes):
            self._read_lane(number, lane)
        through = self.state.position if whole else max(self._manifests, default=-1)
        missing = [one for one in self._expected if one[0] <= through and one not in self._recorded]
        assert not missing, f"{len(missing)} outcomes to {through} are missing: {missing[:5]}"
        if whole:
            invariants.check(self.state)
            self.witness.compare(queue_statuses(self.state), topic_statuses(self.state))
        self._forget()

    def _new_manifests(self) -> dict[int, str]:
        """Manifests written since the last look: position and digest."""
        topic, partition = self._place.topics.checkpoints, self._place.claim.partition
        _, end = self._reader.ends(topic, partition)
        found: dict[int, str] = {}
        for record in self._reader.records(topic, partition, self._next_checkpoint_record, end):
            if b"/manifest/" not in (record.key() or b""):
                continue
            position = int((record.key() or b"").rpartition(b"/")[2])
            if record.value() is None:
                self._manifests.pop(position, None)
                found.pop(position, None)
            else:
                _, manifest = decode_record(record.value())
                found[position] = manifest["digest"]
        self._next_checkpoint_record = end
        self.manifests_seen += len(found)
        self._manifests |= found
        return found

    def _fold(self, manifests: dict[int, str]) -> None:
        """Folds on to the end of the ledger; compares the digest at each new manifest."""
        topic, partition = self._place.topics.operations, self._place.claim.partition
        _, end = self._reader.ends(topic, partition)
        for record in self._reader.records(topic, partition, self.state.position + 1, end):
            position = record.offset() or 0
            assert position == self.state.position + 1, f"the ledger has a hole at {position}"
            operation = decode_operation(record.value(), self.state.active_version)
            bodies = bodies_in(operation)
            if bodies is not None:
                self._bodies[position] = bodies
            found = apply(self.state, operation, position, record.timestamp()[1] * 1000)
            self.witness.observe(operation, position, found)
            for one in found:
                self._expected[one.outcome.position, one.outcome.index] = one.outcome
            if position in manifests:
                assert self._digest() == manifests[position], (
                    f"the checkpoint at {position} differs"
                )
        assert self.state.position == end - 1, "the ledger was read to its end"

    def _digest(self) -> str:
        """The digest of the fold's state here; its cost follows what changed."""
        for created, block in take_touched_blocks(self.state):
            found = block_of(self.state, created, block)
            if found is None:
                self._blocks.pop((created, block), None)
            else:
                values = encode_block_record(found)
                self._blocks[created, block] = [chunk_digest(one) for one in values]
        for key in [key for key in self._blocks if key[0] not in self.state.stores]:
            del self._blocks[key]
        digests = [chunk_digest(part) for part in root_parts(encode_root(root_of(self.state)))]
        for key in sorted(self._blocks):
            digests += self._blocks[key]
        return state_digest(digests)

    def _read_lane(self, number: int, lane: _Lane) -> None:
        claim, topic = self._place.claim, self._place.topics.outcomes
        partition = lane_partition(claim.partition, claim.lanes, number)
        _, end = self._reader.ends(topic, partition)
        for record in self._reader.records(topic, partition, lane.next_offset, end):
            headers = dict(headers_of(record))
            if headers["ce_type"] == b"ledgermq.outcome.Chunk":
                self._take_chunk(lane, headers[CONNECTION], decode_chunk(record.value()))
        lane.next_offset = end

    def _take_chunk(self, lane: _Lane, connection: bytes, chunk: Any) -> None:
        previous = (chunk.previous_position, chunk.previous_index)
        chained = previous[1] != -2
        for outcome in chunk.outcomes:
            identity = (outcome.position, outcome.index)
            self._compare(identity, outcome)
            last = lane.last.get(connection, (-1, -1))
            if chained and identity > last:
                # A connection whose last session ended begins its chain anew.
                assert previous in (last, (-1, -1)), (
                    f"{connection!r}: {identity} follows {previous}, the lane had {last}"
                )
                lane.last[connection] = identity
            previous = identity

    def _compare(self, identity: Identity, outcome: Outcome) -> None:
        if identity[0] <= self._forgotten_through:
            self.repeats += 1
            return
        expected = self._expected.get(identity)
        assert expected is not None, f"outcome {identity} is nowhere in the ledger"
        if isinstance(expected, Delivered):
            for message in expected.messages:
                position, index = body_place(message)
                message["content"] = self._bodies[position][index]
                message.pop("body", None)
        assert outcome == expected, f"outcome {identity} differs"
        self.repeats += identity in self._recorded
        self._recorded.add(identity)

    def _forget(self) -> None:
        """Lets go of what no worker writes again: what the oldest kept checkpoint covers."""
        kept = sorted(self._manifests)[-KEPT_MANIFESTS:]
        if len(kept) < KEPT_MANIFESTS:
            return
        self._forgotten_through = kept[0]
        self._recorded = {one for one in self._recorded if one[0] > kept[0]}
        self._expected = {key: one for key, one in self._expected.items() if key[0] > kept[0]}
