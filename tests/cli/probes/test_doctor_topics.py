"""`ledgermq doctor` looks whether Kafka takes away from the log's topics what is needed."""

from __future__ import annotations

import pytest

from ledgermq.cli.commands.doctor import OF_MAKING, lost_by_keeping, outdated_settings
from ledgermq.cli.printing.exits import CHECK_FAILED
from ledgermq.wire.topics.log_topics import Topics, made_settings
from support.brokers import topic_surgery as surgery
from support.brokers.worker_process import new_place

TOPICS = Topics("ledgermq")
MADE = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}


@pytest.mark.parametrize(
    ("topic", "changed", "words"),
    [
        (TOPICS.operations, {"retention.bytes": "1000"}, "retention.bytes is 1000, set it to -1"),
        (TOPICS.registry, {"retention.ms": "1000"}, "retention.ms is 1000, set it to -1"),
        (TOPICS.registry, {"cleanup.policy": "compact"}, "cleanup.policy=compact"),
        (TOPICS.outcomes, {"cleanup.policy": "compact,delete"}, "set delete"),
        (TOPICS.questions, {"cleanup.policy": "compact"}, "set delete"),
        (TOPICS.checkpoints, {"cleanup.policy": "compact,delete"}, "set compact"),
    ],
)
def test_a_topic_that_loses_what_is_needed_is_named_with_the_remedy(topic, changed, words):
    """Whichever topic, and whichever of its settings."""
    found = lost_by_keeping(topic, TOPICS, MADE | changed)
    assert found is not None
    assert found.startswith(topic)
    assert words in found


@pytest.mark.parametrize(
    ("topic", "settings"),
    [
        (TOPICS.operations, MADE),
        (TOPICS.outcomes, MADE | {"retention.ms": "1000", "retention.bytes": "1000"}),
        (TOPICS.checkpoints, MADE | {"cleanup.policy": "compact", "retention.ms": "1000"}),
    ],
)
def test_a_topic_that_keeps_what_is_needed_is_right(topic, settings):
    """Outcomes and questions may go with time; a retention does nothing to what is compacted."""
    assert lost_by_keeping(topic, TOPICS, settings) is None


@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("topic", TOPICS.names)
def test_a_topic_as_it_is_made_now_has_nothing_outdated(topic, replicas):
    """Nor one whose retention, or number of copies needed, operators chose."""
    made = made_settings(TOPICS, replicas)[topic]
    found = dict.fromkeys(OF_MAKING, "1") | made | {"retention.ms": "1", "min.insync.replicas": "3"}
    assert outdated_settings(topic, made, found, "h:1") == ""


@pytest.mark.kafka
@pytest.mark.slow
def test_checkpoints_of_an_older_release_are_told_with_the_command_for_them(
    broker, tmp_path, plain
):
    """Kafka keeps a week or a gigabyte of what was replaced, all of which a worker reads."""
    place = new_place(broker.bootstrap, tmp_path)
    name = place.topics.checkpoints
    surgery.alter_topic(place, name, segment_ms=604_800_000, segment_bytes=1_073_741_824)
    where = ("--bootstrap", place.bootstrap, "--topic-prefix", place.topics.prefix)
    answer = plain("doctor", "--json", "--timeout", "5", *where)
    (found,) = (one for one in answer.document["checks"] if one["check"] == "topics")
    assert found["verdict"] == "warning"
    assert f"{name} has segment.ms=604800000,segment.bytes=1073741824" in found["found"]
    mended = f"--topic {name} --add-config segment.ms=3600000,segment.bytes=33554432`"
    assert mended in found["found"]
    assert f"--bootstrap-server {place.bootstrap} --alter" in found["found"]


@pytest.mark.kafka
@pytest.mark.slow
def test_a_retention_on_the_checkpoints_is_a_failed_check(broker, tmp_path, plain):
    """With it, untouched parts of every checkpoint are lost one day."""
    place = new_place(broker.bootstrap, tmp_path)
    surgery.alter_topic(place, place.topics.checkpoints, cleanup_policy="compact,delete")
    where = ("--bootstrap", place.bootstrap, "--topic-prefix", place.topics.prefix)
    answer = plain("doctor", "--json", "--timeout", "5", *where)
    (found,) = (one for one in answer.document["checks"] if one["check"] == "topics")
    assert answer.code == CHECK_FAILED
    assert found["verdict"] == "failed"
    assert "set compact" in found["found"]


def test_what_rests_on_the_worker_is_not_asked_where_none_answers(plain, broker, tmp_path):
    """Each question would take its whole time-out."""
    place = new_place(broker.bootstrap, tmp_path)
    where = ("--bootstrap", place.bootstrap, "--topic-prefix", place.topics.prefix)
    answer = plain("doctor", *where, "--timeout", "2")
    assert answer.code == CHECK_FAILED
    lines = dict(line.split("\t")[1::-1] for line in answer.out.splitlines()[1:])
    assert lines["worker"] == "failed"
    assert [lines[name] for name in ("log time", "queues", "expiry", "unrouted")] == ["skipped"] * 4
