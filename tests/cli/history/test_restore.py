"""`ledgermq restore`: checkpoints that are lost, wrong or broken are made anew from the log."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from confluent_kafka import Producer

from ledgermq.cli.commands.restore import _told
from ledgermq.cli.options.running import announce
from ledgermq.cli.printing.exits import OK, REFUSED, UNREACHABLE, USAGE
from ledgermq.processor.checkpoints.digests import chunk_digest
from ledgermq.processor.checkpoints.discarding import discard_outcomes
from ledgermq.processor.checkpoints.loading import load
from ledgermq.protocol.outcomes import Refused
from ledgermq.wire.framing.codec import decode_record, encode_chunk, encode_record
from ledgermq.wire.topics.reading import PartitionReader
from ledgermq_spark.rebuild.rebuild import rebuild_at
from support.brokers import topic_surgery as surgery
from support.brokers.worker_process import new_place
from support.checks.history import check_history, read_partition

pytestmark = [pytest.mark.long, pytest.mark.kafka, pytest.mark.slow]

MESSAGES = 7
ROOT = "ledgermq.checkpoint.Root"


@pytest.fixture
def worked(place):
    """A place whose worker made two checkpoints, and a last one as it stopped, which is gone."""
    worker = place.worker("first", CHECKPOINT_SECONDS=3600)
    with place.connect() as connection:
        for bodies in (range(3), range(3, MESSAGES)):
            with connection.session(transacted=True) as session:
                for number in bodies:
                    session.producer("queue:orders").send(str(number))
                session.commit()
            connection.admin.checkpoint()
        with connection.session() as session:
            session.producer("queue:other").send("after the checkpoints")
    assert worker.stop() == 0
    remove(place, f"/manifest/{positions(place)[-1]}")
    return place


@pytest.fixture
def restore(plain):
    """Calls the command on a place, with --json."""

    def run(place, *options):
        where = ("--bootstrap", place.bootstrap, "--topic-prefix", place.topics.prefix)
        return plain("restore", "--json", *where, *options)

    return run


def positions(place):
    """The positions of the manifests that are there."""
    keys = [key for key in surgery.checkpoint_shelf(place) if "/manifest/" in key]
    return sorted(int(key.rpartition("/")[2]) for key in keys)


def remove(place, part):
    """Takes away all keys that hold a text."""
    for key in surgery.checkpoint_shelf(place):
        if part in key:
            surgery.write(place, place.topics.checkpoints, key, None)


def spoil_newest(place):
    """Makes the newest checkpoint one of another state, whole and of this log; its position.

    It says that the manager has a quota that nobody gave it.
    """
    shelf = surgery.checkpoint_shelf(place)
    position = positions(place)[-1]
    _, manifest = decode_record(shelf[f"QM1/manifest/{position}"])
    first, *others = manifest["chunks"]
    root = decode_record(shelf[f"QM1/chunk/{first['digest']}"])[1]
    value = encode_record(ROOT, root | {"messages_max": 12_345})
    digest = chunk_digest(value)
    surgery.write(place, place.topics.checkpoints, f"QM1/chunk/{digest}", value)
    chunks = [first | {"digest": digest}, *others]
    whole = b"".join(bytes.fromhex(one["digest"]) for one in chunks)
    return surgery.rewrite_manifest(place, chunks=chunks, digest=chunk_digest(whole))


def write_unanswered(place):
    """Writes a record that every fold refuses, and that no worker has seen."""
    surgery.write(place, place.topics.operations, "QM1", b"no operation")


def records_in(place):
    """How many records the topic of checkpoints has ever got."""
    topic, partition = place.topics.checkpoints, place.claim.partition
    return len(list(read_partition(place.bootstrap, topic, partition)))


def rebuilt_digest(place, position):
    """The digest of the state at a position, by a rebuild from zero."""
    prefix = place.topics.prefix
    return rebuild_at(place.bootstrap, "QM1", position, topic_prefix=prefix).digest


def check_start(place, position, *, forged=False):
    """A worker starts from a position, and a client finds every message.

    Unless lanes hold what was `forged`, all of the history is as the fold has it.
    """
    worker = place.worker("next")
    assert f"state loaded at position {position} (from a checkpoint)" in worker.log
    with place.connect() as connection, connection.session() as session:
        consumer = session.consumer("queue:orders")
        bodies = [consumer.receive(timeout=30).body for _ in range(MESSAGES)]
        assert bodies == [str(number) for number in range(MESSAGES)]
        message = session.consumer("queue:other").receive(timeout=30)
        assert message.body == "after the checkpoints"
    if not forged:
        check_history(place)


def test_lost_checkpoints_are_made_anew_and_a_worker_starts_from_there(worked, restore):
    """At the log's end, with the digest of a rebuild; a dry run before it writes nothing."""
    remove(worked, "/")
    assert positions(worked) == []
    before = records_in(worked)
    dry = restore(worked, "--dry-run")
    assert dry.code == OK, dry.err
    assert (dry.document["restored"], dry.document["checkpoints"]) == (False, [])
    assert restore(worked).code == USAGE
    assert records_in(worked) == before

    done = restore(worked, "--yes")
    assert done.code == OK, done.err
    document = done.document
    assert document["restored"] is True
    assert document["digest"] == dry.document["digest"]
    assert document["notes"] == []
    assert document["outcomes_compared"] > MESSAGES
    assert "agrees with" in document["chain_proof"]
    position = document["position"]
    assert positions(worked) == [position]
    assert document["digest"] == rebuilt_digest(worked, position)
    check_start(worked, position)


