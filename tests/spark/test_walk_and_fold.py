"""The audit's pass over where messages were comes to what the fold does, on random logs."""

from collections import Counter

import pytest

from ledgermq_spark.headers import origin_text
from support.random_log import RandomLog
from support.walk_feed import WatchedLog


def messages_of(store):
    """What a queue or subscription of the fold holds, by number."""
    return {
        number: (one.put_position, one.put_index, one.backout_count, one.enqueued_at)
        for number, one in store.messages.items()
    }


def stays_in(store):
    """What a store of the pass holds, by number."""
    return {
        number: (*one.put, one.backouts, one.enqueued_at) for number, one in store.messages.items()
    }


def compare(log):
    """Asserts that pass and fold agree on everything that stands; returns how many moves."""
    walk, told = log.walked()
    numbered = [one for one in told if one.what == "numbered"]
    origins = {(one.queue, one.queue_created, one.sequence): one.origin for one in numbered}
    expired = Counter((one.queue, one.queue_created) for one in told if one.what == "expired")
    refused = {one.position: one.origin for one in told if one.what == "refused"}
    assert refused == log.refused
    for name, queue in log.state.queues.items():
        store, created = walk._standing[name], queue.created_position
        assert stays_in(store) == messages_of(queue)
        assert store.next == queue.next_sequence
        assert expired[name, created] == queue.expired
        for number, one in queue.messages.items():
            assert origins[name, created, number] == origin_text(one.origin)
    for name, topic in log.state.topics.items():
        assert walk._standing["topic:" + name].next == topic.next_sequence
    for one in log.state.subscriptions.values():
        assert stays_in(walk._subscriptions[one.created_position][0]) == messages_of(one)
    return sum(one.stay > 0 for one in numbered)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "parts", [("ends",), ("ends", "topics"), ("ends", "topics", "groups")], ids="-".join
)
def test_messages_are_where_the_fold_has_them(monkeypatch, seed, parts):
    """Every message that is there, its number, origin and backouts, and every expiry (INF-19)."""
    log = WatchedLog(seed, monkeypatch)
    RandomLog(log, moves=True, **dict.fromkeys(parts, True)).grow(300)
    assert compare(log) > 0
