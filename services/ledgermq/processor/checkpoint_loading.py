"""Loading a checkpoint: the newest whole one that belongs to this log, or an older, or none
(H1, H13, H14).

A checkpoint that is incomplete or damaged, or whose lanes are shorter than they were, is passed
over with a word in the log: an older one or the whole log does as well. One that tells of another
log stops the start: then the log or the checkpoints are not what they are taken for, and only a
person can say which.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaException, Producer

from ledgermq.core.snapshot import restore
from ledgermq.core.state import QueueManager, new_state
from ledgermq.errors import LedgerMQError
from ledgermq.processor.checkpoint_shelf import Shelf, filled_shelf
from ledgermq.processor.digests import CHAIN_START, chunk_digest, state_digest
from ledgermq.processor.log_reading import (
    LogIdentity,
    PartitionReader,
    log_identity,
    partition_reader,
)
from ledgermq.protocol.administration import VersionOffered
from ledgermq.protocol.operations import Upgrade
from ledgermq.protocol.outcomes import Reply
from ledgermq.wire.checkpoint_chunks import ChunkError, chunk_of, references_of
from ledgermq.wire.checkpoint_keys import chunk_key, manifest_key
from ledgermq.wire.codec import (
    UndecodableError,
    decode_operation,
    decode_record,
    outcome_from_union,
)
from ledgermq.wire.registry import Claim
from ledgermq.wire.skipping import LookAhead
from ledgermq.wire.topics import Topics, lane_partition

__all__ = [
    "CheckpointMismatchError",
    "Loaded",
    "LogIncompleteError",
    "StoredManifest",
    "discard_checkpoints",
    "load",
    "read_manifests",
]

log = logging.getLogger(__name__)

FIRST_VERSION = 1
MANIFEST = "ledgermq.checkpoint.Manifest"


class CheckpointMismatchError(LedgerMQError):
    """A checkpoint tells of another log than the one that is here."""

    code = "checkpoint-mismatch"


class LogIncompleteError(LedgerMQError):
    """The operations log does not begin where the state must be folded from."""

    code = "log-incomplete"


@dataclass(frozen=True, slots=True)
class StoredManifest:
    """A manifest that lies in the checkpoints topic."""

    position: int
    digests: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Loaded:
    """A state and what goes with it, ready to fold on.

    `blocks` holds the digests of each block's chunks by (created position of its queue, block
    number), with the queue's name; `rubbish` are keys on the topic that are of no use.
    """

    state: QueueManager
    chain: bytes = CHAIN_START
    identity: LogIdentity
    blocks: dict[tuple[int, int], tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    manifests: list[StoredManifest] = field(default_factory=list)
    stored: set[str] = field(default_factory=set)
    rubbish: list[bytes] = field(default_factory=list)
    manifest: dict[str, Any] | None = None


def read_manifests(reader: PartitionReader, topics: Topics, claim: Claim) -> list[dict[str, Any]]:
    """The readable manifests of a queue manager, highest position first; chunks not looked at.

    Raises:
        LogUnreadableError: Kafka did not answer.
    """
    return _manifests(filled_shelf(reader, topics, claim), claim)


def load(
    reader: PartitionReader, bootstrap: str, topics: Topics, claim: Claim, timeout_seconds: float
) -> Loaded:
    """The state to go on from.

    Raises:
        CheckpointMismatchError: A checkpoint belongs to another log (H14).
        LogIncompleteError: Without a checkpoint, the log must begin at 0 and does not.
        LogUnreadableError: Kafka did not answer.
    """
    identity = log_identity(bootstrap, topics.operations, timeout_seconds)
    shelf = filled_shelf(reader, topics, claim)
    manifests = _manifests(shelf, claim)
    for at, manifest in enumerate(manifests):
        problem = _problem(reader, topics, claim, identity, manifest, shelf)
        loaded = None if problem else _restored(manifest, shelf, identity)
        if loaded is not None and _is_overtaken(reader, bootstrap, topics, claim, loaded.state):
            loaded, problem = None, "an entry at or below it was declared skipped since"
        if loaded is not None:
            # What is passed over counts for nothing: it would keep real checkpoints from staying.
            loaded.manifests = [_stored(one, shelf) for one in manifests[at : at + 3]]
            return _with_stored(loaded, shelf, claim)
        problem = problem or "its chunks do not make a state"
        log.warning(
            "%s: the checkpoint at position %d cannot be used: %s; trying an older one, or all "
            "of the log",
            claim.queue_manager,
            manifest["position"],
            problem,
        )
    first, _ = reader.ends(topics.operations, claim.partition)
    if first > 0:
        raise LogIncompleteError(
            f"{claim.queue_manager}: no checkpoint can be used and {topics.operations}-"
            f"{claim.partition} begins at {first}, not at 0; restore the log or the checkpoints"
        )
    return _with_stored(Loaded(state=new_state(), identity=identity), shelf, claim)


def _with_stored(loaded: Loaded, shelf: Shelf, claim: Claim) -> Loaded:
    """Notes which chunks need not be written again, and which keys are to be taken away.

    A chunk whose bytes are not those of its digest is not stored, whoever overwrote it.
    """
    good = (digest for digest, value in shelf.chunks.items() if chunk_digest(value) == digest)
    loaded.stored = set(good)
    name = claim.queue_manager
    kept = {manifest_key(name, one.position).encode() for one in loaded.manifests}
    kept |= {chunk_key(name, digest).encode() for digest in loaded.stored}
    loaded.rubbish = [key for key in shelf.all_keys() if key not in kept]
    return loaded


def _manifests(shelf: Shelf, claim: Claim) -> list[dict[str, Any]]:
    """The readable manifests, highest position first."""
    found: list[dict[str, Any]] = []
    for position in sorted(shelf.manifests, reverse=True):
        try:
            full_name, manifest = decode_record(shelf.manifests[position])
        except UndecodableError as error:
            full_name, manifest = str(error), {}
        if full_name == MANIFEST and _is_of(manifest, claim, position):
            found.append(manifest)
        else:
            log.warning(
                "%s: the manifest of position %d cannot be read (%s); it is passed over",
                claim.queue_manager,
                position,
                full_name,
            )
    return found


def _is_of(manifest: dict[str, Any], claim: Claim, position: int) -> bool:
    """Whether a manifest is what its key says."""
    return (manifest["queue_manager"], manifest["position"]) == (claim.queue_manager, position)


def _stored(manifest: dict[str, Any], shelf: Shelf) -> StoredManifest:
    digests = [one["digest"] for one in manifest["chunks"]]
    with contextlib.suppress(ChunkError):
        digests += [one["digest"] for one in references_of(manifest, shelf.chunks)]
    return StoredManifest(manifest["position"], tuple(dict.fromkeys(digests)))


def _problem(
    reader: PartitionReader,
    topics: Topics,
    claim: Claim,
    identity: LogIdentity,
    manifest: dict[str, Any],
    shelf: Shelf,
) -> str | None:
    """Why a checkpoint cannot be used, or None; a whole one of another log raises."""
    damage = _damage(manifest, shelf)
    if damage is not None:
        return damage
    _check_log(reader, topics, claim, identity, manifest)
    for lane, wanted in enumerate(manifest["lane_ends"]):
        partition = lane_partition(claim.partition, claim.lanes, lane)
        _, end = reader.ends(topics.outcomes, partition)
        if end < wanted:
            return f"lane {lane} ends at {end}, it ended at {wanted}: outcomes were lost"
    return None


def _damage(manifest: dict[str, Any], shelf: Shelf) -> str | None:
    """What is missing of a checkpoint, or None if it is whole."""
    try:
        digests = [one["digest"] for one in references_of(manifest, shelf.chunks)]
        for digest in digests:
            chunk_of(shelf.chunks, digest)
    except ChunkError as error:
        return str(error)
    if state_digest(digests) != manifest["digest"]:
        return "the digest of its list of chunks is wrong"
    return None


def _is_overtaken(
    reader: PartitionReader, bootstrap: str, topics: Topics, claim: Claim, state: QueueManager
) -> bool:
    """Whether an entry that brought a version was declared skipped above a checkpoint (§8)."""
    if max(state.active_version, state.offered_version) == FIRST_VERSION:
        return False
    topic, partition = topics.operations, claim.partition
    ahead = LookAhead(bootstrap, topic, partition)
    ahead.look(state.position)
    for one in ahead.declared:
        first = max(one.first, reader.ends(topic, partition)[0])
        for record in reader.records(topic, partition, first, min(one.last, state.position) + 1):
            if type(decode_operation(record.value())) in (Upgrade, VersionOffered):
                return True
    return False


def _check_log(
    reader: PartitionReader,
    topics: Topics,
    claim: Claim,
    identity: LogIdentity,
    manifest: dict[str, Any],
) -> None:
    """Compares the log that a checkpoint was made from with the one that is here."""
    position = manifest["position"]
    where = f"{topics.operations}-{claim.partition}"
    if manifest["cluster_id"] != identity.cluster_id:
        what = f"it was made on cluster {manifest['cluster_id']}, this is {identity.cluster_id}"
    elif manifest["topic_id"] != identity.topic_id:
        what = (
            f"it was made from a topic {topics.operations} with id {manifest['topic_id']}, this "
            f"one has id {identity.topic_id}: the topic was deleted and made again"
        )
    else:
        record = reader.record_at(topics.operations, claim.partition, position)
        if record is None:
            what = f"{where} does not hold position {position} any more: the log was cut"
        elif hashlib.sha256(record.value() or b"").digest() != manifest["record_digest"]:
            what = f"{where} holds another record at position {position}: the log grew anew"
        elif record.timestamp()[1] != manifest["append_time_ms"]:
            what = f"the record at {where}@{position} was appended at another time"
        else:
            return
    raise CheckpointMismatchError(
        f"{claim.queue_manager}: the checkpoint at position {position} is not of this log: "
        f"{what}. Restore what was there before; or, if the log is right as it is, declare so: "
        f"discard the checkpoints with `ledgermq checkpoint discard --queue-manager "
        f"{claim.queue_manager} --yes` (or `python -m ledgermq.processor discard-checkpoints`), "
        "and the state is folded anew from the log."
    )


def _restored(manifest: dict[str, Any], shelf: Shelf, identity: LogIdentity) -> Loaded | None:
    """The state in a whole checkpoint; None if its chunks, though whole, do not make one."""
    try:
        loaded = _restored_as_it_is(manifest, shelf, identity)
    except Exception:
        # Whoever can write to the topic can write chunks that nobody's state was ever like.
        log.exception("the checkpoint at position %d does not make a state", manifest["position"])
        return None
    fits = loaded.state.position == manifest["position"]
    return loaded if fits and len(loaded.chain) == len(CHAIN_START) else None


def _restored_as_it_is(manifest: dict[str, Any], shelf: Shelf, identity: LogIdentity) -> Loaded:
    references = references_of(manifest, shelf.chunks)
    parts = [shelf.chunks[one["digest"]] for one in references if one["kind"] == "root"]
    _, root = decode_record(b"".join(parts))
    for session in root["sessions"]:
        replies = [outcome_from_union(one) for one in session["replies"]]
        assert all(isinstance(one, Reply) for one in replies), "only replies are kept"
        session["replies"] = replies
    # The subscriptions of a topic all have its name: only a block itself says whose it is.
    known: dict[tuple[int, int], tuple[str, tuple[str, ...]]] = {}

    def blocks() -> Iterator[dict[str, Any]]:
        for reference in references[len(parts) :]:
            digest = reference["digest"]
            block = decode_record(shelf.chunks[digest])[1]
            key = (block["created_position"], block["block"])
            _, before = known.get(key, ("", ()))
            known[key] = (reference["queue"], (*before, digest))
            yield block

    state = restore(root, blocks())
    return Loaded(
        state=state, chain=manifest["chain"], identity=identity, blocks=known, manifest=manifest
    )


def discard_checkpoints(
    bootstrap: str, topics: Topics, claim: Claim, *, timeout_seconds: float = 30.0
) -> int:
    """Takes away every checkpoint of a queue manager, and all else there; how many there were.

    The operator's declaration that the log is right as it is (H14). No worker may run meanwhile.

    Raises:
        LogIncompleteError: The beginning of the log is gone: only a checkpoint has what it held.
        LogUnreadableError: Kafka did not answer.
    """
    with partition_reader(bootstrap, timeout_seconds) as reader:
        begins, _ = reader.ends(topics.operations, claim.partition)
        if begins > 0:
            raise LogIncompleteError(
                f"{claim.queue_manager}: {topics.operations}-{claim.partition} begins at {begins}, "
                "not at 0: without its checkpoints the state could not be folded again. Nothing "
                "was discarded; restore the log, or the checkpoints that belong to it"
            )
        shelf = filled_shelf(reader, topics, claim)
    write_all(
        Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 3}),
        topics.checkpoints,
        claim.partition,
        [(key, None) for key in shelf.all_keys()],
        timeout_seconds,
    )
    return len(shelf.manifests)


def write_all(
    producer: Producer,
    topic: str,
    partition: int,
    records: Sequence[tuple[bytes, bytes | None]],
    timeout_seconds: float,
) -> None:
    """Writes records and waits until all are acknowledged.

    Raises:
        KafkaException: One of them was not.
    """
    problems: list[Any] = []

    def delivered(error: Any, _message: Any) -> None:
        if error is not None:
            problems.append(error)

    for key, value in records:
        while True:
            try:
                producer.produce(
                    topic, value=value, key=key, partition=partition, on_delivery=delivered
                )
                break
            except BufferError:
                # Each record is given up after its own time-out, so there is room in the end.
                producer.poll(0.1)
        producer.poll(0)
    if producer.flush(timeout_seconds):
        raise KafkaException(f"{topic}-{partition} did not acknowledge in {timeout_seconds:.0f} s")
    if problems:
        raise KafkaException(problems[0])
