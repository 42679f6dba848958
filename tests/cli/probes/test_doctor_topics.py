"""`ledgermq doctor` looks whether Kafka takes away from the log's topics what is needed."""

from __future__ import annotations

import pytest

from ledgermq.cli.commands.doctor import lost_by_keeping
from ledgermq.cli.printing.exits import CHECK_FAILED
from ledgermq.wire.topics.log_topics import Topics
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
