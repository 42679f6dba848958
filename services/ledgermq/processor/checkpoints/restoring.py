"""A checkpoint made of a rebuilt state, when those that there are are lost or wrong (§10).

Theory of operation. Nothing is believed before its manifest is there, and that is written last:
first the chunks that are not there whole, then the manifests of wrong checkpoints are taken away,
then the manifest. So whoever is killed on the way leaves chunks that the next checkpoint tidies,
and the command can be called again. What was written is read back and made a state of, as a worker
would do it; if that has another digest, the manifest is taken away again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from confluent_kafka import KafkaException

from ledgermq.core.snapshot.state_records import blocks, root_of
from ledgermq.core.state.manager import QueueManager
from ledgermq.errors import LedgerMQError
from ledgermq.processor.checkpoints.contents import contents_of, manifest_of
from ledgermq.processor.checkpoints.digests import chunk_digest, record_digest, state_digest
from ledgermq.processor.checkpoints.loading import (
    FoundCheckpoint,
    LogHere,
    examined,
    found_at,
    log_of,
    readable_manifests,
)
from ledgermq.processor.checkpoints.stored_records import (
    checkpoint_producer,
    read_stored_records,
    write_all,
    written_together,
)
from ledgermq.processor.worker.crash_points import crash_point
from ledgermq.wire.framing.checkpoint_chunks import (
    MANIFEST,
    encode_block_record,
    encode_root,
    root_parts,
)
from ledgermq.wire.framing.checkpoint_keys import chunk_key, manifest_key
from ledgermq.wire.framing.codec import decode_record, encode_record
from ledgermq.wire.topics.ledger import Ledger

RIGHT: Final = "right"
WRONG: Final = "wrong"
UNUSABLE: Final = "unusable"
NOT_JUDGED: Final = "not judged"
WRITER: Final = "restore"


class RestoreFailedError(LedgerMQError):
    """A restored checkpoint was not written, or could not be loaded as it was written."""

    code = "restore-failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a checkpoint is worth: one of the words above, and why in a sentence."""

    position: int
    digest: str
    verdict: str
    why: str

    @property
    def is_retired(self) -> bool:
        """Whether a restore takes its manifest away."""
        return self.verdict in (WRONG, UNUSABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuiltState:
    """A state to write: `blocks` are name of the queue, number, and bytes, in manifest order."""

    position: int
    digest: str
    chain: bytes
    root: bytes
    blocks: Sequence[tuple[str, int, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """How many chunks a checkpoint has, and how many of them were there before."""

    chunks: int
    present: int


def find_checkpoints(ledger: Ledger, *, loads: bool = True) -> list[FoundCheckpoint]:
    """What stands on the topic, lowest position first; LogUnreadableError: Kafka did not answer.

    `loads`: Each that is whole is made a state of too.
    """
    with ledger.reader() as reader:
        here = log_of(reader, ledger)
        records = read_stored_records(reader, ledger)
        found = (
            found_at(here, records, position, loads=loads) for position in sorted(records.manifests)
        )
        return [replace(one, loaded=None) for one in found]


def judge(
    found: Sequence[FoundCheckpoint], digests: Mapping[int, tuple[str, bytes]]
) -> list[Verdict]:
    """What checkpoints are worth, by the digests of state and chain that a rebuild has there."""
    verdicts = []
    for one in found:
        verdict, why = RIGHT, ""
        if one.problem:
            verdict, why = UNUSABLE, one.problem
        elif one.position not in digests:
            verdict, why = NOT_JUDGED, "the rebuild did not come to its position"
        else:
            state, chain = digests[one.position]
            if one.digest != state:
                verdict, why = WRONG, f"its state is not that of the log, whose digest is {state}"
            elif one.chain != chain:
                verdict, why = WRONG, f"its digest chain is not that of the log, {chain.hex()}"
        verdicts.append(Verdict(position=one.position, digest=one.digest, verdict=verdict, why=why))
    return verdicts


def write_restored(ledger: Ledger, state: RebuiltState, retired: Sequence[int]) -> Written:
    """Writes a checkpoint of a rebuilt state, takes others away, and loads it as a worker would.

    No worker may run meanwhile, and all lanes must have the outcomes at or below its position (H1).

    Raises:
        RestoreFailedError: Kafka did not take it, or it could not be loaded; then no checkpoint
            stands at its position.
        LogUnreadableError: Kafka did not answer.
    """
    name, what = ledger.claim.queue_manager, f"the checkpoint at position {state.position}"
    key = manifest_key(name, state.position)
    write = partial(write_all, checkpoint_producer(ledger), ledger)
    with ledger.reader() as reader:
        here = log_of(reader, ledger)
        manifest, unwritten, count = _encoded(here, state)
        try:
            for digests in written_together(unwritten):
                write([(chunk_key(name, one), unwritten[one]) for one in digests])
            crash_point("after-chunks")
            write([(manifest_key(name, one), None) for one in retired])
            crash_point("before-manifest")
            write([(key, encode_record(MANIFEST, manifest))])
            crash_point("after-manifest")
            problem = _problem_of(here, state)
            if problem:
                write([(key, None)])
        except KafkaException as error:
            raise RestoreFailedError(f"{name}: {what} was not written: {error}") from error
    if problem:
        raise RestoreFailedError(f"{name}: {what} was written and taken away again: {problem}")
    return Written(chunks=count, present=count - len(unwritten))


def _encoded(here: LogHere, state: RebuiltState) -> tuple[dict[str, Any], dict[str, bytes], int]:
    """The manifest of a state, the chunks that are not there whole, and how many it has."""
    reader, ledger = here.reader, here.ledger
    record = reader.record_at(*ledger.operations, state.position)
    if record is None:
        raise RestoreFailedError(f"{ledger.name} holds no record at {state.position} any more")
    stored = read_stored_records(reader, ledger).chunks
    unwritten: dict[str, bytes] = {}

    def note(value: bytes) -> str:
        digest = chunk_digest(value)
        if stored.get(digest) != value:
            unwritten[digest] = value
        return digest

    named = ((queue, block, (note(value),)) for queue, block, value in state.blocks)
    contents = contents_of(state.root, named, note)
    assert contents.digest == state.digest, "the rebuild knows its digest"
    manifest = manifest_of(
        reader,
        ledger,
        here.identity,
        contents,
        position=state.position,
        append_time_ms=record.timestamp()[1],
        record_digest=record_digest(record.value()),
        version=decode_record(state.root)[1]["version"],
        chain=state.chain,
        worker=WRITER,
    )
    return manifest, unwritten, len(contents.needed)


def _problem_of(here: LogHere, state: RebuiltState) -> str:
    """Why a worker could not start from what was written, or would have another state; or empty."""
    records = read_stored_records(here.reader, here.ledger)
    manifest = readable_manifests(records).get(state.position)
    if manifest is None:
        return "its manifest is not there"
    found = examined(here, manifest, records)
    if found.problem or found.loaded is None:
        return found.problem
    digest = _digest_of(found.loaded.state)
    if digest != state.digest:
        return f"the state that was loaded has the digest {digest}, not {state.digest}"
    return ""


def _digest_of(state: QueueManager) -> str:
    chunks = root_parts(encode_root(root_of(state)))
    for block in blocks(state):
        chunks += encode_block_record(block)
    return state_digest(map(chunk_digest, chunks))
