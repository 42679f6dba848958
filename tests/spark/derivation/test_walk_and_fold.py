"""The audit's pass over where messages were comes to what the fold does, on random logs."""

from collections import Counter

import pytest

from ledgermq.core.state.message_states import DELAYED
from ledgermq.protocol import operations as op
from ledgermq.protocol.settings import given_settings
from ledgermq_spark.log.headers import origin_text
from support.audits.walk_feed import WatchedLog
from support.random_logs.random_log import RandomLog

PARTS = ((), ("ends",), ("topics",), ("ends", "moves"), ("ends", "topics", "moves", "groups"))


def messages_of(store):
    """What a queue or subscription of the fold holds, by number."""
    return {
        number: (
            *(one.put_position, one.put_index, one.backout_count, one.enqueued_at),
            store.doubts.get(number, 0),
            -1 if one.times is None else one.times.redelivery_limit,
            one.times.waits_until if one.times is not None and one.times.is_delayed else -1,
        )
        for number, one in store.messages.items()
    }


def stays_in(store):
    """What a store of the pass holds, by number."""
    return {
        number: (*one.put, one.backouts, one.enqueued_at, one.uncounted, one.limit, one.until)
        for number, one in store.messages.items()
    }


def store_in(walk, subscription):
    """The store of a subscription; of one that has ended, what is held of it tells."""
    created = subscription.created_position
    if not subscription.has_ended:
        return walk._subscriptions[created][0]
    assert created not in walk._subscriptions
    held = {id(one.store): one.store for one in walk._held.values()}
    (store,) = [one for one in held.values() if one.holder == created]
    store.messages = {number: one for number, one in store.messages.items() if not one.is_gone}
    return store


def ended_as(told, *whats):
    """How many stays the pass tells to have ended in one of these ways, by where that was."""
    return Counter(
        one.queue_created if one.holder < 0 else one.holder for one in told if one.what in whats
    )


def compare(log):
    """Asserts that pass and fold agree on everything that stands; returns how many moves."""
    walk, told = log.walked()
    numbered = [one for one in told if one.what == "numbered"]
    origins = {(one.queue, one.queue_created, one.sequence): one.origin for one in numbered}
    expired = ended_as(told, "expired")
    moved = ended_as(told, "moved", "retried", "redelivery-limit", "group-parked")
    dropped = ended_as(told, "dropped")
    refused = {one.position: one.origin for one in told if one.what == "refused"}
    assert refused == log.refused
    for name, queue in log.state.queues.items():
        store, created = walk._standing[name], queue.created_position
        assert stays_in(store) == messages_of(queue)
        assert store.next == queue.next_sequence
        assert expired[created] == queue.gone["expired"]
        assert moved[created] == queue.gone["moved"]
        assert dropped[created] == queue.gone["dropped"]
        assert sum(one.until >= 0 for one in store.messages.values()) == queue.counts[DELAYED]
        for number, one in queue.messages.items():
            assert origins[name, created, number] == origin_text(one.origin)
    for name, topic in log.state.topics.items():
        assert walk._standing["topic:" + name].next == topic.next_sequence
    for one in log.state.subscriptions.values():
        created = one.created_position
        assert stays_in(store_in(walk, one)) == messages_of(one)
        assert (expired[created], moved[created]) == (one.gone["expired"], one.gone["moved"])
        gone = one.gone["dropped"]
        assert dropped[created] == gone or (one.has_ended and dropped[created] < gone)
    return Counter(one.what for one in told) + Counter(moved=sum(one.stay > 0 for one in numbered))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "parts", [("ends",), ("ends", "topics"), ("ends", "topics", "groups")], ids="-".join
)
def test_messages_are_where_the_fold_has_them(monkeypatch, seed, parts):
    """Every message that is there, its number, origin and backouts, and every expiry (INF-19)."""
    log = WatchedLog(seed, monkeypatch)
    RandomLog(log, moves=True, **dict.fromkeys(parts, True)).grow(300)
    assert compare(log)["moved"] > 0


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("parts", PARTS, ids="-".join)
def test_what_comes_back_is_where_the_fold_has_it(monkeypatch, seed, parts):
    """Delays, limits and counted backouts of all that is there; drops and error destinations."""
    log = WatchedLog(seed, monkeypatch)
    RandomLog(log, redelivery=True, **dict.fromkeys(parts, True)).grow(400)
    assert compare(log)["delayed"] > 0


@pytest.mark.parametrize("seed", range(4))
def test_messages_are_where_the_fold_has_them_though_the_clock_is_set_back(monkeypatch, seed):
    """Expiries, births and delays while state time goes on from a reference (H6, INF-01)."""
    log = WatchedLog(seed, monkeypatch)
    parts = {"ends": True, "topics": True, "moves": True}
    RandomLog(log, redelivery=True, clock=True, **parts).grow(400)
    assert compare(log)["delayed"] > 0


