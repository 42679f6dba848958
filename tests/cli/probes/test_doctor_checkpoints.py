"""`ledgermq doctor` looks whether checkpoints are whole, before a worker has to start from them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ledgermq.cli.commands.doctor import checkpoints
from ledgermq.cli.printing.exits import CHECK_FAILED, OK
from ledgermq.processor.checkpoints.loading import FoundCheckpoint
from support.brokers import topic_surgery as surgery


@pytest.fixture
def worked(place):
    """A place with one checkpoint, on which no worker runs."""
    worker = place.worker("first", CHECKPOINT_SECONDS=3600)
    with place.connect() as connection, connection.session() as session:
        session.producer("queue:orders").send("kept")
    assert worker.stop() == 0
    return place


@pytest.fixture
def doctor(plain):
    """What doctor finds of checkpoints at a place."""

    def look(place):
        where = ("--bootstrap", place.bootstrap, "--topic-prefix", place.topics.prefix)
        # No worker answers, which is another check.
        answer = plain("doctor", "--json", "--timeout", "5", *where)
        assert answer.code in (OK, CHECK_FAILED)
        (found,) = (one for one in answer.document["checks"] if one["check"] == "checkpoints")
        return found["verdict"], found["found"]

    return look


def chunks_of(place):
    """The keys of the chunks that are there."""
    return [key for key in surgery.checkpoint_shelf(place) if "/chunk/" in key]


@pytest.mark.kafka
@pytest.mark.slow
def test_a_whole_checkpoint_is_found_whole(worked, doctor):
    """With where the newest is."""
    verdict, found = doctor(worked)
    assert verdict == "ok"
    assert "1 checkpoint, all whole; the newest is at QM1@" in found


@pytest.mark.kafka
@pytest.mark.slow
def test_a_checkpoint_that_lacks_a_chunk_is_a_warning_that_says_what_follows(worked, doctor):
    """The next worker folds the whole log; doctor says so before it does."""
    surgery.write(worked, worked.topics.checkpoints, chunks_of(worked)[0], None)
    verdict, found = doctor(worked)
    assert verdict == "warning"
    assert "is unusable: chunk" in found
    assert "The next worker starts from the log's beginning" in found


@pytest.mark.kafka
@pytest.mark.slow
def test_a_checkpoint_of_another_log_fails_the_check(worked, doctor):
    """No worker would start on it."""
    surgery.rewrite_manifest(worked, topic_id="A" * 22)
    verdict, found = doctor(worked)
    assert verdict == "failed"
    assert "the topic was deleted and made again" in found
    assert "`ledgermq restore`" in found


def found_at(position, problem="", **worth):
    """A checkpoint as it was found."""
    return FoundCheckpoint(position=position, digest="", chain=b"", problem=problem, **worth)


NEWER = found_at(7, "another release wrote it", of_another_release=True)


@pytest.mark.parametrize(
    ("found", "begins", "verdict", "words"),
    [
        ([], 0, "ok", ["none yet", "from the log's beginning"]),
        ([], 5, "failed", ["there is none", "QM1@5", "no worker can start"]),
        ([found_at(3), found_at(7)], 5, "ok", ["2 checkpoints, all whole", "QM1@7"]),
        (
            [found_at(3), found_at(7, "torn")],
            3,
            "warning",
            ["QM1@7 is unusable", "from that at QM1@3"],
        ),
        ([found_at(3, "torn")], 2, "failed", ["torn", "no worker can start"]),
        ([found_at(3, "other", foreign=True), found_at(7)], 0, "warning", ["from that at QM1@7"]),
        ([found_at(3), found_at(7, "other", foreign=True)], 0, "failed", ["No worker starts"]),
        ([found_at(3), NEWER], 3, "failed", ["QM1@7 is unusable", "start that one, or a later"]),
        ([NEWER], 3, "failed", ["another release wrote it", "start that one, or a later"]),
        ([NEWER, found_at(9)], 3, "warning", ["from that at QM1@9"]),
        ([found_at(n, "torn") for n in range(9)], 0, "warning", ["QM1@8", "QM1@6", "6 more"]),
    ],
)
def test_what_checkpoints_are_worth_is_told_with_what_follows(found, begins, verdict, words):
    """A worker takes the newest whole one, none if it first meets one of another log or release."""
    got, text = checkpoints(found, begins, lambda position: f"QM1@{position}")
    assert got == verdict
    assert [word for word in words if word not in text] == []


def test_checkpoints_whose_outcomes_alone_are_gone_stop_no_worker_of_a_trimmed_log():
    """It starts without them; nothing else has the state."""
    lost = "lane 0 ends at 2, it ended at 15: outcomes were lost"
    found = FoundCheckpoint(position=9, digest="", chain=b"", problem=lost, lacks_outcomes=True)
    verdict, text = checkpoints([found], 5, "QM1@{}".format)
    assert verdict == "warning"
    assert "the next worker starts without these outcomes" in text
    verdict, text = checkpoints([replace(found, lacks_outcomes=False)], 5, "QM1@{}".format)
    assert verdict == "failed"
