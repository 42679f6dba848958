"""Tests of tables and audit on logs with topics, subscriptions and temporary destinations."""

import random
from copy import deepcopy

import pytest

from ledgermq.protocol import operations as op
from ledgermq.wire.framing.codec import decode_record, encode_record
from ledgermq_spark.audit.audit import audit
from ledgermq_spark.audit.claims import check_claims
from ledgermq_spark.audit.report import html_report
from ledgermq_spark.audit.states import compare_live
from ledgermq_spark.derivation.history import life_of
from ledgermq_spark.derivation.turns import check_turns
from ledgermq_spark.rebuild.checkpoints import ROOT, Checkpoint
from support.audits.audits import audited, subject_of
from support.brokers.log_writer import Script
from support.planted.planting import TOPIC_PLANTS, publication, selection
from support.random_logs.random_log import RandomLog

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.long
@pytest.mark.parametrize("seed", [27])
def test_a_random_log_with_topics_agrees(spark, tmp_path, seed):
    """Refusals, totals, copies, subscriptions and deliveries are what the fold makes them."""
    script = Script(random=random.Random(seed))
    RandomLog(script, topics=True).grow(400)
    report = audited(spark, tmp_path, script.entries)
    assert report.anomalies == []
    assert report.verdict == "agrees"
    assert all(one["balances"] for one in [*report.totals, *report.subscription_totals])
    assert report.compared["topics"] > 1
    assert report.compared["subscriptions"] > 5


@pytest.mark.long
def test_shared_subscriptions_that_end_while_deliveries_are_in_flight_agree(spark, tmp_path):
    """Settled, given back, still held, and one of the name that came later (decision 25)."""
    script = Script()
    publisher = script.session()
    sessions = [script.session() for _ in range(3)]
    for one in sessions:
        one.subscribe("t", shared=True, subscription="s", credit=2)
        for word in ("first", "second", "third"):
            publisher.publish("t", word)
        one.send(op.CloseConsumer, consumer=1, unseen=[])
    publisher.publish("t", "late")
    sessions[0].acknowledge(1)
    sessions[0].recover(2)
    sessions[1].acknowledge(2)
    script.session().subscribe("t", shared=True, subscription="s", selector="color = 'red'")
    publisher.publish("t", "red", color="red")
    report = audited(spark, tmp_path, script.entries)
    assert report.anomalies == []
    assert report.verdict == "agrees"
    told = [
        (one["kind"], one["added"], one["consumed"], one["dropped"], one["resident"])
        for one in report.subscription_totals
    ]
    assert told == [
        ("shared", 3, 1, 2, 0),
        ("ended", 3, 1, 1, 1),
        ("ended", 3, 0, 1, 2),
        ("shared", 1, 0, 0, 1),
    ]
    assert all(one["balances"] for one in [*report.totals, *report.subscription_totals])


@pytest.fixture(scope="module")
def planted(spark, tmp_path_factory):
    """A log with a publication or selection for each plant, as the audit sees it; the faults."""
    script = Script()
    for name, _, _ in TOPIC_PLANTS:
        (selection if name.startswith("queue") else publication)(script, name)
    recorded = deepcopy(script.outcomes)
    faults = [(kind, plant(recorded, name, script)) for name, plant, kind in TOPIC_PLANTS]
    directory = tmp_path_factory.mktemp("planted")
    return subject_of(spark, directory, script.entries, recorded), faults


def test_every_planted_fault_is_found_once_and_names_its_message(planted):
    """What a selector does not match, what went with its subscription, twice, lost."""
    subject, faults = planted
    report = audit(subject)
    assert sorted((one.kind, one.message_id) for one in report.anomalies) == sorted(faults)


def test_the_second_opinions_find_wrong_deliveries_without_the_fold(planted):
    """Were the fold itself wrong, outcomes and rebuild would agree; the tables would not."""
    subject, faults = planted
    found = [*check_claims(subject.tables), *check_turns(subject.tables, subject.recorded)]
    named = {one.message_id for one in found}
    assert named >= {message for kind, message in faults if kind != "lost"}


