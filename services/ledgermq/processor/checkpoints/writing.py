"""Writing checkpoints of one position each, so that cost follows what changed (D5, H1, H13).

Theory of operation. A snapshot is taken between two operations: it is noted what is in the Root,
and in the blocks touched since the last one, so that all is of one position; untouched blocks are
known by digest. The rest goes on beside the fold, in a thread: what was noted is encoded, for which
the fold of a deep queue, or of thousands of queues, would otherwise stand still for a second;
chunks are written first; then, when every lane has acknowledged all outcomes at or below the
position, the manifest; then the position is committed to the group, which a worker that has lost
the partition cannot do; and only after that what no kept manifest needs is taken away.

Chunks whose writing failed stay in memory until a later checkpoint writes them or needs them no
more, and so do blocks that could not be encoded: nothing else remembers that they changed.

No record of a checkpoint is larger than the log takes, whatever the state is: the Root is cut every
4 MiB, large blocks are halved, and references stand on pages (PROTOCOL.md §10).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from confluent_kafka import KafkaException, Producer

from ledgermq.core.snapshot.state_records import (
    TakenBlock,
    TakenRoot,
    take_root,
    take_touched_blocks,
    taken_block,
    touch_all_blocks,
)
from ledgermq.core.state.manager import QueueManager
from ledgermq.errors import LedgerMQError
from ledgermq.processor.checkpoints.blocks import encode_block
from ledgermq.processor.checkpoints.contents import Contents, contents_of, manifest_of
from ledgermq.processor.checkpoints.digests import chunk_digest, record_digest
from ledgermq.processor.checkpoints.loading import Loaded, StoredManifest
from ledgermq.processor.checkpoints.roots import encode_taken_root
from ledgermq.processor.checkpoints.stored_records import (
    checkpoint_producer,
    write_all,
    written_together,
)
from ledgermq.processor.lanes.lanes import LaneWriter, SendMark
from ledgermq.processor.worker.crash_points import crash_point
from ledgermq.processor.worker.logs import KAFKA_LOGGER, ManagerLog
from ledgermq.wire.framing.checkpoint_chunks import MANIFEST
from ledgermq.wire.framing.checkpoint_keys import chunk_key, manifest_key, parse_key
from ledgermq.wire.framing.codec import encode_record
from ledgermq.wire.topics.ledger import Ledger
from ledgermq.wire.topics.reading import PartitionReader

log = logging.getLogger(__name__)

KEPT_MANIFESTS = 3


class CheckpointFailedError(LedgerMQError):
    """A checkpoint could not be made durable; the next attempt covers it."""

    code = "checkpoint-failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state at a position: its Root, what changed in blocks; both are encoded when written.

    `taken` holds the blocks that changed, by (created position, block), None where nothing is left;
    `stores` the queues and subscriptions that there are.
    """

    position: int
    append_ms: int
    record_digest: bytes
    version: int
    chain: bytes
    root: TakenRoot
    taking_seconds: float
    taken: dict[tuple[int, int], TakenBlock | None]
    stores: frozenset[int]
    mark: SendMark


