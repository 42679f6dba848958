"""Checkpoints on a real broker: damaged, foreign, tidied (D5, H1, H13, H14)."""

import subprocess
import sys

import pytest

from ledgermq.protocol import operations as op
from ledgermq.wire.framing.codec import decode_record
from ledgermq.wire.topics.log_topics import ensure_topics
from support.brokers import topic_surgery as surgery
from support.brokers.traffic import Traffic
from support.checks.history import check_history

pytestmark = pytest.mark.kafka


@pytest.fixture
def worked(place):
    """A place where a worker made three checkpoints and was stopped; its traffic."""
    worker = place.worker("first", CHECKPOINT_SECONDS=3600)
    traffic = Traffic(place.client(0), place.client(1))
    for _ in range(3):
        traffic.run(5)
        traffic.settle()
        assert traffic.producer.client.ask("CHECKPOINT")["reason"] == ""
    assert worker.stop() == 0
    return traffic


def test_a_restart_goes_on_from_the_newest_checkpoint(place, worked):
    """A restarted worker folds only what came after its checkpoint, and the history is whole."""
    worker = place.worker("second")
    assert "(from a checkpoint)" in worker.log
    worked.run(5)
    worked.settle()
    check_history(place)


def test_messages_of_subscriptions_come_back_from_a_checkpoint(place):
    """Subscriptions of one topic have its name in common; each has its own blocks."""
    worker = place.worker("first", CHECKPOINT_SECONDS=3600)
    client = place.client()
    session = client.open()
    for number, name in enumerate(("s", "r"), start=1):
        told = {"selector": "", "subscription": name, "durable": True, "shared": True}
        session.do(op.OpenConsumer, consumer=number, destination="topic:t", **told)
    session.put("topic:t", 3)
    session.do(op.Commit, deliveries=[], puts=3)
    assert client.ask("CHECKPOINT")["reason"] == ""
    assert worker.stop() == 0
    worker = place.worker("second", CHECKPOINT_SECONDS=3600)
    assert "(from a checkpoint)" in worker.log
    session.put("topic:t", 2)
    session.do(op.Commit, deliveries=[], puts=2)
    assert client.ask("CHECKPOINT")["reason"] == ""
    check_history(place)


def test_a_checkpoint_answer_names_the_digest_of_a_whole_checkpoint(place):
    """CHECKPOINT answers when the manifest it names is durable, at the position it names."""
    place.worker()
    client = place.client()
    session = client.open()
    session.put("queue:a", 3)
    session.do(op.Commit, deliveries=[], puts=3)
    answer = client.ask("CHECKPOINT")
    again = client.ask("CHECKPOINT")
    assert answer["document"] == again["document"]
    shelf = surgery.checkpoint_shelf(place)
    _, manifest = decode_record(shelf[f"QM1/manifest/{answer['position']}"])
    assert f'"digest":"{manifest["digest"]}"' in answer["document"]
    assert {f"QM1/chunk/{one['digest']}" for one in manifest["chunks"]} <= set(shelf)


def test_a_damaged_chunk_leads_to_an_older_checkpoint(place, worked):
    """A chunk that does not have its digest makes the checkpoint unusable; the log says so."""
    shelf = surgery.checkpoint_shelf(place)
    manifests = sorted(int(key.rpartition("/")[2]) for key in shelf if "/manifest/" in key)
    _, newest = decode_record(shelf[f"QM1/manifest/{manifests[-1]}"])
    root = f"QM1/chunk/{newest['chunks'][0]['digest']}"
    damaged = bytes([*shelf[root][:-1], shelf[root][-1] ^ 1])
    surgery.write(place, place.topics.checkpoints, root, damaged)
    worker = place.worker("second")
    assert "is damaged; trying an older one" in worker.log
    assert f"state loaded at position {manifests[-2]} (from a checkpoint)" in worker.log
    worked.run(3)
    worked.settle()
    check_history(place)


def test_without_any_whole_checkpoint_all_of_the_log_is_folded(place, worked):
    """Missing chunks in every checkpoint lead to a fold from zero; the log says so."""
    for key in surgery.checkpoint_shelf(place):
        if "/chunk/" in key:
            surgery.write(place, place.topics.checkpoints, key, None)
    worker = place.worker("second")
    assert "is missing; trying an older one" in worker.log
    assert "(from the beginning)" in worker.log
    worked.run(3)
    worked.settle()
    check_history(place)


