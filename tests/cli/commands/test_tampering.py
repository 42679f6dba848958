"""Tampering: a copied log with one record changed, left out, put in or moved does not pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import ledgermq
from ledgermq.embedded import EmbeddedBroker
from ledgermq.processor.worker.supervisor import running_installation
from ledgermq.protocol.operations import Acknowledge, Tick
from ledgermq.protocol.outcomes import Delivered, Outcome
from ledgermq.wire.framing.codec import (
    UndecodableError,
    decode_chunk,
    decode_operation,
    encode_chunk,
    encode_operation,
)
from ledgermq.wire.topics.log_topics import Topics
from support.brokers.reproduce import Change, Copied, keep, records_of, reproduce

TOPICS = Topics()
MESSAGES = 40
VICTIM = 17


@dataclass(frozen=True, kw_only=True)
class Original:
    """A log with a short history of its own, and the message that will be tampered with."""

    bootstrap: str
    victim: str
    victim_id: bytes


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Iterator[Original]:
    """An installation on which messages were put, got, rolled back and acknowledged."""
    with running_installation(tmp_path_factory.mktemp("original")) as bootstrap:
        with ledgermq.connect(f"kafka://{bootstrap}/QM1") as connection:
            with connection.session(transacted=True) as session:
                producer = session.producer("queue:orders")
                receipts = [producer.send({"number": number}) for number in range(MESSAGES)]
                session.commit()
                consumer = session.consumer("queue:orders")
                consumer.receive_many(5, timeout=30)
                session.rollback()
            with connection.session(ack=ledgermq.AckMode.INDIVIDUAL) as session:
                consumer = session.consumer("queue:orders")
                for _ in range(MESSAGES // 2):
                    message = consumer.receive(timeout=30)
                    assert message is not None
                    message.acknowledge()
        victim = receipts[VICTIM]
        yield Original(
            bootstrap=bootstrap,
            victim=victim.message_id,
            victim_id=bytes.fromhex(victim.message_id),
        )


def audit_of_copy(plain, original: Original, directory: Path, change: Change):
    """The unchanged audit command on a copy of the log."""
    shown = plain("chain", "show", "--json", "--bootstrap", original.bootstrap).document
    reproduce(original.bootstrap, directory, TOPICS, change)
    with EmbeddedBroker(directory, brief=True) as copy:
        return plain("audit", "--json", "--bootstrap", copy.bootstrap, "--anchor", shown["anchor"])


def named(answer) -> set[str]:
    """The messages that the anomalies name."""
    return {name for one in answer.document["anomalies"] for name in one["message_id"].split(", ")}


@pytest.mark.long
def test_the_audit_of_an_untouched_copy_agrees(plain, original, tmp_path):
    """A copy that keeps order and append times is as good as the original."""
    answer = audit_of_copy(plain, original, tmp_path, keep)
    assert answer.code == 0, answer.out
    assert answer.document["verdict"] == "agrees"
    proof = answer.document["chain_proof"]
    assert proof["agreeing"] == proof["anchors"] > MESSAGES // 2
    assert proof["counts"]["given"] == 1
    assert proof["told"].startswith(f"chain of {proof['position'] + 1} positions agrees with ")


@pytest.mark.long
def test_one_altered_outcome_is_found_and_its_message_named(plain, original, tmp_path):
    """A delivery whose recorded priority was changed is an anomaly of that message."""

    def forge(outcome: Outcome) -> Outcome:
        if isinstance(outcome, Delivered):
            for message in outcome.messages:
                if message["message_id"] == original.victim_id:
                    message["priority"] = 9
        return outcome

    def change(record: Copied) -> Copied:
        if record.topic != TOPICS.outcomes:
            return record
        try:
            chunk = decode_chunk(record.value or b"")
        except UndecodableError:
            return record
        forged = [forge(outcome) for outcome in chunk.outcomes]
        return record.with_value(
            encode_chunk(chunk.previous_position, chunk.previous_index, forged, chunk.chain)
        )

    answer = audit_of_copy(plain, original, tmp_path, change)
    assert answer.code == 1, answer.out
    assert original.victim in named(answer)


@pytest.mark.long
def test_one_missing_acknowledgement_is_found_and_its_message_named(plain, original, tmp_path):
    """Without its acknowledgement the log still holds a message that the outcomes saw go."""
    dropped: list[int] = []

    def change(record: Copied) -> Copied | None:
        if record.topic != TOPICS.operations or record.partition:
            return record
        if isinstance(decode_operation(record.value), Acknowledge):
            dropped.append(record.offset)
            if len(dropped) == VICTIM + 1:
                return None
        return record

    answer = audit_of_copy(plain, original, tmp_path, change)
    assert len(dropped) > VICTIM
    assert answer.code == 1, answer.out
    assert original.victim in named(answer)


def altered(record: Copied, _: Copied) -> list[Copied]:
    """The same acknowledgement, but it says less of which replies were read: no outcome differs."""
    operation = decode_operation(record.value)
    assert isinstance(operation, Acknowledge)
    forged = replace(operation, answered_through=operation.answered_through - 1)
    return [record.with_value(encode_operation(forged))]


def left_out(_record: Copied, _: Copied) -> list[Copied]:
    """Nothing in its place."""
    return []


def put_in(record: Copied, _: Copied) -> list[Copied]:
    """An entry that does nothing stands before it."""
    return [record.with_value(encode_operation(Tick(worker="nobody"))), record]


def swapped(record: Copied, following: Copied) -> list[Copied]:
    """The next record, which is left out where it stood, comes first."""
    return [replace(following, timestamp_ms=record.timestamp_ms), record]


@pytest.mark.long
@pytest.mark.parametrize("tamper", [altered, left_out, put_in, swapped])
def test_the_audit_names_the_first_operation_that_was_tampered_with(
    plain, original, tmp_path, tamper
):
    """The chain in the outcomes bounds where the log stops being what was folded (H14)."""
    place = acknowledgements(original)[VICTIM]
    following = record_at(original, place.offset + 1)

    def change(record: Copied) -> Copied | list[Copied]:
        if record.topic == TOPICS.operations and record.partition == 0:
            if record.offset == place.offset:
                return tamper(record, following)
            if record.offset == following.offset and tamper is swapped:
                return []
        return record

    answer = audit_of_copy(plain, original, tmp_path, change)
    assert answer.code == 1, answer.out
    first = answer.document["anomalies"][0]
    assert (first["kind"], first["source"]) == ("altered operations", "chain")
    proof = answer.document["chain_proof"]
    assert proof["differs_from"] <= place.offset <= proof["differs_to"], proof
    # Every operation of an application is answered, and each answer is an anchor.
    assert proof["differs_to"] - proof["differs_from"] <= 2
    assert first["position"] == proof["differs_from"]
    assert proof["proven_until"] == proof["differs_from"] - 1


def acknowledgements(original: Original) -> list[Copied]:
    """The acknowledgements on the log, in order."""
    return [
        record
        for record in records_of(original.bootstrap, TOPICS.operations, 0)
        if isinstance(decode_operation(record.value), Acknowledge)
    ]


def record_at(original: Original, offset: int) -> Copied:
    """The record at a position of the log."""
    return next(
        record
        for record in records_of(original.bootstrap, TOPICS.operations, 0)
        if record.offset == offset
    )
