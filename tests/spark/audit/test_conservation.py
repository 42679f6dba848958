"""Tests of the law that every put is current, pending or removed, where it needs no tables."""

import random

import pytest

from ledgermq.core.queries.destination_status import subscription_statuses, topic_statuses
from ledgermq.core.queries.questions import queue_statuses
from ledgermq_spark.audit.conservation import (
    CONSERVATION,
    Kept,
    check_counts,
    check_kept,
    summary_of,
    told_of,
)
from support.brokers.log_writer import Script
from support.random_logs.random_log import RandomLog


def counts_of(state):
    """What the rebuilt state tells of queues, topics and subscriptions."""
    return queue_statuses(state), topic_statuses(state), subscription_statuses(state)


@pytest.fixture(scope="module")
def state():
    """The state of a random log with everything that may become of a put."""
    script = Script(random=random.Random(5))
    RandomLog(script, topics=True, ends=True, moves=True, redelivery=True).grow(400)
    return script.state


def test_the_counts_of_a_rebuilt_state_add_up(state):
    """Of every queue, topic and subscription, with something pending and something gone."""
    told = counts_of(state)
    assert check_counts(*told, 9) == []
    assert all(any(one["message_count"] for one in kind) for kind in told)
    assert any(one["moved"] for one in told[0])


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        *((0, one) for one in ("message_count", "current", "pending", "moved", "next_sequence")),
        *((1, one) for one in ("message_count", "expired", "dropped", "next_sequence")),
        *((2, one) for one in ("message_count", "current", "pending", "dropped", "added")),
    ],
)
def test_a_count_that_is_one_off_is_named(state, kind, field):
    """A message that is nowhere, or in two places, of the place that lacks it (INF-19)."""
    told = counts_of(state)
    chosen = told[kind][-1]
    chosen[field] += 1
    (found,) = check_counts(*told, 9)
    assert (found.kind, found.source, found.field) == ("state mismatch", "rebuild", CONSERVATION)
    assert chosen.get("topic", chosen["name"]) in found.queue


def test_what_was_accepted_is_what_is_there_and_what_left():
    """The evidence says what was accepted and what became of it; the summary, that it broke."""
    gone = {"consumed": 3, "moved": 0, "rolled_back": 1}
    whole = Kept("queue", "q", 3, 7, current=2, pending=1, removed=gone)
    broken = whole._replace(name="r", pending=0)
    assert check_kept([whole], 9) == []
    (found,) = check_kept([whole, broken], 9)
    assert (found.queue, found.expected) == ("r", "7 accepted")
    assert found.found == "2 current + 0 pending + 3 consumed + 1 rolled back"
    assert summary_of([whole])["holds"]
    told = summary_of([whole, broken])
    assert not told["holds"]
    assert told["queues"] == {
        "accepted": 14,
        "current": 4,
        "pending": 1,
        "removed": {"consumed": 6, "moved": 0, "rolled_back": 2},
    }
    (sentence,) = told_of(told)
    assert sentence.startswith("INF-19 conservation is broken: queues: 14 accepted = 4 current + ")
    assert sentence.endswith(" + 1 pending + 6 consumed + 2 rolled back")