def test_a_wrong_checkpoint_is_told_and_taken_away(worked, restore):
    """A whole one of a wrong state wins at a start, until a restore at its position or below."""
    right, wrong = positions(worked)
    assert spoil_newest(worked) == wrong
    with PartitionReader(worked.bootstrap, 20.0) as reader:
        loaded = load(reader, worked.ledger)
    assert loaded.state.position == wrong
    before = records_in(worked)
    dry = restore(worked, "--dry-run", "--at", right).document
    told = {one["position"]: (one["verdict"], one["retired"]) for one in dry["checkpoints"]}
    assert told == {right: ("right", False), wrong: ("wrong", True)}
    assert records_in(worked) == before

    done = restore(worked, "--yes", "--at", right)
    assert done.code == OK, done.err
    assert done.document["position"] == done.document["starts_from"] == right
    assert positions(worked) == [right]
    assert done.document["digest"] == rebuilt_digest(worked, right)
    check_start(worked, right)


def test_a_dry_run_does_not_write_what_stands_there():
    """What is judged right stays; what is wrong would be written over."""
    common = {"queue_manager": "QM1", "position": 7, "size_bytes": 1, "digest": "d"}
    for retired, told in ((False, "stands already, and is right,"), (True, "would be written")):
        found = [{"position": 7, "retired": retired}, {"position": 9, "retired": False}]
        document = common | {"restored": False, "checkpoints": found}
        assert _told(document).startswith(f"a checkpoint {told} at QM1@7: ")


@pytest.mark.long
def test_a_wrong_checkpoint_at_the_position_is_written_over(worked, restore):
    """The manifest of that position is then the right one."""
    _, wrong = positions(worked)
    spoil_newest(worked)
    done = restore(worked, "--yes", "--at", wrong)
    assert done.code == OK, done.err
    assert [one["verdict"] for one in done.document["checkpoints"]] == ["right", "wrong"]
    check_start(worked, wrong)


@pytest.mark.long
def test_checkpoints_contradict_each_other_without_the_log_between(worked, restore):
    """From a checkpoint on nobody can say which is wrong: nothing is changed."""
    _, wrong = positions(worked)
    spoil_newest(worked)
    before = records_in(worked)
    refused = restore(worked, "--yes", "--from-checkpoint")
    assert (refused.code, refused.error["code"]) == (REFUSED, "restore-refused")
    assert f"does not come to what is at {wrong}" in refused.error["message"]
    assert "leave out --from-checkpoint" in refused.error["message"]
    assert records_in(worked) == before