@pytest.fixture(scope="module")
def lived(spark, tmp_path_factory):
    """A log in which a durable subscription is made anew and ends, and one of a consumer, too."""
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
    return subject_of(spark, tmp_path_factory.mktemp("lived"), script.entries)


def test_subscriptions_come_and_go_as_the_protocol_says(lived):
    """Made, made anew, unsubscribed, retired; each with what it had."""
    told = [
        (one["kind"], one["selector"], one["why"], one["added"], one["consumed"], one["dropped"])
        for one in lived.subscription_totals
    ]
    assert told == [
        ("durable", "color = 'red'", "made anew", 1, 0, 1),
        ("durable", "", "unsubscribed", 2, 1, 1),
        ("consumer", "", "last consumer gone", 1, 0, 1),
    ]
    fates = [row["fate"] for row in lived.tables.messages.orderBy("sequence").collect()]
    assert fates == ["dropped", "dropped", "consumed", "dropped"]


@pytest.mark.parametrize(("record", "field"), [("topics", "dropped"), ("subscriptions", "added")])
def test_one_field_of_the_live_topics_is_found(planted, record, field):
    """A counter of a topic or subscription in the root of a checkpoint."""
    subject, _ = planted
    _, root = decode_record(subject.root_bytes)
    root[record][0][field] += 1
    live = Checkpoint(manifest={}, root=encode_record(ROOT, root), blocks=subject.blocks())
    (found,) = compare_live(subject.root_bytes, subject.blocks(), live, subject.position)
    assert (found.kind, found.field) == ("state mismatch", field)
    assert record in found.summary


def test_the_report_shows_subscriptions_and_says_what_was_not_compared(lived):
    """A table of subscriptions; the topic is empty, so its enqueue times are told of."""
    report = audit(lived)
    assert report.verdict == "agrees"
    assert any("enqueue times of 1 topics and subscriptions" in one for one in report.notes)
    page = html_report(report)
    assert "Balancing totals per subscription" in page
    assert "unsubscribed" in page
    assert "<h2>INF-19 conservation</h2>" in page
    assert 'it <span class="good">holds</span>' in page


def test_the_life_of_a_topic_message_tells_of_its_copies(lived):
    """Consumed by its one subscription, or published to two and dropped with both."""
    third, fourth = (
        life_of(lived.tables, "QM1", bytes(row["message_id"]))
        for row in lived.tables.messages.where("sequence > 1").orderBy("sequence").collect()
    )
    assert (third.queue, third.sequence, third.fate) == ("topic:t", 2, "consumed")
    assert [one.what for one in third.steps] == ["put", "published", "delivered", "acknowledged"]
    assert [one.what for one in fourth.steps] == ["put", "published", "dropped", "dropped"]
    told = [one.reason for one in fourth.steps]
    assert "2 in all: durable subscription s of client id c, that of consumer 3" in told[1]
    assert told[2].endswith("ended: unsubscribed")
    assert told[3].endswith("ended: last consumer gone")


@pytest.mark.long
def test_what_ends_with_a_connection_ends_in_the_tables(spark, tmp_path):
    """An open put to a temporary queue vanishes; a takeover returns what the older one held."""
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
    older = script.session(client_id="c", takeover=b"t")
    older.subscribe("t", durable=True, subscription="s", credit=1)
    other.publish("t", "news")
    other.commit()
    newer = script.session(client_id="c", takeover=b"t")
    newer.subscribe("t", durable=True, subscription="s", credit=1)
    newer.acknowledge(1)
    older.get(1)
    script.session(client_id="c")
    report = audited(spark, tmp_path, script.entries)
    assert report.verdict == "agrees"
    assert report.refusals == {"puts-mismatch": 1, "client-id-in-use": 1, "session-unknown": 1}
    totals = {one["queue"]: one for one in report.totals}
    assert (totals[name]["rolled_back"], totals["q"]["resident"]) == (1, 1)
    topic = totals["topic:t"]
    assert (topic["consumed"], topic["backouts"], topic["deliveries"]) == (1, 1, 2)