class Checkpointer:
    def __init__(self, ledger: Ledger, loaded: Loaded, worker: str) -> None:
        self._ledger = ledger
        self._name = ledger.claim.queue_manager
        self._worker = worker
        self._identity = loaded.identity
        self._blocks = loaded.blocks
        self._kept = loaded.manifests
        self._stored = loaded.stored
        # Where the topic began and ended when that was looked at last; what was written here since.
        self._ends = loaded.ends
        self._own_records = 0
        self._all_anew = False
        self._rubbish = loaded.rubbish
        self._unwritten: dict[str, bytes] = {}
        self._taken: dict[tuple[int, int], TakenBlock | None] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="checkpoints")
        self._producer: Producer | None = None
        self.durable: dict[str, Any] | None = loaded.manifest
        self.durable_at = time.monotonic()
        self.encoding_seconds = 0.0
        # Of the last checkpoint that became durable here: how long it took, what was written.
        self.duration_seconds: float | None = None
        self.written_bytes: int | None = None
        self._writing_bytes = 0

    def snapshot(self, state: QueueManager, chain: bytes, record: Any, mark: SendMark) -> Snapshot:
        """Takes the state as it is; the mark covers all outcomes up to its position."""
        started = time.monotonic()
        root = take_root(state)
        if self._all_anew:
            touch_all_blocks(state)
            self._all_anew = False
        return Snapshot(
            position=state.position,
            append_ms=record.timestamp,
            record_digest=record_digest(record.value),
            version=state.active_version,
            chain=chain,
            root=root,
            taking_seconds=time.monotonic() - started,
            taken={key: taken_block(state, *key) for key in take_touched_blocks(state)},
            stores=frozenset(state.stores),
            mark=mark,
        )

    def _encode(self, snapshot: Snapshot) -> Contents:
        """Encodes what changed; runs in the thread, and lets the fold go on between blocks."""
        started = time.monotonic()
        self._taken |= snapshot.taken
        for key, taken in list(self._taken.items()):
            if taken is None:
                self._blocks.pop(key, None)
            else:
                digests = tuple(self._note(value) for value in encode_block(taken))
                self._blocks[key] = (taken.queue, digests)
            del self._taken[key]
            time.sleep(0)
        for key in [key for key in self._blocks if key[0] not in snapshot.stores]:
            del self._blocks[key]
        blocks = ((name, key[1], found) for key, (name, found) in sorted(self._blocks.items()))
        contents = contents_of(encode_taken_root(snapshot.root), blocks, self._note)
        known = frozenset(contents.needed)
        for digest in [one for one in self._unwritten if one not in known]:
            del self._unwritten[digest]
        self.encoding_seconds = snapshot.taking_seconds + time.monotonic() - started
        return contents

    def _note(self, value: bytes) -> str:
        """The digest of a chunk, which is written if it was not yet."""
        digest = chunk_digest(value)
        if digest not in self._stored:
            self._unwritten[digest] = value
        return digest

    async def write(
        self, snapshot: Snapshot, lanes: LaneWriter, commit: Callable[[int], Awaitable[None]]
    ) -> dict[str, Any]:
        """Makes a snapshot durable; its manifest.

        Raises:
            CheckpointFailedError: It could not be made, or Kafka did not take it; nothing is lost,
                a later one covers it.
        """
        loop = asyncio.get_running_loop()
        started = time.monotonic()
        try:
            contents = await loop.run_in_executor(self._thread, self._encode, snapshot)
            crash_point("before-chunks")
            await loop.run_in_executor(self._thread, self._write_chunks)
            crash_point("after-chunks")
            await lanes.acknowledged(snapshot.mark)
            manifest = await loop.run_in_executor(
                self._thread, self._write_manifest, snapshot, contents
            )
        except Exception as error:
            # Whatever it is: the queue manager goes on without a checkpoint, and says so.
            raise CheckpointFailedError(
                f"the checkpoint at position {snapshot.position} was not written: "
                f"{str(error) or type(error).__name__}"
            ) from error
        self.durable, self.durable_at = manifest, time.monotonic()
        self.duration_seconds = snapshot.taking_seconds + self.durable_at - started
        self.written_bytes, self._writing_bytes = self._writing_bytes, 0
        crash_point("after-manifest")
        crash_point("before-offset-commit")
        await self._tidy(snapshot, contents, commit)
        return manifest

    def _write_chunks(self) -> None:
        """Writes what is not written yet, some at a time: what is there need not be written again.

        It runs in the thread that encodes, so nothing else looks at the chunks meanwhile.
        """
        for digests in written_together(self._unwritten):
            self._write([(chunk_key(self._name, one), self._unwritten[one]) for one in digests])
            self._stored.update(digests)
            for digest in digests:
                del self._unwritten[digest]

    def _write_manifest(self, snapshot: Snapshot, contents: Contents) -> dict[str, Any]:
        self._check_that_none_expired()
        self._check_that_nobody_took_away(contents)
        manifest = manifest_of(
            self._reader,
            self._ledger,
            self._identity,
            contents,
            position=snapshot.position,
            append_time_ms=snapshot.append_ms,
            record_digest=snapshot.record_digest,
            version=snapshot.version,
            chain=snapshot.chain,
            worker=self._worker,
        )
        crash_point("before-manifest")
        key = manifest_key(self._name, snapshot.position)
        self._write([(key, encode_record(MANIFEST, manifest))])
        return manifest

    def _check_that_none_expired(self) -> None:
        """Has all written anew if the topic begins later than it did, or was made anew itself.

        Compaction keeps what is needed. Else only the state still has what an untouched block
        holds, where the log is trimmed.
        """
        topic, partition = self._ledger.checkpoints
        (before, until), ends = self._ends, self._reader.ends(topic, partition)
        own, self._own_records = self._own_records, 0
        self._ends = ends
        if ends[0] <= before and ends[1] >= until:
            if ends[1] - until != own:
                self._take_in(until, ends[1])
            return
        self._all_anew = True
        self._stored.clear()
        raise CheckpointFailedError(
            f"{topic}-{partition} begins at {ends[0]} and ends at {ends[1]}, after {before} and "
            f"{until}: records that checkpoints build on were taken away, as by a retention. Set "
            f"cleanup.policy=compact for {topic}. The next checkpoint is written whole"
        )

    def _take_in(self, start: int, end: int) -> None:
        """Sees what others wrote, beside what was written here.

        A worker that is frozen while it tidies up goes on with that when it wakes, and takes away
        what its successor has found stored, and needs by then.
        """
        for record in self._reader.records(*self._ledger.checkpoints, start, end):
            name, value = parse_key(self._name, record.key()), record.value()
            if not isinstance(name, str):
                continue
            self._stored.discard(name)
            if value is not None and chunk_digest(value) == name:
                self._stored.add(name)

    def _check_that_nobody_took_away(self, contents: Contents) -> None:
        """Has all encoded anew if chunks are gone: nothing else has those of untouched blocks."""
        gone = sum(one not in self._stored for one in contents.needed)
        if not gone:
            return
        self._all_anew = True
        topic, partition = self._ledger.checkpoints
        raise CheckpointFailedError(
            f"{gone} records of {topic}-{partition} that it builds on were taken away, as by a "
            "worker that was frozen while it tidied up. The next checkpoint writes them again"
        )

    @cached_property
    def _reader(self) -> PartitionReader:
        return self._ledger.reader(KAFKA_LOGGER)

    def _write(self, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        if self._producer is None:
            self._producer = checkpoint_producer(self._ledger)
        try:
            write_all(self._producer, self._ledger, records)
            self._own_records += len(records)
            self._writing_bytes += sum(len(value) for _, value in records if value is not None)
        except KafkaException:
            self._producer = None
            raise

    async def _tidy(
        self, snapshot: Snapshot, contents: Contents, commit: Callable[[int], Awaitable[None]]
    ) -> None:
        """Commits the position; takes away what is not needed, if the group let us (H13)."""
        stored = StoredManifest(snapshot.position, contents.needed)
        known = [one for one in self._kept if one.position != snapshot.position]
        known = sorted([*known, stored], key=lambda one: one.position, reverse=True)
        self._kept, gone = known[:KEPT_MANIFESTS], known[KEPT_MANIFESTS:]
        try:
            await commit(snapshot.position + 1)
            crash_point("after-offset-commit")
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._thread, self._take_away, gone)
            crash_point("after-tidying")
        except Exception as error:
            # The checkpoint is durable; what was not taken away is taken away with the next one.
            self._kept = known
            ManagerLog(log, self._name).warning(
                "after the checkpoint at position %d, tidying up failed: %s",
                snapshot.position,
                error,
                position=snapshot.position,
            )

    def _take_away(self, gone: Sequence[StoredManifest]) -> None:
        """Takes away manifests, and what no kept one needs; in the thread, as that may be many."""
        name = self._name
        needed = {digest for one in self._kept for digest in one.digests}
        spare = self._stored - needed
        # What Kafka may have taken away, whatever it says, counts as gone: who needs it again
        # writes it again.
        self._stored -= spare
        self._rubbish += [chunk_key(name, digest) for digest in sorted(spare)]
        keys = [manifest_key(name, one.position) for one in gone]
        if self._rubbish:
            written = {chunk_key(name, one) for one in needed}
            written |= {manifest_key(name, one.position) for one in self._kept}
            keys += [key for key in self._rubbish if key not in written]
        if keys:
            self._write([(key, None) for key in keys])
        self._rubbish = []

    def close(self) -> None:
        """Stops writing; what is under way is left to the next worker."""
        self._thread.submit(self._disconnect)
        self._thread.shutdown(wait=False)

    def _disconnect(self) -> None:
        """Lets go of threads and files, which else stay until Python looks for cycles."""
        # A reader that nothing was read with yet is not made for that.
        for one in (self._producer, self.__dict__.get("_reader")):
            if one is not None:
                one.close()