@pytest.mark.long
def test_a_broken_checkpoint_and_one_above_the_log_are_taken_away(worked, restore, plain):
    """A missing chunk is named; what lies above the end would keep workers from starting."""
    right, broken = positions(worked)
    shelf = surgery.checkpoint_shelf(worked)
    manifest = decode_record(shelf[f"QM1/manifest/{broken}"])[1]
    older = decode_record(shelf[f"QM1/manifest/{right}"])[1]
    missing = manifest["chunks"][0]["digest"]
    surgery.write(worked, worked.topics.checkpoints, f"QM1/chunk/{missing}", None)
    far = encode_record("ledgermq.checkpoint.Manifest", older | {"position": 10_000})
    surgery.write(worked, worked.topics.checkpoints, "QM1/manifest/10000", far)
    where = ("--bootstrap", worked.bootstrap, "--topic-prefix", worked.topics.prefix)
    dry = plain("restore", "--dry-run", *where)
    assert dry.code == OK, dry.err
    heading, *rows, told = [line.split("\t") for line in dry.lines]
    assert heading == ["CHECKPOINT", "VERDICT", "FATE", "WHY"]
    assert [row[:3] for row in rows] == [
        [str(right), "right", "stays"],
        [str(broken), "unusable", "taken away"],
        ["10000", "unusable", "taken away"],
    ]
    assert told[0].startswith("a checkpoint would be written at QM1@")
    assert "agrees with" in dry.err
    done = restore(worked, "--yes")
    assert done.code == OK, done.err
    why = {one["position"]: one["why"] for one in done.document["checkpoints"] if one["retired"]}
    assert why.keys() == {broken, 10_000}
    assert f"chunk {missing} is missing" in why[broken]
    assert "lies above the end of the log" in why[10_000]
    assert done.document["present"] > 0
    assert positions(worked) == [right, done.document["position"]]
    check_start(worked, done.document["position"])


def test_a_restore_is_refused_while_a_worker_runs(worked, restore):
    """It names the worker, or the `ledgermq up` that starts one; when that has ended, it works."""
    worker = worked.worker("alive", CHECKPOINT_SECONDS=3600)
    refused = restore(worked, "--yes")
    assert (refused.code, refused.error["code"]) == (REFUSED, "restore-refused")
    assert "(alive): stop all workers first" in refused.error["message"]
    assert worker.stop() == 0
    before = records_in(worked)
    directory = worked.directory / "installation"
    with announce(directory) as tell:
        tell(bootstrap=worked.bootstrap)
        refused = restore(worked, "--yes", "--data-dir", directory)
    assert (refused.code, refused.error["code"]) == (REFUSED, "restore-refused")
    assert f"`ledgermq up` runs on {directory}" in refused.error["message"]
    assert records_in(worked) == before
    assert restore(worked, "--dry-run", "--data-dir", directory).code == OK


def test_what_no_lane_answered_is_not_restored_and_other_answers_are_told(worked, restore):
    """Operations that came while no worker ran are left to the next one (H1).

    An outcome that the log does not call for changes nothing, but a client may have seen it.
    """
    answered = restore(worked, "--dry-run").document["position"]
    write_unanswered(worked)
    refused = {"session": -1, "session_sequence": 0, "reason": "r", "detail": "forged"}
    told = Refused(position=answered, index=7, **refused)
    surgery.write(worked, worked.topics.outcomes, "", encode_chunk(-1, -2, [told]))
    done = restore(worked, "--yes")
    assert done.code == OK, done.err
    assert done.document["position"] == answered
    other, note = done.document["notes"]
    assert (
        f"1 outcomes on the lanes are not those of the log, the first at position {answered}"
        in (other)
    )
    assert f"the lanes lack the outcome of position {answered + 1}" in note
    check_start(worked, answered, forged=True)


def test_outcomes_that_are_gone_count_as_none_that_were_compared(worked, restore):
    """They were said to be compared, and in the next line not to be."""
    discard_outcomes(worked.ledger)
    document = restore(worked, "--dry-run").document
    (note,) = document["notes"]
    assert "outcomes have expired on the lanes: they were not compared" in note
    assert document["outcomes_compared"] == 0


