"""Tests of tables and audit on logs with topics, subscriptions and temporary destinations."""

import random
from copy import deepcopy

import pytest

from ledgermq.core import operations as op
from ledgermq_spark.claims import check_claims
from ledgermq_spark.history import life_of
from ledgermq_spark.turns import check_turns
from support.audits import audited, subject_of
from support.log_writer import Script
from support.planting import TOPIC_PLANTS, publication, selection
from support.random_log import RandomLog

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize("seed", [12, 21])
def test_a_random_log_with_topics_agrees(spark, tmp_path, seed):
    """Refusals, totals, copies, subscriptions and deliveries are what the fold makes them."""
    script = Script(random=random.Random(seed))
    RandomLog(script, topics=True).grow(350)
    report = audited(spark, tmp_path, script.entries)
    assert report.anomalies == []
    assert report.verdict == "agrees"
    assert all(one["balances"] for one in [*report.totals, *report.subscription_totals])
    assert report.compared["topics"] > 1
    assert report.compared["subscriptions"] > 5


def planted():
    """A log with a publication and a selection for each plant, and the faults planted in it."""
    script = Script()
    for name, _, _ in TOPIC_PLANTS:
        (selection if name.startswith("queue") else publication)(script, name)
    recorded = deepcopy(script.outcomes)
    faults = [(kind, plant(recorded, name, script)) for name, plant, kind in TOPIC_PLANTS]
    return script, recorded, faults


def test_every_planted_fault_is_found_once_and_names_its_message(spark, tmp_path):
    """Of a wrong selector, a second delivery, a dropped copy, another's copy, a lost one."""
    script, recorded, faults = planted()
    report = audited(spark, tmp_path, script.entries, recorded)
    assert sorted((one.kind, one.message_id) for one in report.anomalies) == sorted(faults)


def test_the_second_opinions_find_wrong_deliveries_without_the_fold(spark, tmp_path):
    """Were the fold itself wrong, outcomes and rebuild would agree; the tables would not."""
    script, recorded, faults = planted()
    subject = subject_of(spark, tmp_path, script.entries, recorded)
    found = [*check_claims(subject.tables), *check_turns(subject.tables, subject.recorded)]
    named = {one.message_id for one in found}
    assert named >= {message for kind, message in faults if kind != "lost"}


def test_subscriptions_come_and_go_as_the_protocol_says(spark, tmp_path):
    """Made, made anew, unsubscribed, retired; each with what it had."""
    script = Script()
    publisher = script.session()
    one = script.session(client_id="c")
    durable = {"durable": True, "subscription": "s"}
    one.subscribe("t", selector="color = 'red'", **durable)
    publisher.publish("t", "first", color="red")
    publisher.publish("t", "second", color="blue")
    one.send(op.CloseConsumer, consumer=1, unseen=[])
    one.subscribe("t", 2, **durable, credit=1)
    publisher.publish("t", "third")
    one.acknowledge(1)
    one.subscribe("t", 3)
    publisher.publish("t", "fourth")
    one.send(op.CloseConsumer, consumer=2, unseen=[])
    one.send(op.Unsubscribe, subscription="s")
    one.close()
    subject = subject_of(spark, tmp_path, script.entries)
    told = [
        (one["kind"], one["selector"], one["why"], one["added"], one["consumed"], one["dropped"])
        for one in subject.subscription_totals
    ]
    assert told == [
        ("durable", "color = 'red'", "made anew", 1, 0, 1),
        ("durable", "", "unsubscribed", 2, 1, 1),
        ("consumer", "", "last consumer gone", 1, 0, 1),
    ]
    fates = [row["fate"] for row in subject.tables.messages.orderBy("sequence").collect()]
    assert fates == ["dropped", "dropped", "consumed", "dropped"]


def test_the_life_of_a_topic_message_tells_of_its_copies(spark, tmp_path):
    """Published to two subscriptions: consumed by one, dropped with the other."""
    script = Script()
    one, other = script.session(), script.session()
    one.subscribe("t", shared=True, subscription="s", credit=1)
    other.subscribe("t")
    script.session().publish("t", "news")
    one.acknowledge(1)
    other.close()
    subject = subject_of(spark, tmp_path, script.entries)
    message = subject.tables.messages.first()
    life = life_of(subject.tables, "QM1", bytes(message["message_id"]))
    assert life is not None
    assert (life.queue, life.sequence, life.fate) == ("topic:t", 0, "dropped")
    told = [one.what for one in life.steps]
    assert told == ["put", "published", "delivered", "acknowledged", "dropped"]
    assert "2 in all: shared subscription s, that of consumer 1" in life.steps[1].reason
    assert life.steps[4].reason.endswith("ended: last consumer gone")


def test_what_vanishes_with_a_temporary_destination_was_never_put(spark, tmp_path):
    """The owner's connection ends: the open put of another is gone, its commit is refused."""
    script = Script()
    owner = script.session()
    connection = script.state.sessions[owner.handle].connection.identity
    name = f"temporary/{connection.hex()}/reply"
    owner.send(op.CreateTemporary, destination=f"queue:{name}")
    other = script.session("TRANSACTED")
    other.put(name, "answer")
    other.put("q", "kept")
    owner.close()
    other.commit(puts=2)
    other.commit(puts=1)
    report = audited(spark, tmp_path, script.entries)
    assert (report.verdict, report.refusals) == ("agrees", {"puts-mismatch": 1})
    assert {one["queue"]: one["rolled_back"] for one in report.totals} == {name: 1, "q": 0}


def test_a_takeover_ends_the_sessions_of_the_older_connection(spark, tmp_path):
    """The same token: the older one is over, what it held returns to the one that took over."""
    script = Script()
    older = script.session(client_id="c", takeover=b"t")
    older.subscribe("t", durable=True, subscription="s", credit=1)
    script.session().publish("t", "news")
    newer = script.session(client_id="c", takeover=b"t")
    newer.subscribe("t", durable=True, subscription="s", credit=1)
    newer.acknowledge(1)
    older.get(1)
    script.session(client_id="c")
    report = audited(spark, tmp_path, script.entries)
    assert report.verdict == "agrees"
    assert report.refusals == {"client-id-in-use": 1, "session-unknown": 1}
    (total,) = report.totals
    assert (total["consumed"], total["backouts"], total["deliveries"]) == (1, 1, 2)
