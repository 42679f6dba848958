"""Tests of tables and audit on logs whose messages go elsewhere when they expire."""

import random
from copy import deepcopy
from dataclasses import replace

import pytest
from pyspark.sql import functions as f

from ledgermq.protocol import administration
from ledgermq.protocol import operations as op
from ledgermq.protocol.outcomes import Delivered
from ledgermq.protocol.settings import given_settings
from ledgermq_spark.audit.audit import audit
from ledgermq_spark.audit.conservation import CONSERVATION, check_kept, kept_by
from ledgermq_spark.audit.moves import check_moves
from ledgermq_spark.audit.states import compare_messages, compare_queues
from ledgermq_spark.derivation.copies import subscriptions_table
from ledgermq_spark.derivation.history import life_of
from ledgermq_spark.derivation.totals import queue_totals, subscription_totals
from support.audits.audits import audited, subject_of
from support.audits.frames import outcomes_frame
from support.brokers.log_writer import Script
from support.random_logs.random_ends import timed_message
from support.random_logs.random_log import RandomLog

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def expiring_to(destination):
    """Settings with an expiry destination."""
    return given_settings({"expiry_destination": destination})


class Story:
    """A log in which one message goes from queue to queue, and others wait where it comes."""

    def __init__(self):
        self.script = script = Script()
        session = script.session()
        session.send(op.CreateQueue, queue="late")
        session.send(op.CreateTopic, topic="over", settings=expiring_to("queue:late"))
        session.send(op.CreateQueue, queue="old", settings=expiring_to("topic:over"))
        session.send(op.CreateQueue, queue="q", settings=expiring_to("queue:old"))
        subscribed = {"subscription": "s", "durable": True, "shared": True}
        session.subscribe("over", 1, **subscribed)
        session.put("old", "waits")
        session.put("late", "waits")
        self.message = timed_message(script, (1_000, 0, 0))
        session.send(op.Put, destination="queue:q", messages=[self.message])
        script.wait(2)
        session.put("old", "comes after it")
        session.consumer("old", 2, credit=2)
        session.recover(2)
        session.send(op.AlterQueueManager, maximum_lifetime_ms=5_000)
        script.wait(6)
        session.send(op.Alive)
        session.close()
        script.wait(6)
        script.add(op.Tick(worker="w"))
        last = script.session()
        last.consumer("late", credit=1)
        last.put("old", "purged", "moved", "copied")
        for kind, numbers, more in (
            (administration.DeleteMessages, (5, 5), {}),
            (administration.MoveMessages, (6, 6), {"target": "queue:q"}),
            (administration.CopyMessages, (7, 7), {"target": "queue:q"}),
            (administration.MoveMessages, (0, 9), {"target": "queue:none"}),
        ):
            selection = {
                "source": "queue:old",
                "subscription": "",
                "client_id": "",
                "durable": False,
                "selector": "",
                "after_sequence": -1,
                "limit": 0,
                "sequences": [{"first": numbers[0] - 2, "last": numbers[1] - 2}],
            }
            last.send(kind, selection=selection, actor="op", reason="test", **more)


@pytest.fixture(scope="module")
def told(spark, tmp_path_factory):
    """The story and what an audit sees of it."""
    story = Story()
    return subject_of(spark, tmp_path_factory.mktemp("moves"), story.script.entries), story


def test_the_audit_follows_a_message_wherever_it_goes(told):
    """It agrees with the fold, and what left is what came (INF-19)."""
    report = audit(told[0])
    assert report.anomalies == []
    assert all(one["balances"] for one in [*report.totals, *report.subscription_totals])
    went = {one["queue"]: (one["came"], one["went"]) for one in report.totals}
    assert went["q"] == (2, 1)
    assert went["old"] == (1, 4)
    assert went["late"][0] == 3


def test_the_life_of_a_message_is_told_across_queues(told):
    """Why it left each place, and under which number it came to the next."""
    subject, story = told
    life = life_of(subject.tables, "QM1", story.message["message_id"])
    assert [one.what for one in life.steps if one.what in ("put", "expired", "published")] == [
        *("put", "expired", "expired", "published", "expired", "expired")
    ]
    reasons = [one.reason for one in life.steps if "moved to" in one.reason]
    assert reasons[0] == "its time to live was over; moved to queue:old as number 1"
    assert "the maximum lifetime was over; moved to topic:over as number" in reasons[1]
    assert "moved to queue:late as number" in reasons[2]
    assert life.queue == "late"


def test_the_life_of_a_message_says_why_it_was_moved_and_who_moved_it(spark, tmp_path):
    """Rules of the queue are told as such; what is done by hand, by whom and why (§14, §17)."""
    script = Script()
    session = script.session()
    session.send(op.CreateQueue, queue="dead")
    parked = given_settings({"redelivery_limit": 0, "error_destination": "queue:dead"})
    for queue, settings in (
        ("limited", parked),
        ("lossy", given_settings({"redelivery_limit": 0})),
    ):
        session.send(op.CreateQueue, queue=queue, settings=settings)
        position = session.put(queue, "x")
        session.consumer(queue, position, credit=1)
    session.recover(1, 2)
    asked = {"actor": "op", "reason": "mended"}
    session.send(
        administration.MoveMessages, selection=all_of("dead"), target="", to_origin=True, **asked
    )
    second = all_of("limited") | {"sequences": [{"first": 1, "last": 1}]}
    session.send(administration.DeleteMessages, selection=second, **asked)
    tables = subject_of(spark, tmp_path, script.entries).tables
    lives = {
        row["queue"]: life_of(tables, "QM1", bytes(row["message_id"]))
        for row in tables.messages.collect()
    }
    often = "it came back more often than its redelivery limit allows"
    told = [(one.what, one.reason) for one in lives["limited"].steps[-3:]]
    assert told == [
        ("moved", f"{often}; to queue:dead as number 0"),
        ("moved", "sent back to where it came from by op: mended; to queue:limited as number 1"),
        ("removed", "by op: mended"),
    ]
    last = lives["lossy"].steps[-1]
    assert (last.what, last.reason) == ("dropped", f"{often}, or followed one that did")


