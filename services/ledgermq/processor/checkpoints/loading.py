"""Loading a checkpoint: the newest that can be used, an older one, or none (H1, H13, H14).

A checkpoint that is incomplete or damaged, or whose lanes are shorter than they were, is passed
over with a word in the log: an older one or the whole log does as well. Where the log is trimmed
and lanes are shorter than at every one, the newest is taken without its outcomes. One that tells
of another log stops the start: then the log or the checkpoints are not what they are taken for, and
only a person can say which.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ledgermq.core.snapshot.state_records import restore
from ledgermq.core.state.manager import QueueManager, new_state
from ledgermq.errors import LedgerMQError
from ledgermq.processor.checkpoints.digests import (
    CHAIN_START,
    chunk_digest,
    record_digest,
    state_digest,
)
from ledgermq.processor.checkpoints.stored_records import read_stored_records
from ledgermq.processor.worker.logs import ManagerLog
from ledgermq.protocol.administration import VersionOffered
from ledgermq.protocol.limits import FIRST_VERSION
from ledgermq.protocol.operations import Upgrade
from ledgermq.protocol.outcomes import Reply
from ledgermq.wire.framing.checkpoint_chunks import (
    MANIFEST,
    ChunkError,
    chunk_of,
    decode_root,
    references_of,
)
from ledgermq.wire.framing.checkpoint_keys import chunk_key, manifest_key
from ledgermq.wire.framing.codec import (
    UndecodableError,
    UnknownSchemaError,
    decode_as,
    decode_operation,
    schema_of,
)
from ledgermq.wire.framing.plain_messages import decode_block
from ledgermq.wire.topics.checkpoint_records import StoredRecords
from ledgermq.wire.topics.identity import LogIdentity, log_identity
from ledgermq.wire.topics.ledger import Ledger
from ledgermq.wire.topics.reading import PartitionReader
from ledgermq.wire.topics.skipping import LookAhead

log = logging.getLogger(__name__)


class CheckpointMismatchError(LedgerMQError):
    """A checkpoint was made from another log than the one that is here."""

    code = "checkpoint-mismatch"


class LogIncompleteError(LedgerMQError):
    """The operations log does not begin where the state must be folded from."""

    code = "log-incomplete"


class VersionUnknownError(LedgerMQError):
    """What is needed to go on is of a version or release that this one does not know."""

    code = "version-unknown"


@dataclass(frozen=True, slots=True)
class StoredManifest:
    position: int
    digests: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Loaded:
    """A state and what goes with it, ready to fold on.

    `blocks` holds the digests of each block's chunks by (created position of its queue, block
    number), with the queue's name; `rubbish` are keys on the topic that are of no use, and
    `ends` are where that began and ended. `anchors` are what the lanes tell of the log.
    """

    state: QueueManager
    chain: bytes = CHAIN_START
    identity: LogIdentity
    blocks: dict[tuple[int, int], tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    manifests: list[StoredManifest] = field(default_factory=list)
    stored: set[str] = field(default_factory=set)
    rubbish: list[bytes] = field(default_factory=list)
    ends: tuple[int, int] = (0, 0)
    manifest: dict[str, Any] | None = None
    anchors: dict[int, bytes] = field(default_factory=dict)


def load(reader: PartitionReader, ledger: Ledger) -> Loaded:
    """The state to go on from.

    Raises:
        CheckpointMismatchError: A checkpoint belongs to another log (H14).
        VersionUnknownError: A newer release wrote a checkpoint, in what only it knows.
        LogIncompleteError: Without a checkpoint, the log must begin at 0 and does not.
        LogUnreadableError: Kafka did not answer.
    """
    here = log_of(reader, ledger)
    records = read_stored_records(reader, ledger)
    first, _ = reader.ends(*ledger.operations)
    loaded = _newest_usable(here, records)
    if loaded is None and first > 0:
        # Nothing else has the state, and whoever misses an outcome asks for it.
        loaded = _newest_usable(here, records, lacks_outcomes=True)
    if loaded is None and first > 0:
        raise LogIncompleteError(
            f"{records.queue_manager}: no checkpoint can be used and {ledger.name} "
            f"begins at {first}, not at 0; restore the log or the checkpoints"
        )
    return _with_stored(loaded or Loaded(state=new_state(), identity=here.identity), records)


def _newest_usable(
    here: LogHere, records: StoredRecords, *, lacks_outcomes: bool = False
) -> Loaded | None:
    """The state of the newest checkpoint that can be used, if need be without its outcomes.

    Raises:
        CheckpointMismatchError, VersionUnknownError, LogUnreadableError: As `load` does.
    """
    name = here.ledger.claim.queue_manager
    about = ManagerLog(log, name)
    for position in sorted(records.manifests, reverse=True):
        found = found_at(here, records, position)
        if found.foreign:
            raise CheckpointMismatchError(
                f"{name}: the checkpoint at position {position} is not of this log: "
                f"{found.problem}. Restore what was there before; or, if the log is right as it "
                "is, declare so: discard the checkpoints with `ledgermq checkpoint discard "
                f"--queue-manager {name} --yes`, and the state is folded anew from the log; where "
                "that is trimmed, from a checkpoint that belongs to it, if there is one."
            )
        if found.of_another_release:
            # What it lacks of the state here came by operations that would be refused if they were
            # folded again, though clients were told otherwise.
            raise VersionUnknownError(
                f"{name}: the checkpoint at position {position} cannot be used: {found.problem}. "
                "Start that release, or a later one. To go on with this one all the same, and have "
                "refused what only that can read on the log, stop all workers and call "
                f"`ledgermq checkpoint discard --queue-manager {name} --yes`"
            )
        if found.loaded is None or (found.problem and not lacks_outcomes):
            about.warning(
                "the checkpoint at position %d cannot be used: %s; trying an older one, or all of "
                "the log",
                position,
                found.problem,
                position=position,
            )
            continue
        # What is passed over counts for nothing: it would keep real checkpoints from staying.
        kept = [one for at, one in readable_manifests(records).items() if at <= position][:3]
        found.loaded.manifests = [_stored(one, records) for one in kept]
        if lacks_outcomes:
            about.warning(
                "the worker starts from the checkpoint at position %d all the same, as the log is "
                "trimmed; clients ask for the outcomes that were lost",
                position,
                position=position,
            )
        return found.loaded
    return None


def _with_stored(loaded: Loaded, records: StoredRecords) -> Loaded:
    """Adds to what was loaded which chunks are written already, and which keys are to be removed.

    A chunk whose bytes have another digest than its key says was overwritten and does not count.
    """
    good = (digest for digest, value in records.chunks.items() if chunk_digest(value) == digest)
    loaded.stored = set(good)
    loaded.ends = records.ends
    name = records.queue_manager
    kept = {manifest_key(name, one.position) for one in loaded.manifests}
    kept |= {chunk_key(name, digest) for digest in loaded.stored}
    loaded.rubbish = [key for key in records.all_keys() if key not in kept]
    return loaded


def readable_manifests(records: StoredRecords) -> dict[int, dict[str, Any]]:
    """The readable manifests by position, the highest first; their chunks are not looked at."""
    found: dict[int, dict[str, Any]] = {}
    for position in sorted(records.manifests, reverse=True):
        with contextlib.suppress(UndecodableError):
            found[position] = _manifest_at(records, position)
    return found


def _manifest_at(records: StoredRecords, position: int) -> dict[str, Any]:
    """UndecodableError: It cannot be read, or is that of another."""
    manifest = decode_as(MANIFEST, records.manifests[position])
    named = (manifest["queue_manager"], manifest["position"])
    if named != (records.queue_manager, position):
        raise UndecodableError(f"it is that of {named[0]} at {named[1]}")
    return manifest


def _stored(manifest: dict[str, Any], records: StoredRecords) -> StoredManifest:
    digests = [one["digest"] for one in manifest["chunks"]]
    with contextlib.suppress(ChunkError, UnknownSchemaError):
        digests += [one["digest"] for one in references_of(manifest, records.chunks)]
    return StoredManifest(manifest["position"], tuple(dict.fromkeys(digests)))


def _damage(manifest: dict[str, Any], records: StoredRecords) -> str:
    """Why a checkpoint is not whole; empty if it is."""
    try:
        digests = [one["digest"] for one in references_of(manifest, records.chunks)]
        for digest in digests:
            chunk_of(records.chunks, digest)
    except ChunkError as error:
        return str(error)
    if state_digest(digests) != manifest["digest"]:
        return "the digest of its list of chunks is wrong"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogHere:
    """The log that is here, which a checkpoint must have been made from."""

    reader: PartitionReader
    ledger: Ledger
    identity: LogIdentity

    def lost_outcomes(self, manifest: dict[str, Any]) -> str:
        """Which lane is shorter than it was at a checkpoint, in words; empty: none is (H1)."""
        ends = zip(self.ledger.lanes, manifest["lane_ends"], strict=False)
        for lane, (partition, wanted) in enumerate(ends):
            _, end = self.reader.ends(self.ledger.topics.outcomes, partition)
            if end < wanted:
                return f"lane {lane} ends at {end}, it ended at {wanted}: outcomes were lost"
        return ""

    def difference(self, manifest: dict[str, Any]) -> str:
        """In what this log differs from the one of a checkpoint, in words; empty: in nothing."""
        position, name = manifest["position"], self.ledger.name
        if manifest["cluster_id"] != self.identity.cluster_id:
            made_on = manifest["cluster_id"]
            return f"it was made on cluster {made_on}, this is {self.identity.cluster_id}"
        if manifest["topic_id"] != self.identity.topic_id:
            return (
                f"it was made from a topic {self.ledger.topics.operations} with id "
                f"{manifest['topic_id']}, this one has id {self.identity.topic_id}: the topic was "
                "deleted and made again"
            )
        record = self.reader.record_at(*self.ledger.operations, position)
        if record is None:
            _, end = self.reader.ends(*self.ledger.operations)
            if position >= end:
                return f"it lies above the end of the log, whose last record is {end - 1}"
            return f"{name} does not hold position {position} any more: the log was cut"
        if record_digest(record.value()) != manifest["record_digest"]:
            return f"{name} holds another record at position {position}: the log grew anew"
        if record.timestamp()[1] != manifest["append_time_ms"]:
            return f"the record at {name}@{position} was appended at another time"
        return ""

    def has_skipped_since(self, state: QueueManager) -> bool:
        """Whether an entry that brought a version was declared skipped above a checkpoint (§8)."""
        if max(state.active_version, state.offered_version) == FIRST_VERSION:
            return False
        ledger = self.ledger
        ahead = LookAhead(ledger.bootstrap, *ledger.operations, ledger.timeout_seconds)
        ahead.look(state.position)
        begins, _ = self.reader.ends(*ledger.operations)
        for one in ahead.declared:
            first, end = max(one.first, begins), min(one.last, state.position) + 1
            for record in self.reader.records(*ledger.operations, first, end):
                if type(decode_operation(record.value())) in (Upgrade, VersionOffered):
                    return True
        return False


def log_of(reader: PartitionReader, ledger: Ledger) -> LogHere:
    """LogUnreadableError: Kafka did not answer."""
    topic = ledger.topics.operations
    identity = log_identity(ledger.bootstrap, topic, ledger.timeout_seconds)
    return LogHere(reader=reader, ledger=ledger, identity=identity)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCheckpoint:
    """A checkpoint on the topic; `problem` is why no worker can start from it, or empty.

    `foreign`: It is whole and of another log: workers refuse to start on it (H14).
    `lacks_outcomes`: Nothing else is wrong with it: where the log is trimmed and no other can be
    used, workers start from it.
    `of_another_release`: A newer one wrote it, with what this one cannot read: workers refuse to
    start.
    """

    position: int
    digest: str
    chain: bytes
    problem: str
    foreign: bool = False
    lacks_outcomes: bool = False
    of_another_release: bool = False
    loaded: Loaded | None = None


def found_at(
    here: LogHere, records: StoredRecords, position: int, *, loads: bool = True
) -> FoundCheckpoint:
    """Looks at a checkpoint; `loads`: Its state is made too, which takes long for a large one."""
    unread = partial(FoundCheckpoint, position=position, digest="", chain=b"")
    try:
        manifest = _manifest_at(records, position)
    except UnknownSchemaError as error:
        return unread(problem=_another_release(error), of_another_release=True)
    except UndecodableError as error:
        return unread(problem=f"its manifest cannot be read ({error})")
    return examined(here, manifest, records, loads=loads)


def _another_release(error: UnknownSchemaError) -> str:
    return f"another release wrote it ({error})"


def examined(
    here: LogHere, manifest: dict[str, Any], records: StoredRecords, *, loads: bool = True
) -> FoundCheckpoint:
    """Looks at a checkpoint whose manifest was read; `loads`: As `found_at` has it."""
    names = ("position", "digest", "chain")
    found = partial(FoundCheckpoint, **{name: manifest[name] for name in names})
    loaded = None
    try:
        if problem := _damage(manifest, records):
            return found(problem=problem)
        if problem := here.difference(manifest):
            return found(problem=problem, foreign=True)
        if loads:
            loaded = restored(manifest, records, here.identity)
        else:
            _check_schemas(manifest, records)
    except UnknownSchemaError as error:
        return found(problem=_another_release(error), of_another_release=True)
    if loads and loaded is None:
        return found(problem="its chunks do not make a state")
    if loaded is not None and here.has_skipped_since(loaded.state):
        return found(problem="an entry at or below it was declared skipped since")
    lost = here.lost_outcomes(manifest)
    return found(problem=lost, lacks_outcomes=bool(lost), loaded=loaded)


def _check_schemas(manifest: dict[str, Any], records: StoredRecords) -> None:
    """UnknownSchemaError: Root or a block is written in a schema that this release does not have.

    What is no record at all is found when a state is made of it.
    """
    references = references_of(manifest, records.chunks)
    blocks = (one for one in references if one["kind"] != "root")
    for reference in (references[0], *blocks):
        try:
            schema_of(records.chunks[reference["digest"]])
        except UnknownSchemaError:
            raise
        except UndecodableError:
            continue


def restored(
    manifest: dict[str, Any], records: StoredRecords, identity: LogIdentity
) -> Loaded | None:
    """The state in a whole checkpoint; None if its chunks, though whole, do not make one.

    Raises:
        UnknownSchemaError: They are written in a schema that this release does not have.
    """
    try:
        loaded = _restored_as_it_is(manifest, records, identity)
    except UnknownSchemaError:
        raise
    except Exception:
        # Whoever can write to the topic can write chunks that nobody's state was ever like.
        log.exception(
            "the checkpoint at position %d does not make a state",
            manifest["position"],
            extra={name: manifest[name] for name in ("queue_manager", "position")},
        )
        return None
    fits = loaded.state.position == manifest["position"]
    return loaded if fits and len(loaded.chain) == len(CHAIN_START) else None


def _restored_as_it_is(
    manifest: dict[str, Any], records: StoredRecords, identity: LogIdentity
) -> Loaded:
    references = references_of(manifest, records.chunks)
    parts = [records.chunks[one["digest"]] for one in references if one["kind"] == "root"]
    root = decode_root(b"".join(parts))
    replies = [reply for session in root["sessions"] for reply in session["replies"]]
    assert all(isinstance(one, Reply) for one in replies), "only replies are kept"
    # The subscriptions of a topic all have its name: only a block itself says whose it is.
    known: dict[tuple[int, int], tuple[str, tuple[str, ...]]] = {}

    def blocks() -> Iterator[dict[str, Any]]:
        for reference in references[len(parts) :]:
            digest = reference["digest"]
            block = decode_block(records.chunks[digest])
            key = (block["created_position"], block["block"])
            _, before = known.get(key, ("", ()))
            known[key] = (reference["queue"], (*before, digest))
            yield block

    state = restore(root, blocks())
    return Loaded(
        state=state, chain=manifest["chain"], identity=identity, blocks=known, manifest=manifest
    )
