"""Asking Kafka who is in the group of workers, while its coordinator comes up."""

from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from ledgermq.processor.worker import membership
from ledgermq.wire.topics.log_topics import Topics
from ledgermq.wire.topics.reading import LogUnreadableError

GROUP = "ledgermq.workers"


@pytest.fixture
def answers(monkeypatch) -> list[object]:
    """What Kafka answers, one after the other: a group, or the code of an error without a text."""
    given: list[object] = []

    def describe(groups, **_):
        asked: Future[object] = Future()
        answer = given.pop(0) if len(given) > 1 else given[0]
        if isinstance(answer, int):
            asked.set_exception(KafkaException(KafkaError(answer, "ConsumerGroupDescribe: ")))
        else:
            asked.set_result(answer)
        return dict.fromkeys(groups, asked)

    monkeypatch.setattr(
        membership, "AdminClient", lambda *_: SimpleNamespace(describe_consumer_groups=describe)
    )
    monkeypatch.setattr(membership, "AGAIN_SECONDS", 0.0)
    return given


def test_a_coordinator_that_comes_up_is_waited_for(answers):
    """For a moment it has no answer; that is no reason to give up."""
    member = SimpleNamespace(group_instance_id=None, client_id="w1")
    answers += [
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        SimpleNamespace(members=[member]),
    ]
    assert membership.running_workers("", Topics("ledgermq"), 20) == ["w1"]


def test_what_kafka_refuses_without_a_text_is_told_by_its_name(answers):
    """Not waited for longer than asked."""
    answers.append(KafkaError.COORDINATOR_NOT_AVAILABLE)
    with pytest.raises(LogUnreadableError, match=f"{GROUP} .* COORDINATOR_NOT_AVAILABLE"):
        membership.running_workers("", Topics("ledgermq"), 0)


def test_a_group_that_nobody_made_has_no_workers(answers):
    """Nobody has joined it yet."""
    answers.append(KafkaError.GROUP_ID_NOT_FOUND)
    assert membership.running_workers("", Topics("ledgermq"), 0) == []
