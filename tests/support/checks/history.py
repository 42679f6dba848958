"""Checks a whole installation from its log: the outcomes on the lanes are the fold of the ledger.

Everything is read with a plain consumer. Repeats of an outcome must have the same content; what a
reader of a connection's chain accepts must have no hole and end where the fold ends it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from ledgermq.core.apply import apply, new_state
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.versions import SKIPPED, may_be_skipped, time_of_hole
from ledgermq.protocol.administration import PositionsSkipped
from ledgermq.protocol.operations import Operation, Put, Unreadable
from ledgermq.protocol.outcomes import Delivered, Outcome
from ledgermq.protocol.reasons import Reason
from ledgermq.wire.framing.codec import decode_chunk, decode_operation
from ledgermq.wire.framing.confluent import headers_of, value_of
from ledgermq.wire.framing.headers import CONNECTION
from ledgermq.wire.topics.log_topics import lane_partition

Identity = tuple[int, int]


@dataclass(kw_only=True)
class Fold:
    """What a plain fold of the ledger comes to."""

    state: QueueManager = field(default_factory=new_state)
    outcomes: dict[Identity, Outcome] = field(default_factory=dict)
    connections: dict[Identity, bytes | None] = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)


@dataclass(kw_only=True)
class Recorded:
    """What stands on the lanes."""

    outcomes: dict[Identity, Outcome] = field(default_factory=dict)
    repeats: int = 0
    holes: list[str] = field(default_factory=list)


def read_partition(bootstrap: str, topic: str, partition: int) -> list[Any]:
    """All records of a partition, as they stand now; values in single-object framing."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "history",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            # The end is only told when a fetch that waits for more comes back empty.
            "fetch.wait.max.ms": 10,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_uncommitted",
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0)])
    found: list[Any] = []
    while True:
        record = consumer.poll(10.0)
        assert record is not None, f"{topic}-{partition} does not answer"
        if record.error() is not None:
            assert record.error().code() == KafkaError._PARTITION_EOF, record.error()
            consumer.close()
            return found
        record.set_value(value_of(record))
        found.append(record)


def fold_log(place: Any) -> Fold:
    """Folds the ledger of a place from its beginning, bodies filled in."""
    fold = Fold()
    bodies: dict[int, Put] = {}
    records = read_partition(place.bootstrap, place.topics.operations, place.claim.partition)
    declared = _declared(records)
    for record in records:
        stamp, append_ms = record.timestamp()
        _fold_hole(fold, record.offset(), declared)
        if may_be_skipped(fold.state, decode_operation(record.value())) and any(
            one.first <= record.offset() <= one.last for one in declared
        ):
            operation: Operation = SKIPPED
        elif stamp == 2:
            operation = decode_operation(record.value(), fold.state.active_version)
        else:
            operation = Unreadable(reason=Reason.TIMESTAMP_UNTRUSTED, detail="")
        if isinstance(operation, Put):
            bodies[record.offset()] = operation
        fold.operations.append(operation)
        for one in apply(fold.state, operation, record.offset(), append_ms * 1000):
            outcome = one.outcome
            if isinstance(outcome, Delivered):
                for message in outcome.messages:
                    put = bodies[message["put_position"]]
                    message["content"] = put.messages[message["put_index"]]["content"]
            identity = (outcome.position, outcome.index)
            fold.outcomes[identity] = outcome
            fold.connections[identity] = one.connection
    return fold


def _declared(records: list[Any]) -> list[PositionsSkipped]:
    """What was declared skipped, wherever it stands."""
    found = [(decode_operation(one.value()), one.offset()) for one in records]
    return [one for one, at in found if isinstance(one, PositionsSkipped) and one.counts_at(at)]


def _fold_hole(fold: Fold, end: int, declared: list[PositionsSkipped]) -> None:
    """Folds the positions without a record before the next one."""
    for position in range(fold.state.position + 1, end):
        assert any(one.first <= position <= one.last for one in declared), f"hole at {position}"
        fold.operations.append(SKIPPED)
        for one in apply(fold.state, SKIPPED, position, time_of_hole(fold.state)):
            fold.outcomes[position, one.outcome.index] = one.outcome
            fold.connections[position, one.outcome.index] = None


def recorded_outcomes(place: Any, foreign: tuple[str, bytes] | None = None) -> Recorded:
    """Reads all lanes of a place as readers do, but for records that have a foreign header."""
    recorded = Recorded()
    for lane in range(place.claim.lanes):
        partition = lane_partition(place.claim.partition, place.claim.lanes, lane)
        last: dict[bytes, Identity] = {}
        for record in read_partition(place.bootstrap, place.topics.outcomes, partition):
            headers = dict(headers_of(record))
            if foreign in headers.items():
                continue
            if headers.get("ce_type") != b"ledgermq.outcome.Chunk":
                continue
            _take(recorded, last, headers[CONNECTION], decode_chunk(record.value()))
    return recorded


def _take(recorded: Recorded, last: dict[bytes, Identity], name: bytes, chunk: Any) -> None:
    chained = chunk.previous_index != -2
    previous = (chunk.previous_position, chunk.previous_index)
    for outcome in chunk.outcomes:
        identity = (outcome.position, outcome.index)
        known = recorded.outcomes.setdefault(identity, outcome)
        if known is not outcome:
            recorded.repeats += 1
            again = SKIPPED.reason in (getattr(one, "reason", "") for one in (known, outcome))
            assert again or known == outcome, f"outcome {identity} was written with two contents"
        if chained and identity > last.get(name, (-1, -1)):
            # A connection whose last session ended begins its chain anew.
            if previous not in (last.get(name, (-1, -1)), (-1, -1)):
                recorded.holes.append(f"{name!r}: {identity} follows {previous}, had {last[name]}")
            last[name] = identity
        previous = identity


def check_history(place: Any) -> tuple[Fold, Recorded]:
    """Asserts that the lanes hold exactly what the fold of the ledger says."""
    fold, recorded = fold_log(place), recorded_outcomes(place)
    assert not recorded.holes, recorded.holes[:5]
    missing = [one for one in fold.outcomes if one not in recorded.outcomes]
    assert not missing, f"{len(missing)} outcomes are missing, the first: {missing[:5]}"
    invented = [one for one in recorded.outcomes if one not in fold.outcomes]
    assert not invented, f"{len(invented)} outcomes are nowhere in the ledger: {invented[:5]}"
    for identity, outcome in fold.outcomes.items():
        if getattr(outcome, "reason", "") in (Reason.TIMESTAMP_UNTRUSTED, SKIPPED.reason):
            continue
        assert recorded.outcomes[identity] == outcome, f"outcome {identity} differs"
    return fold, recorded