def all_of(queue):
    """A selection of all messages of a queue."""
    return {
        "source": f"queue:{queue}",
        "subscription": "",
        "client_id": "",
        "durable": False,
        "selector": "",
        "after_sequence": -1,
        "limit": 0,
        "sequences": [],
    }


def changed(tables, change):
    """The tables with another table of messages."""
    return replace(tables, messages=change(tables.messages))


MOVED = "origin IS NOT NULL AND queue = 'old'"


@pytest.mark.parametrize(
    "change",
    [
        lambda messages: messages.where(f"NOT ({MOVED})"),
        lambda messages: messages.unionByName(messages.where(MOVED)),
        lambda messages: messages.withColumn(
            "sequence", f.when(f.expr(MOVED), 2).otherwise(f.col("sequence"))
        ),
    ],
    ids=["left out", "twice", "wrong number"],
)
def test_a_move_that_is_not_right_is_found(told, change):
    """By what left against what came, and by the numbers of the queue."""
    subject, story = told
    assert check_moves(subject.tables) == []
    found = check_moves(changed(subject.tables, change))
    assert {one.field for one in found} == {"moves", "sequence"}
    assert story.message["message_id"].hex() in {one.message_id for one in found}


def test_a_move_is_a_put_at_its_target_and_each_subscription_counts_by_itself(told):
    """What came is accepted there, also of a copy by hand; what got lost, or is twice, is named."""
    subject, _ = told
    tables, totals = subject.tables, subject.totals
    kept = kept_by(tables, totals, subject.subscription_totals)
    assert check_kept(kept, subject.position) == []
    accepted = {(one.kind, one.name): one.accepted for one in kept}
    assert accepted["queue", "q"] == 1 + 2
    assert accepted["topic", "topic:over"] == accepted["subscription", "topic:over"] > 0
    lacking = changed(tables, lambda messages: messages.where(f"NOT ({MOVED})"))
    twice = changed(tables, lambda messages: messages.unionByName(messages.where(MOVED)))
    copied = replace(tables, copies=tables.copies.unionByName(tables.copies))
    for wrong, name in ((lacking, "old"), (twice, "old"), (copied, "topic:over")):
        kept = kept_by(wrong, queue_totals(wrong), subscription_totals(with_counts(wrong)))
        (found,) = check_kept(kept, subject.position)
        assert (found.queue, found.field) == (name, CONSERVATION)


def with_counts(tables):
    """The tables with subscriptions that count the copies as they are now."""
    counted = subscriptions_table(tables.copies, tables.facts.directory)
    return replace(tables, subscriptions=counted)


def test_a_move_that_the_fold_left_out_is_found(told):
    """The tables have a message, and a number, that the rebuilt state lacks."""
    subject, _ = told
    lacking = subject.rebuilt_messages.where("origin IS NULL")
    found = compare_messages(subject.tables, lacking, subject.position)
    assert len(found) == subject.rebuilt_messages.where("origin IS NOT NULL").count() > 0
    statuses = deepcopy(subject.statuses)
    for one in statuses:
        one["next_sequence"] -= one["name"] == "late"
    wrong = compare_queues(subject.totals, statuses, subject.topics, subject.position)
    assert [(one.queue, one.field) for one in wrong] == [("late", "next_sequence")]


def test_an_outcome_that_hides_where_a_message_was_is_found(spark, told):
    """The origin of what is delivered is checked as its other fields are."""
    subject, story = told
    recorded = deepcopy(story.script.outcomes)
    (planted,) = [
        message
        for found in recorded
        for one in found
        if isinstance(one.outcome, Delivered)
        for message in one.outcome.messages
        if message["message_id"] == story.message["message_id"]
    ][:1]
    planted["header"]["origin"]["sequence"] = 7
    lanes = outcomes_frame(spark, recorded)
    report = audit(replace(subject, recorded=lanes))
    assert [(one.kind, one.message_id) for one in report.anomalies] == [
        ("altered outcome", story.message["message_id"].hex())
    ]


@pytest.mark.long
@pytest.mark.parametrize("seed", [2])
def test_a_random_log_whose_messages_go_elsewhere_agrees(spark, tmp_path, seed):
    """Overrides, lifetimes, cycles of destinations, and whatever else ends messages (INF-19).

    `test_redelivery_tables` has a shorter one, with redelivery.
    """
    script = Script(random=random.Random(seed))
    RandomLog(script, topics=True, ends=True, moves=True).grow(140)
    report = audited(spark, tmp_path, script.entries)
    assert report.anomalies == []
    assert report.verdict == "agrees"
    assert sum(one["came"] for one in report.totals) > 20