@pytest.mark.parametrize(
    "point",
    [
        "after-chunks",
        "before-manifest",
        "after-manifest",
    ],
)
@pytest.mark.long
def test_a_restore_that_is_killed_can_be_called_again(worked, restore, point):
    """What it leaves is believed by nobody before its manifest is there."""
    remove(worked, "/")
    command = [sys.executable, "-m", "ledgermq", "restore", "--yes"]
    command += ["--bootstrap", worked.bootstrap, "--topic-prefix", worked.topics.prefix]
    killed = subprocess.run(
        command, capture_output=True, env=os.environ | {"LEDGERMQ_CRASH_AT": point}, check=False
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert len(positions(worked)) == (point == "after-manifest")
    assert len(surgery.checkpoint_shelf(worked)) > 1
    done = restore(worked, "--yes")
    assert done.code == OK, done.err
    assert done.document["present"] == done.document["chunks"]
    check_start(worked, done.document["position"])


def test_a_trimmed_log_is_restored_from_its_oldest_checkpoint_or_not_at_all(worked, restore):
    """What stood before is taken as the checkpoint has it; without one nothing can be told."""
    oldest, newest = positions(worked)
    surgery.delete_records(worked, worked.topics.operations, 0, oldest)
    surgery.write(worked, worked.topics.checkpoints, f"QM1/manifest/{newest}", None)
    done = restore(worked, "--yes")
    assert done.code == OK, done.err
    assert done.document["folded_from"] == oldest + 1
    (note,) = done.document["notes"]
    assert f"up to position {oldest} is that of the checkpoint there" in note
    assert positions(worked) == [oldest, done.document["position"]]
    remove(worked, "/manifest/")
    gone = restore(worked, "--yes")
    assert (gone.code, gone.error["code"]) == (REFUSED, "log-trimmed")


@pytest.mark.long
def test_an_altered_log_is_not_restored(worked, restore):
    """The digest chain on the lanes tells of other records: nothing is written."""
    remove(worked, "/")
    before = records_in(worked)
    copy = new_place(worked.bootstrap, worked.directory)
    # Written again, all records have other append times.
    producer = Producer({"bootstrap.servers": worked.bootstrap})
    for name, partition in (("operations", 0), ("outcomes", 0), ("outcomes", 1)):
        topic, other = getattr(worked.topics, name), getattr(copy.topics, name)
        for record in read_partition(worked.bootstrap, topic, partition):
            told = {"headers": record.headers(), "partition": partition}
            producer.produce(other, record.value(), record.key(), **told)
    assert producer.flush(20) == 0
    refused = restore(copy, "--yes")
    assert (refused.code, refused.error["code"]) == (REFUSED, "rebuild-unproven")
    assert "the operations are not those that were folded" in refused.error["message"]
    assert records_in(copy) == 0
    assert records_in(worked) == before


def test_what_cannot_be_restored_is_refused_as_by_a_rebuild(place, restore, plain):
    """An empty log, a position above the end, an unknown name, a broker that is not there."""
    empty = restore(place, "--yes")
    assert (empty.code, empty.error["code"]) == (REFUSED, "position-out-of-range")
    place.worker("first").stop()
    write_unanswered(place)
    where = ("--json", "--topic-prefix", place.topics.prefix)
    cases = [
        (("--bootstrap", place.bootstrap, "--at", 99), REFUSED),
        (("--bootstrap", place.bootstrap, "--queue-manager", "QM9"), REFUSED),
        (("--bootstrap", "127.0.0.1:1"), UNREACHABLE),
    ]
    for options, code in cases:
        refused = plain("restore", "--yes", *where, *options)
        rebuilt = plain("rebuild", *where, *options)
        assert (refused.code, refused.error) == (rebuilt.code, rebuilt.error), options
        assert refused.code == code
    unanswered = restore(place, "--yes")
    assert (unanswered.code, unanswered.error["code"]) == (REFUSED, "rebuild-unproven")
    assert "Start a worker" in unanswered.error["message"]
