"""Discarding checkpoints where it cannot be done: a sentence, no traceback."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from ledgermq.processor.checkpoints import discarding
from ledgermq.processor.checkpoints.loading import FoundCheckpoint, LogIncompleteError
from ledgermq.processor.worker import membership
from ledgermq.wire.topics.checkpoint_records import StoredRecords
from ledgermq.wire.topics.ledger import Ledger
from ledgermq.wire.topics.log_topics import Topics
from ledgermq.wire.topics.reading import LogUnreadableError
from ledgermq.wire.topics.registry import Claim

QM1 = Claim("QM1", 0, 1)


@pytest.fixture
def kafka(monkeypatch) -> SimpleNamespace:
    """A log of QM1 that begins at `begins`; `written` is what was written, `fails` the answer.

    `workers` are those that run, `stopped` whether one says that it has stopped the queue manager;
    `patience` is how long each question waits, in seconds.
    """
    kafka = SimpleNamespace(begins=0, written=[], fails=False, workers=[], patience=[])
    kafka.stopped = False

    @contextmanager
    def reader(_bootstrap, timeout_seconds, _logger):
        kafka.patience.append(timeout_seconds)
        yield SimpleNamespace(ends=lambda *_: (kafka.begins, 9))

    def stored(*_):
        return StoredRecords("QM1", {b"QM1/manifest/3": b"m"})

    def write(_producer, ledger, records):
        kafka.patience.append(ledger.timeout_seconds)
        if kafka.fails:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        kafka.written += records

    monkeypatch.setattr("ledgermq.wire.topics.ledger.PartitionReader", reader)
    monkeypatch.setattr(discarding, "read_stored_records", stored)
    monkeypatch.setattr(discarding, "checkpoint_producer", lambda *_: None)
    monkeypatch.setattr(discarding, "write_all", write)
    monkeypatch.setattr(Ledger, "delete_before", lambda *_: None)
    monkeypatch.setattr(discarding, "find_checkpoints", lambda *_, **_more: [])
    monkeypatch.setattr(membership, "running_workers", lambda *_: kafka.workers)
    monkeypatch.setattr(membership, "is_stopped", lambda *_: kafka.stopped)
    return kafka


def discard(timeout_seconds: float = 1.0) -> int:
    """Discards the checkpoints of QM1, unless workers run; how many there were."""
    ledger = Ledger("", Topics("ledgermq"), QM1, timeout_seconds)
    membership.refuse_if_workers_run(ledger, discarding.DiscardRefusedError)
    return discarding.discard_checkpoints(ledger)


def test_a_broker_that_does_not_take_it_is_told_in_a_sentence(kafka):
    """Some may be gone and some not; to call it again does the rest."""
    kafka.fails = True
    with pytest.raises(LogUnreadableError, match="not all checkpoints were discarded"):
        discard()


def test_a_log_without_its_beginning_is_refused(kafka):
    """Without checkpoints its state could not be folded again: nothing is written."""
    kafka.begins = 5
    with pytest.raises(LogIncompleteError, match="begins at 5, not at 0"):
        discard()
    assert kafka.written == []


def found_at(position, problem="", **worth):
    """A checkpoint as it was found."""
    return FoundCheckpoint(position=position, digest="", chain=b"", problem=problem, **worth)


def test_of_a_trimmed_log_those_of_a_newer_release_are_discarded(kafka, monkeypatch):
    """Who goes back to an older release starts from what that can read, if anything is left."""
    newer = found_at(7, "another release wrote it", of_another_release=True)
    found = [newer]
    monkeypatch.setattr(discarding, "find_checkpoints", lambda *_, **_more: found)
    kafka.begins = 3
    with pytest.raises(LogIncompleteError, match="start the release that wrote them, or a later"):
        discard()
    assert kafka.written == []
    found.insert(0, found_at(4))
    assert discard() == 1
    assert kafka.written == [(b"QM1/manifest/7", None)]


def test_it_is_refused_while_a_worker_runs(kafka):
    """That one counts its chunks as stored, and would write checkpoints without them."""
    kafka.workers = ["w1"]
    with pytest.raises(discarding.DiscardRefusedError, match=r"\(w1\): stop all workers first"):
        discard()
    assert kafka.written == []


def test_a_worker_that_has_stopped_the_queue_manager_is_in_nobodys_way(kafka):
    """It has no checkpoints in its hands; the others that it serves need not stop for this one."""
    kafka.workers, kafka.stopped = ["w1"], True
    assert discard() == 1
    assert kafka.written == [(b"QM1/manifest/3", None)]


def test_kafka_is_waited_for_as_long_as_the_caller_says(kafka):
    """A slow broker is given the patience that it was given elsewhere, not one of its own."""
    assert discard(timeout_seconds=70.0) == 1
    assert kafka.patience == [70.0, 70.0]