def test_random_logs_redeliver_in_every_way(monkeypatch):
    """Late, too often, from lost sessions of which nobody knows, and right before an entry."""
    log = WatchedLog(2, monkeypatch)
    RandomLog(log, redelivery=True).grow(1_000)
    told = compare(log)
    assert min(told[what] for what in ("delayed", "offered", "redelivery-limit", "dropped")) > 0
    assert any(one.uncounted for one in log.events)
    assert any(one.what == "delivered" and one.phase == 0 for one in log.events)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("parts", PARTS, ids="-".join)
def test_what_follows_a_parked_message_is_where_the_fold_has_it(monkeypatch, seed, parts):
    """Groups that are parked at error destinations in a circle, and no longer (INF-12, INF-16)."""
    log = WatchedLog(seed, monkeypatch)
    RandomLog(log, redelivery=True, ordered=True, **dict.fromkeys(parts, True)).grow(400)
    assert compare(log)["delayed"] > 0


def test_random_logs_park_groups(monkeypatch):
    """What is numbered behind a message that came too often follows it, there and later."""
    told = Counter()
    for seed in range(4):
        log = WatchedLog(seed, monkeypatch)
        RandomLog(log, redelivery=True, ordered=True, moves=True).grow(400)
        told += compare(log)
    assert told["group-parked"] > 20


def set_redelivery(session, queue, **told):
    """Changes settings of redelivery of a queue."""
    session.send(op.AlterQueue, queue=queue, settings=given_settings(told))


@pytest.mark.parametrize("timeout_ms", [1_000, 1_500, 2_000])
def test_ends_of_sessions_and_of_delays_go_by_their_moments(monkeypatch, timeout_ms):
    """Found over by one entry: a delay of 1.5 s, and a session that held a message."""
    log = WatchedLog(0, monkeypatch)
    one = log.session(redelivery_delay_ms=1_500)
    for queue in ("q", "old"):
        one.send(op.CreateQueue, queue=queue)
    set_redelivery(one, "q", redelivery_limit=0, error_destination="queue:old")
    lost = log.session(suspect_timeout_ms=timeout_ms)
    one.put("q", "late", "lost")
    one.consumer("q", credit=1)
    lost.consumer("q", credit=1)
    lost.handed = 1
    lost.send(op.Alive)
    # Both begin within the 50 ms that deadlines are rounded up to.
    log.add(op.Suspect(worker="w", sessions=[lost.handle]))
    one.recover(1)
    log.wait(3)
    log.add(op.Tick(worker="w"))
    assert compare(log)["redelivery-limit"] == 2
    came = [stay.put[1] for stay in log.walked()[0]._standing["old"].messages.values()]
    # At one moment the session goes first.
    assert came == ([0, 1] if timeout_ms == 2_000 else [1, 0])


def test_a_message_keeps_the_limit_that_it_was_put_with(monkeypatch):
    """In a unit of work that of the Put, not of the Commit; elsewhere that of the new queue."""
    log = WatchedLog(0, monkeypatch)
    one = log.session("TRANSACTED")
    for queue in ("q", "old"):
        one.send(op.CreateQueue, queue=queue)
    set_redelivery(one, "q", redelivery_limit=0, error_destination="queue:old")
    one.put("q", "first")
    set_redelivery(one, "q", redelivery_limit=7)
    set_redelivery(one, "old", redelivery_limit=3)
    one.put("q", "second")
    one.commit()
    one.consumer("q", credit=2)
    one.rollback(1, 2)
    assert compare(log)["redelivery-limit"] == 1
    walk, _ = log.walked()
    limits = {
        name: [stay.limit for stay in walk._standing[name].messages.values()]
        for name in ("q", "old")
    }
    assert limits == {"q": [7], "old": [3]}


@pytest.mark.parametrize(("timeout_ms", "moved"), [(1_000, 0), (2_000, 1)])
def test_what_a_subscription_delays_goes_with_it_or_before_it(monkeypatch, timeout_ms, moved):
    """Found over by one entry: a delay of 1.5 s, and the session whose subscription this is."""
    log = WatchedLog(0, monkeypatch)
    one = log.session()
    one.send(op.CreateQueue, queue="old")
    told = {"redelivery_limit": 0, "error_destination": "queue:old"}
    one.send(op.CreateTopic, topic="t", settings=given_settings(told))
    lost = log.session(suspect_timeout_ms=timeout_ms, redelivery_delay_ms=1_500)
    lost.subscribe("t", credit=1)
    one.publish("t", "x")
    log.add(op.Suspect(worker="w", sessions=[one.handle]))
    lost.recover(1)
    log.add(op.Suspect(worker="w", sessions=[lost.handle]))
    log.wait(3)
    log.add(op.Tick(worker="w"))
    assert compare(log)["redelivery-limit"] == moved
    assert len(log.walked()[0]._standing["old"].messages) == moved
