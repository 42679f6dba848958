"""Tests that every put is current, pending or removed, as the rebuilt state and totals say."""

import random

import pytest

from ledgermq.core.queries.destination_status import (
    queue_statuses,
    subscription_statuses,
    topic_statuses,
)
from ledgermq_spark.audit.conservation import (
    CONSERVATION,
    PENDING,
    REMOVED,
    check_counts,
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
    script = Script(random=random.Random(6))
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


def total(**counts):
    """What became of the messages of a queue."""
    names = ("put", "resident", "uncommitted", *PENDING, *REMOVED)
    return dict.fromkeys(names, 0) | {"kind": "queue", "balances": True} | counts


def test_what_was_accepted_is_what_is_there_and_what_left():
    """The summary says what was accepted and what became of it, and that it broke."""
    whole = total(put=7, resident=3, delayed=1, consumed=3, rolled_back=1)
    assert summary_of([whole])["holds"]
    broken = total(put=7, resident=1, uncommitted=1, consumed=3, rolled_back=1, balances=False)
    told = summary_of([whole, broken])
    assert not told["holds"]
    queues = told["queues"]
    assert (queues["accepted"], queues["current"], queues["pending"]) == (14, 3, 2)
    assert queues["removed"] == dict.fromkeys(REMOVED, 0) | {"consumed": 6, "rolled_back": 2}
    (sentence,) = told_of(told)
    assert sentence.startswith("INF-19 conservation is broken: queues: 14 accepted = 3 current + ")
    assert sentence.endswith(" + 2 pending + 6 consumed + 2 rolled back")
