"""Transactions of a bridge out that Kafka decided and left open: they are finished so."""

from __future__ import annotations

import asyncio

import pytest

from ledgermq.client.messages.message import raw_message
from ledgermq.relay import transaction_markers
from ledgermq.relay.topic_goal import TopicGoal
from ledgermq.relay.transaction_markers import finish_transaction
from support.brokers.open_transaction import leave_open, state_of

pytestmark = pytest.mark.kafka


def goal_of(ways, topic, source):
    """The goal of a bridge."""
    return TopicGoal(ways.bootstrap, topic, source, 20, tell=ways.told.append)


@pytest.fixture
def written(ways):
    """A topic, the goal's source, its transactional id after one transfer, and three messages."""
    queue, topic, source = ways.name(), ways.topic(), ways.name("source")
    with ways.connect() as connection, connection.session() as session:
        for body in (b"0", b"1", b"2"):
            session.producer(f"queue:{queue}").send(body)
    messages = [raw_message(one) for one in ways.messages(queue)]
    with goal_of(ways, topic, source) as goal:
        goal.take(0, messages[:1])
    ways.told.clear()
    return topic, source, goal, messages


def abort(goal):
    """Has the goal's producer abort a transaction."""
    goal._producer.begin_transaction()
    goal._producer.produce(goal._topic, b"aborted")
    goal._producer.flush()
    goal._producer.abort_transaction()


@pytest.mark.parametrize(
    ("verb", "is_record_open", "is_position_open"),
    [
        ("commit", True, True),
        ("abort", True, True),
        ("commit", False, True),
        ("abort", True, False),
    ],
)
def test_what_kafka_left_open_is_finished_as_it_was_decided(
    ways, written, verb, is_record_open, is_position_open
):
    """The bridge goes on after it, and each transfer is there once (I1, I3)."""
    topic, source, goal, messages = written
    if verb == "abort":
        abort(goal)
    leave_open(
        *(ways.bootstrap, goal._name, topic),
        value=b"1" if is_record_open else None,
        position=2 if is_position_open else None,
    )
    with goal_of(ways, topic, source) as again:
        assert again.taken == (1 if verb == "commit" else 0)
        if verb == "abort":
            again.take(1, messages[1:2])
        again.take(2, messages[2:])
    (told,) = ways.told
    assert f"is finished: {verb} on partition" in told
    assert (f"partition 0 of topic {topic}" in told) == is_record_open
    assert ("of topic __consumer_offsets" in told) == is_position_open
    # Where it had its marker already the record is not made again here.
    expected = [b"0", b"1", b"2"] if verb == "abort" or is_record_open else [b"0", b"2"]
    assert [one.value() for one in ways.records(topic)] == expected


def test_a_transaction_that_somebody_began_meanwhile_is_left_alone(ways, written, monkeypatch):
    """It is none that Kafka left, though it looks so."""
    topic, _, goal, _ = written
    before = asyncio.run(state_of(ways.bootstrap, goal._name))
    look = transaction_markers._open

    async def begin_and_look(*given):
        goal._producer.begin_transaction()
        goal._producer.produce(topic, b"theirs")
        goal._producer.flush()
        return await look(*given)

    monkeypatch.setattr(transaction_markers, "_open", begin_and_look)
    asked = (ways.bootstrap, goal._name, topic, 20)
    assert finish_transaction(*asked, check_position=pytest.fail) == ""
    after = asyncio.run(state_of(ways.bootstrap, goal._name))
    assert (before.state, after.state) == ("CompleteCommit", "Ongoing")
    goal._producer.abort_transaction()
    assert [one.value() for one in ways.records(topic)] == [b"0"]