def test_a_lane_that_lost_outcomes_gets_them_again(place, worked):
    """Lanes shorter than a checkpoint recorded make it unusable; outcomes are written anew (H1)."""
    surgery.delete_topic(place, place.topics.outcomes)
    ensure_topics(place.bootstrap, place.topics, partitions=place.partitions, lanes=place.lanes)
    worker = place.worker("second")
    assert "outcomes were lost; trying an older one" in worker.log
    check_history(place)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cluster_id": "another"}, "it was made on cluster another"),
        ({"topic_id": "another"}, "the topic was deleted and made again"),
        *(
            pytest.param(*one, marks=pytest.mark.long)
            for one in (
                ({"record_digest": bytes(32)}, "holds another record at position"),
                ({"append_time_ms": 1}, "was appended at another time"),
                ({"position": 1_000_000}, "it lies above the end of the log"),
            )
        ),
    ],
)
def test_a_checkpoint_of_another_log_stops_the_start_until_it_is_discarded(
    place, worked, changes, said
):
    """A worker refuses checkpoints of another log; discarding them lets it fold anew (H14)."""
    surgery.rewrite_manifest(place, **changes)
    refused = place.worker("second", ready=False)
    assert refused.wait() == 4
    assert said in refused.log
    assert "ledgermq checkpoint discard --queue-manager QM1 --yes" in refused.log
    command = [sys.executable, "-m", "ledgermq", "checkpoint", "discard", "--yes"]
    command += ["--bootstrap", place.bootstrap, "--topic-prefix", place.topics.prefix]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "of QM1 discarded" in done.stdout
    worker = place.worker("third")
    assert "(from the beginning)" in worker.log
    check_history(place)


def test_only_the_last_three_checkpoints_and_their_chunks_are_kept(place):
    """After many checkpoints the topic holds three manifests and exactly what they need (H13)."""
    place.worker()
    client = place.client()
    session = client.open()
    for round_number in range(6):
        session.put(f"queue:q{round_number}", 2)
        session.do(op.Commit, deliveries=[], puts=2)
        client.ask("CHECKPOINT")
    # The tidying follows the answer.
    session.put("queue:last", 1)
    session.do(op.Commit, deliveries=[], puts=1)
    client.ask("CHECKPOINT")
    client.read_until(lambda: len(_manifests(place)) == 3)
    shelf = surgery.checkpoint_shelf(place)
    needed = {
        f"QM1/chunk/{one['digest']}" for manifest in _manifests(place) for one in manifest["chunks"]
    }
    assert {key for key in shelf if "/chunk/" in key} == needed


def _manifests(place):
    shelf = surgery.checkpoint_shelf(place)
    return [decode_record(value)[1] for key, value in shelf.items() if "/manifest/" in key]


def test_a_log_that_begins_late_without_a_checkpoint_is_refused(place, worked):
    """Without a checkpoint, a log whose beginning is gone stops the worker with a clear word."""
    for key in surgery.checkpoint_shelf(place):
        surgery.write(place, place.topics.checkpoints, key, None)
    surgery.delete_records(place, place.topics.operations, place.claim.partition, 5)
    worker = place.worker("second", ready=False)
    assert worker.wait() == 4
    assert "begins at 5, not at 0" in worker.log


def test_a_retry_after_a_restart_gets_the_reply_of_the_first_time(place):
    """Kept replies are in the checkpoint: an operation sent twice acts once (D7, H15)."""
    worker = place.worker("first")
    client = place.client()
    session = client.open()
    session.put("queue:a", 4)
    first = session.reply(1)
    client.ask("CHECKPOINT")
    worker.kill()
    worker = place.worker("second")
    session.sequence = session.answered = 0
    session.put("queue:a", 4)
    client.flush()
    again = client.ask("QUEUE", queue="a", not_before=session.positions[1][0], wait_ms=30_000)
    assert '"uncommitted_puts":4' in again["document"]
    replies = [
        one
        for one in client.outcomes.values()
        if getattr(one, "session_sequence", 0) == 1 and one.session == session.handle
    ]
    assert [type(one) for one in replies] == [type(first)] * 2
    check_history(place)
