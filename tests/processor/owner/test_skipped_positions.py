"""Holes and foreign versions on the ledger: told, waited at, declared skipped (§8; H3, H9)."""

import time
from types import SimpleNamespace

import pytest
from confluent_kafka import Producer

from ledgermq.protocol import operations as op
from ledgermq.protocol.administration import PositionsSkipped, VersionOffered
from ledgermq.wire.framing.codec import encode_operation
from support.checks.history import check_history

pytestmark = pytest.mark.kafka

ALIVE = encode_operation(op.Alive(session=0, session_sequence=1, answered_through=0))


def in_transaction(place, topic, *, count=1, commit=True, partition=0):
    """Writes records in a Kafka transaction, whose end leaves a hole behind them."""
    producer = Producer({"bootstrap.servers": place.bootstrap, "transactional.id": "intruder"})
    producer.init_transactions(20)
    producer.begin_transaction()
    for _ in range(count):
        producer.produce(topic, value=ALIVE, partition=partition)
    assert producer.flush(20) == 0
    if commit:
        producer.commit_transaction(20)
    else:
        producer.abort_transaction(20)


def skip(client, first, last=None):
    """Declares positions skipped."""
    last = first if last is None else last
    client.write(PositionsSkipped(first=first, last=last, actor="a", reason="r"))
    client.flush()


def test_a_hole_is_told_waited_at_and_passed_over_once_it_was_declared(place):
    """A transaction's marker keeps the worker there until it is declared skipped (H9, §8)."""
    worker = place.worker("first")
    in_transaction(place, place.topics.operations)
    client = place.client()
    client.write_raw(ALIVE)
    client.flush()
    worker.wait_for_log("positions 1 to 1 hold no record")
    assert "ledgermq log skip 1 --queue-manager QM1" in worker.log
    assert client.ask("QUEUE_MANAGER")["position"] == 0
    skip(client, 1)
    session = client.open()
    session.put("queue:a", 1)
    session.do(op.Commit, deliveries=[], puts=1)
    assert client.ask("CHECKPOINT")["reason"] == ""
    assert worker.code is None
    fold, _ = check_history(place)
    assert fold.outcomes[1, 0].reason == "position-skipped"
    worker.kill()
    again = place.worker("second")
    assert "(from a checkpoint)" in again.log
    session.do(op.Alive)
    check_history(place)


def test_an_aborted_transaction_leaves_its_records_and_one_hole(place):
    """What a transaction wrote stands on the ledger however it ends: every reader reads it."""
    in_transaction(place, place.topics.operations, count=3, commit=False)
    client = place.client()
    skip(client, 0, 3)
    worker = place.worker()
    client.open()
    assert worker.code is None
    fold, _ = check_history(place)
    assert [fold.outcomes[at, 0].reason for at in range(3)] == ["session-unknown"] * 3
    assert fold.outcomes[3, 0].reason == "position-skipped"


def test_an_open_transaction_holds_nobody_up(place):
    """A writer that never ends its transaction stops neither the worker nor a client."""
    place.worker()
    for topic in (place.topics.operations, place.topics.questions):
        settings = {"bootstrap.servers": place.bootstrap, "transactional.id": "never-" + topic}
        hanging = Producer(settings)
        hanging.init_transactions(20)
        hanging.begin_transaction()
        hanging.produce(topic, value=ALIVE, partition=0)
        assert hanging.flush(20) == 0
    session = place.client().open()
    session.put("queue:a", 1)
    session.do(op.Commit, deliveries=[], puts=1)
    check_history(place)


def test_a_hole_at_the_end_of_the_log_is_told_after_a_start(place):
    """A worker that starts before a hole at the end answers as of before it, and says so."""
    in_transaction(place, place.topics.operations)
    worker = place.worker()
    worker.wait_for_log("positions 1 to 1 hold no record")
    client = place.client()
    assert client.ask("QUEUE_MANAGER")["position"] == 0
    skip(client, 1)
    client.open()
    check_history(place)


@pytest.mark.long
def test_a_transaction_on_the_questions_keeps_no_session_alive(place):
    """The end of the side topic is reached behind a transaction's marker too (H5)."""
    in_transaction(place, place.topics.questions)
    place.worker()
    client = place.client()
    client.open(suspect_timeout_ms=1_000)
    other = place.client(1)
    ended = SimpleNamespace(count=1)

    def gone() -> bool:
        ended.count = other.ask("SESSIONS")["document"].count('"session"')
        return ended.count == 0

    limit = time.monotonic() + 90
    while not gone():
        assert time.monotonic() < limit, "the silent session was never ended"
        in_transaction(place, place.topics.questions)
        time.sleep(1)


def test_an_upgrade_that_was_declared_skipped_stops_no_worker_any_more(place):
    """After H3 has stopped every worker, one declaration lets them go on from below it."""
    worker = place.worker("first")
    client = place.client()
    session = client.open()
    session.put("queue:a", 1)
    session.do(op.Commit, deliveries=[], puts=1)
    assert client.ask("CHECKPOINT")["reason"] == ""
    client.write(VersionOffered(worker="w", version=7))
    upgrade = session.write(op.Upgrade, version=7)
    session.reply(upgrade)
    position = session.positions[upgrade][0]
    assert client.ask("CHECKPOINT")["position"] == position
    session.write(op.Alive)
    client.flush()
    assert worker.wait() == 4
    assert f"ledgermq log skip {position} --queue-manager QM1" in worker.log
    skip(client, position - 1, position)
    again = place.worker("second")
    assert "was declared skipped since" in again.log
    fresh = place.client(1).open()
    fresh.put("queue:a", 1)
    fresh.do(op.Commit, deliveries=[], puts=1)
    assert client.ask("QUEUE_MANAGER")["reason"] == ""
    assert again.code is None


def test_a_declaration_counts_for_nothing_that_can_be_folded(place):
    """Entries that every fold can read are never passed over, whoever declares it (§8)."""
    place.worker("first", CHECKPOINT_SECONDS=3600)
    client = place.client()
    session = client.open()
    session.put("queue:a", 2)
    session.do(op.Commit, deliveries=[], puts=2)
    skip(client, 0, session.positions[2][0])
    session.do(op.Alive)
    place.workers[0].kill()
    place.worker("second")
    assert '"message_count":2' in client.ask("QUEUE", queue="a")["document"]
    check_history(place)
