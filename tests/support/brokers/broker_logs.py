"""Logs of tests on a broker: operations with the outcomes that a worker would have written."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from ledgermq.core.snapshot.state_records import blocks, root_of
from ledgermq.protocol.outcomes import Addressed
from ledgermq.wire.framing.checkpoint_chunks import encode_root
from ledgermq.wire.framing.codec import encode_record
from ledgermq.wire.topics.log_topics import Topics, ensure_topics
from ledgermq.wire.topics.registry import claim_queue_manager
from ledgermq_spark.rebuild.checkpoints import BLOCK, MANIFEST, state_digest
from support.brokers.log_writer import (
    LANES,
    START_US,
    Entry,
    append_operations,
    append_records,
    chain_of,
    chunks,
    fold,
)


@dataclass(frozen=True, kw_only=True)
class Written:
    """A log on the broker, and what it came to."""

    bootstrap: str
    prefix: str
    entries: list[Entry]
    outcomes: list[list[Addressed]]

    @property
    def where(self) -> dict[str, Any]:
        """How the jobs find it."""
        return {"topic_prefix": self.prefix}

    def state_at(self, position: int) -> Any:
        """The state as the fold has it after a position."""
        return fold(self.entries[: position + 1])[0]

    def write_checkpoint(self, position: int) -> str:
        """Writes a checkpoint as a worker would; returns the digest of its state."""
        state = self.state_at(position)
        root = encode_root(root_of(state))
        parts = [(root, "root", "", -1)] + [
            (encode_record(BLOCK, one), "block", one["queue"], one["block"])
            for one in blocks(state)
        ]
        digest = state_digest([part for part, *_ in parts])
        rebuilt = chain_of(self.entries)[position]
        manifest = {
            "queue_manager": "QM1",
            "position": position,
            "append_time_ms": self.entries[position].time_us // 1000,
            "version": 1,
            "cluster_id": "",
            "topic_id": "",
            "chain": rebuilt,
            "record_digest": b"",
            "lane_ends": [],
            "chunks": [
                {"kind": kind, "digest": sha(part), "queue": queue, "block": block}
                for part, kind, queue, block in parts
            ],
            "digest": digest,
            "worker": "test",
        }
        records = [(0, f"QM1/chunk/{sha(part)}".encode(), part) for part, *_ in parts]
        key = f"QM1/manifest/{position}".encode()
        records.append((0, key, encode_record(MANIFEST, manifest)))
        append_records(self.bootstrap, Topics(self.prefix).checkpoints, records)
        return digest


def sha(part: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(part).hexdigest()


def write(
    bootstrap: str,
    entries: list[Entry],
    *,
    without: int | None = None,
    cut: int | None = None,
    partitions: int = 1,
    queue_manager: str = "QM1",
    prefix: str | None = None,
    alter: Callable[[list[list[Addressed]]], object] = lambda _: None,
) -> Written:
    """Writes operations, and the outcomes of all of them.

    Args:
        bootstrap: Address of the broker.
        entries: What the operations are.
        without: The position of one that is left out.
        cut: The position of the first of those that are left out at the end.
        partitions: How many queue managers there may be.
        queue_manager: Whose log it is.
        prefix: Of log topics that may be there already; fresh ones if not given.
        alter: Changes the outcomes before they are written.
    """
    prefix = prefix or f"spark-{uuid.uuid4().hex[:8]}"
    topics = Topics(prefix)
    ensure_topics(bootstrap, topics, partitions=partitions, lanes=LANES)
    claim = claim_queue_manager(bootstrap, topics, queue_manager, lanes=LANES)
    kept = [one for at, one in enumerate(entries[:cut]) if at != without]
    stamped = append_operations(bootstrap, topics, queue_manager, claim.partition, kept)
    if cut is not None:
        time_us = stamped[-1].time_us if stamped else START_US
        stamped = [*stamped, *(replace(one, time_us=time_us) for one in entries[cut:])]
    if without is not None:
        missing = replace(entries[without], time_us=stamped[without - 1].time_us)
        stamped = [*stamped[:without], missing, *stamped[without:]]
    _, outcomes = fold(stamped)
    alter(outcomes)
    chain = chain_of(stamped)
    records = chunks(outcomes, claim.partition, chain, queue_manager=queue_manager)
    append_records(bootstrap, topics.outcomes, records)
    return Written(bootstrap=bootstrap, prefix=prefix, entries=stamped, outcomes=outcomes)


def trim(bootstrap: str, *places: TopicPartition) -> None:
    """Deletes the records below offsets, as retention would."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.delete_records(list(places)).values():
        future.result(timeout=20)
