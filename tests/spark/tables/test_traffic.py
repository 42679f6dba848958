"""Tests of how queues fared over time, against the moves themselves, one after the other."""

import random

import pytest

from ledgermq.protocol import operations as op
from ledgermq_spark.tables.events import IN_FLIGHT
from ledgermq_spark.tables.totals import HELD, totals_of
from ledgermq_spark.tables.traffic import (
    POINTS_MAX,
    never_used,
    series_of,
    slowest_settlements,
    subscription_ends,
)
from support.audits.engines import duck_engine
from support.audits.testimonies import Logs
from support.brokers.log_writer import START_US, Script
from support.random_logs.random_log import RandomLog
from support.stories import topics

pytestmark = pytest.mark.slow


def facts_of(script):
    """Return the frames of one log."""
    logs = Logs()
    logs.fold("QM1", script.entries)
    return logs.facts(duck_engine())


@pytest.fixture(scope="module")
def busy():
    """Return the frames of a random log in which much comes back and leaves."""
    script = Script(random=random.Random(8))
    RandomLog(script, topics=True, ends=True, moves=True, redelivery=True).grow(260)
    return facts_of(script)


def followed(moves):
    """Return of each queue or topic: depth in the end, highest age in s, redeliveries."""
    there, oldest, again, last = {}, {}, {}, max(row["time_us"] for row in moves)
    ages = {}

    def look(name, now):
        held = [came for store, came in there.get(name, {}).items()]
        if held:
            ages[name] = max(ages.get(name, 0), now - min(held))

    for row in sorted(moves, key=lambda row: (row["position"], row["step"])):
        name = row["destination"].removeprefix("queue:")
        if row["after"] in IN_FLIGHT and row["backouts"] > 0:
            again[name] = again.get(name, 0) + 1
        if row["kind"] == "subscription":
            continue
        look(name, row["time_us"])
        key = (row["store"], row["sequence"])
        if row["before"] in ("new", "uncommitted put") and f"'{row['after']}'" in HELD:
            there.setdefault(name, {})[key] = row["time_us"]
        elif row["after"] == "gone" and f"'{row['before']}'" in HELD:
            del there[name][key]
    for name in there:
        look(name, last)
        oldest[name] = ages.get(name, 0) / 1e6
    return {name: len(held) for name, held in there.items()}, oldest, again


def test_depth_age_and_redeliveries_are_those_of_the_moves(busy):
    """What a log's moves say, followed one by one, of each queue and topic."""
    series = series_of(busy, totals_of(busy))
    depths, ages, again = followed(busy.rows("SELECT * FROM {moves} ORDER BY position, step"))
    # What no subscription wants came and was never there.
    nothing = dict.fromkeys(series.depth, 0)
    assert {name: line[-1][1] for name, line in series.depth.items()} == nothing | depths
    highest = {
        name: max(age for _, age in line) for name, line in series.oldest_age_seconds.items()
    }
    assert highest == pytest.approx(nothing | ages, abs=0.002)
    assert sum(ages.values()) > 1
    counted = {name: sum(n for _, n in line) for name, line in series.redeliveries.items()}
    assert {name: count for name, count in counted.items() if count} == again
    assert again


def test_a_line_has_a_bounded_number_of_points_in_the_order_of_time(busy):
    """However long the log is; the busiest come first."""
    series = series_of(busy, totals_of(busy))
    for lines in (series.depth, series.oldest_age_seconds, series.redeliveries):
        for line in lines.values():
            assert len(line) <= POINTS_MAX + 2
            assert [at for at, _ in line] == sorted(at for at, _ in line)
    assert list(series.depth) == list(series.redeliveries)


@pytest.fixture(scope="module")
def told():
    """Return the frames of a story with a slow consumer, an idle queue and ended subscriptions."""
    script = topics.made_anew()
    session = script.session(suspect_timeout_ms=45_000)
    session.send(op.CreateQueue, queue="idle")
    session.send(op.CreateQueue, queue="dropped.unused")
    session.send(op.DeleteQueue, queue="dropped.unused")
    session.put("slow", "one", "two", "three")
    session.consumer("slow", credit=3)
    script.wait(6)
    session.acknowledge((1, 2))
    script.wait(3)
    session.send(op.Alive)
    return script, facts_of(script)


def test_the_slowest_acknowledgements_are_told_with_what_came_with_them(told):
    """Two were settled after six seconds, one is in flight since nine."""
    _, facts = told
    first, second, *_ = slowest_settlements(facts)
    names = ("destination", "messages", "delivery", "settled")
    assert tuple(first[name] for name in names) == ("queue:slow", 1, 3, "in flight")
    assert tuple(second[name] for name in names) == ("queue:slow", 2, 1, "consumed")
    assert first["settled_at"] is None
    assert 9 <= first["seconds"] < 10
    assert 6 <= second["seconds"] < 7
    assert second["settled_at"] - second["delivered_at"] == second["seconds"] * 1e6
    assert second["delivered_at"] > START_US
    assert len(second["message_id"]) == 32


def test_a_queue_that_is_there_and_was_never_put_to_is_named(told):
    """What is gone is of no interest, what once had a message was used."""
    _, facts = told
    found = [one["destination"] for one in never_used(facts, totals_of(facts))]
    assert found == ["queue:idle"]


def test_the_end_of_a_subscription_has_its_reason(told):
    """Made anew, unsubscribed, gone with its session."""
    _, facts = told
    reasons = [why for _, (_, why) in sorted(subscription_ends(facts).items())]
    assert reasons == [
        "it was made anew by a consumer that asks for something else",
        "it was unsubscribed",
        "the session of its last consumer ended: closed",
    ]


def test_subscriptions_end_with_their_consumer_topic_or_lost_session():
    """Each says which it was."""
    script = Script()
    session = script.session(suspect_timeout_ms=45_000, client_id="c")
    session.subscribe("closed")
    session.send(op.CloseConsumer, consumer=1, unseen=[])
    session.subscribe("deleted", 2, durable=True, subscription="s")
    session.send(op.CloseConsumer, consumer=2, unseen=[])
    session.send(op.DeleteTopic, topic="deleted", purge=True)
    lost = script.session(suspect_timeout_ms=1_000)
    lost.subscribe("lost")
    script.add(op.Suspect(worker="w", sessions=[lost.handle]))
    script.wait(5)
    session.send(op.Alive)
    reasons = [why for _, (_, why) in sorted(subscription_ends(facts_of(script)).items())]
    assert reasons == [
        "its last consumer was closed",
        "its topic was deleted, or went with its connection",
        "the session of its last consumer ended: lost",
    ]


def test_all_subscriptions_that_ended_have_their_reason():
    """One table tells of all of them: it once said how the last 500 ended."""
    script = Script()
    session = script.session()
    many = 510
    for number in range(1, many + 1):
        session.subscribe("t", number)
        session.send(op.CloseConsumer, consumer=number, unseen=[])
    assert len(subscription_ends(facts_of(script))) == many
