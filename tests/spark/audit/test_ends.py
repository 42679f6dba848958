"""Tests of tables and audit where messages that expire meet deletions and corrections."""

import random
from copy import deepcopy

import pytest

from ledgermq.protocol import operations as op
from ledgermq_spark.audit.audit import audit
from ledgermq_spark.derivation.history import life_of
from ledgermq_spark.derivation.turns import check_turns
from support.audits.audits import audited, subject_of
from support.brokers.log_writer import Script
from support.planted.planting import END_PLANTS, PLANTS, conversation, departure
from support.random_logs.random_ends import timed_message
from support.random_logs.random_log import RandomLog

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# Time to live, delivery delay and age in ms.
SHORT, LONG, LATE = (1_000, 0, 0), (50_000, 0, 0), (0, 2_000, 0)


class Desk:
    """Plays short stories, each with a queue or topic of its own, in one log."""

    def __init__(self):
        self.script = Script()
        self.session = self.script.session()

    def put(self, name, *times, by=None):
        """Puts timed messages to queue NAME or topic:NAME."""
        destination = name if name.startswith("topic:") else "queue:" + name
        messages = [timed_message(self.script, one) for one in times]
        (by or self.session).send(op.Put, destination=destination, messages=messages)
        return messages[0]["message_id"]

    def delete(self, name, *, purge=False):
        """Deletes a queue."""
        self.session.send(op.DeleteQueue, queue=name, purge=purge)

    def correct(self, name, sequence, action="REMOVE"):
        """Corrects a message."""
        self.session.send(
            op.Correct, queue=name, sequence=sequence, action=action, actor="op", reason="test"
        )

    def taker(self, queue, credit=1):
        """A session with a consumer of a queue."""
        session = self.script.session()
        session.consumer(queue, credit=credit)
        return session

    def subscriber(self, topic, name=None, credit=0, *, durable=True, mode="CLIENT"):
        """A session with a subscription, shared unless it has no name."""
        session = self.script.session(mode)
        named = {} if name is None else {"subscription": name, "shared": True, "durable": durable}
        session.subscribe(topic, credit=credit, **named)
        return session


def expired_first(desk, name):
    """Its time is over before somebody deletes the queue if it is empty."""
    desk.put(name, SHORT)
    desk.script.wait(2)
    desk.delete(name)


def expired_with_the_entry(desk, name):
    """Its time is over at the very entry that deletes the queue."""
    desk.put(name, SHORT, LONG)
    desk.script.wait(1.2)
    desk.delete(name, purge=True)


def not_yet(desk, name):
    """The queue is not empty, then it is."""
    desk.put(name, SHORT)
    desk.delete(name)
    desk.script.wait(2)
    desk.delete(name)


def under_another_queue(desk, name):
    """What was purged would have expired under the next queue of that name, which has one too."""
    desk.put(name, SHORT, SHORT)
    desk.delete(name, purge=True)
    desk.put(name, LONG)
    desk.script.wait(2)
    desk.delete(name)


def removed_while_it_lives(desk, name):
    """Removed by hand; by the deletion it would have expired, another one has not."""
    desk.put(name, SHORT, LONG)
    desk.correct(name, 0)
    desk.script.wait(2)
    desk.delete(name)
    desk.correct(name, 1)
    desk.delete(name)


def corrected_too_late(desk, name):
    """What has expired cannot be removed."""
    desk.put(name, SHORT)
    desk.script.wait(2)
    desk.correct(name, 0)


def deleted_after_a_correction(desk, name):
    """A removal empties the queue, so it is another queue whose message a correction names."""
    desk.put(name, LONG)
    desk.correct(name, 0)
    desk.delete(name)
    desk.put(name, SHORT)
    desk.script.wait(2)
    desk.correct(name, 0)


def unborn_when_purged(desk, name):
    """It would have been born into the next queue of that name."""
    desk.put(name, LATE)
    desk.delete(name, purge=True)
    taker = desk.taker(name, credit=3)
    desk.script.wait(3)
    desk.put(name, LONG)
    taker.close()


def unborn_when_removed(desk, name):
    """Removed before its birth; what came after it is delivered first and alone."""
    desk.put(name, LATE, LONG)
    desk.correct(name, 0)
    desk.script.wait(3)
    desk.taker(name, credit=2).acknowledge(1)


def held_when_released(desk, name):
    """Its time is over while somebody holds it; a release lets it expire."""
    desk.put(name, SHORT)
    taker = desk.taker(name)
    desk.script.wait(2)
    taker.send(op.CloseConsumer, consumer=1, unseen=[])
    desk.delete(name, purge=True)
    desk.correct(name, 0, "RELEASE")
    desk.delete(name)


def held_when_removed(desk, name):
    """Removed from its holder after its time was over."""
    desk.put(name, SHORT)
    desk.taker(name)
    desk.script.wait(2)
    desk.correct(name, 0)


def back_when_the_holder_is_lost(desk, name):
    """It expires as it comes back at the entry that deletes the queue."""
    desk.put(name, SHORT)
    taker = desk.taker(name)
    desk.script.add(op.Suspect(worker="w", sessions=[taker.handle]))
    desk.script.wait(3)
    desk.delete(name)


# Story; of each queue of that name (expired, purged, removed, consumed, resident); refusals.
QUEUES = (
    (expired_first, [(1, 0, 0, 0, 0)], []),
    (expired_with_the_entry, [(1, 1, 0, 0, 0)], []),
    (not_yet, [(1, 0, 0, 0, 0)], ["queue-not-empty"]),
    (under_another_queue, [(0, 2, 0, 0, 0), (0, 0, 0, 0, 1)], ["queue-not-empty"]),
    (removed_while_it_lives, [(0, 0, 2, 0, 0)], ["queue-not-empty"]),
    (corrected_too_late, [(1, 0, 0, 0, 0)], ["sequence-unknown"]),
    (deleted_after_a_correction, [(0, 0, 1, 0, 0), (1, 0, 0, 0, 0)], ["sequence-unknown"]),
    (unborn_when_purged, [(0, 1, 0, 0, 0), (0, 0, 0, 0, 1)], []),
    (unborn_when_removed, [(0, 0, 1, 1, 0)], []),
    (held_when_released, [(1, 0, 0, 0, 0)], ["queue-in-use"]),
    (held_when_removed, [(0, 0, 1, 0, 0)], []),
    (back_when_the_holder_is_lost, [(1, 0, 0, 0, 0)], []),
)


def unsubscribed(desk, topic):
    """One copy expired before its subscription ended, one goes with it."""
    subscriber = desk.subscriber(topic, "s" + topic)
    desk.put("topic:" + topic, SHORT, LONG)
    subscriber.send(op.CloseConsumer, consumer=1, unseen=[])
    desk.script.wait(2)
    subscriber.send(op.Unsubscribe, subscription="s" + topic)


def expired_in_one_of_two(desk, topic):
    """Held by one subscription until it ended, expired in the other long before."""
    subscriber = desk.subscriber(topic, credit=1)
    desk.subscriber(topic, "s" + topic)
    desk.put("topic:" + topic, SHORT)
    desk.script.wait(2)
    subscriber.close()


def purged_with_its_topic(desk, topic):
    """The topic is deleted with what its durable subscription still has."""
    subscriber = desk.subscriber(topic, "s" + topic)
    desk.put("topic:" + topic, SHORT, LONG, LATE)
    subscriber.send(op.CloseConsumer, consumer=1, unseen=[])
    desk.script.wait(1.5)
    desk.session.send(op.DeleteTopic, topic=topic, purge=True)
    desk.script.wait(2)


def over_when_numbered(desk, topic):
    """Its time was over before the commit that numbers it also ends its subscription."""
    subscriber = desk.subscriber(topic, credit=1, mode="TRANSACTED")
    desk.put("topic:" + topic, LONG)
    desk.put("topic:" + topic, (500, 0, 1_000), by=subscriber)
    subscriber.send(op.CloseConsumer, consumer=1, unseen=[])
    subscriber.commit(1)


def over_when_numbered_for_two(desk, topic):
    """Another subscription stands; there it expires after the first one ended."""
    desk.subscriber(topic, "s" + topic)
    over_when_numbered(desk, topic)


# Story; of the topic (expired, dropped, purged, consumed); of each subscription (expired, dropped).
TOPICS = (
    (unsubscribed, (1, 1, 0, 0), [(1, 1)]),
    (expired_in_one_of_two, (1, 0, 0, 0), [(1, 0), (1, 0)]),
    (purged_with_its_topic, (1, 0, 2, 0), [(1, 2)]),
    (over_when_numbered, (0, 1, 0, 1), [(0, 1)]),
    (over_when_numbered_for_two, (1, 0, 0, 0), [(1, 0), (0, 1)]),
)


@pytest.fixture(scope="module")
def told(spark, tmp_path_factory):
    """All stories in one log, as the audit looks at it; its report; refusals by story."""
    desk = Desk()
    refusals = {}
    for story, *_ in (*QUEUES, *TOPICS):
        begin = len(desk.script.entries)
        story(desk, story.__name__)
        refusals[story.__name__] = [
            one.outcome.reason
            for found in desk.script.outcomes[begin:]
            for one in found
            if hasattr(one.outcome, "reason") and hasattr(one.outcome, "detail")
        ]
    subject = subject_of(spark, tmp_path_factory.mktemp("told"), desk.script.entries)
    return subject, audit(subject), refusals


def test_the_tables_agree_with_the_fold(told):
    """Everything is compared and nothing differs, refusals included."""
    _, report, _ = told
    assert report.anomalies == []
    assert report.verdict == "agrees"
    assert not any("tables were not compared" in note for note in report.notes)
    assert all(one["balances"] for one in [*report.totals, *report.subscription_totals])


def named(one):
    """The name of a story, for the name of its test."""
    return one.__name__ if callable(one) else ""


@pytest.mark.parametrize(("story", "ends", "refused"), QUEUES, ids=named)
def test_a_message_of_a_queue_goes_by_what_befell_it_first(told, story, ends, refused):
    """Expired, purged or removed, queue by queue of that name."""
    _, report, refusals = told
    names = ("expired", "purged", "removed", "consumed", "resident")
    found = [
        tuple(one[name] for name in names)
        for one in report.totals
        if one["queue"] == story.__name__
    ]
    assert found == ends
    assert refusals[story.__name__] == refused


@pytest.mark.parametrize(("story", "ends", "copies"), TOPICS, ids=named)
def test_a_topic_message_goes_as_its_last_copy(told, story, ends, copies):
    """Expired, dropped or purged, and what its subscriptions count."""
    _, report, refusals = told
    topic = "topic:" + story.__name__
    names = ("expired", "dropped", "purged", "consumed")
    found = [tuple(one[name] for name in names) for one in report.totals if one["queue"] == topic]
    assert found == [ends]
    held = [
        (one["expired"], one["dropped"])
        for one in report.subscription_totals
        if one["topic"] == topic
    ]
    assert held == copies
    assert refusals[story.__name__] == []


def test_the_life_of_a_message_that_was_purged_unborn_tells_no_birth(told):
    """Though its delay was over later."""
    tables = told[0].tables
    messages = tables.messages.where(f"queue = '{unborn_when_purged.__name__}'")
    purged = messages.where("fate = 'purged'").first()
    life = life_of(tables, "QM1", bytes(purged["message_id"]))
    assert [one.what for one in life.steps] == ["put", "purged"]


@pytest.fixture(scope="module")
def planted(spark, tmp_path_factory):
    """Faults among messages that expire and are removed, as the audit sees them; the faults."""
    desk = Desk()
    script = desk.script
    for queue, _, _ in PLANTS:
        conversation(script, queue, settle=queue != "half")
    for queue, _, _ in END_PLANTS:
        departure(script, queue)
    under_another_queue(desk, "again")
    held_when_released(desk, "released")
    recorded = deepcopy(script.outcomes)
    faults = [(kind, plant(recorded, queue)) for queue, plant, kind in PLANTS]
    faults += [(kind, plant(recorded, queue, script)) for queue, plant, kind in END_PLANTS]
    directory = tmp_path_factory.mktemp("planted")
    return subject_of(spark, directory, script.entries, recorded), faults


def test_every_planted_fault_is_found_once_also_where_messages_end(planted):
    """As many anomalies as faults, each of its kind and message."""
    subject, faults = planted
    report = audit(subject)
    assert sorted((one.kind, one.message_id) for one in report.anomalies) == sorted(faults)


def test_the_tables_find_a_delivery_of_what_was_gone_without_the_fold(planted):
    """Were the fold itself wrong, outcomes and rebuild would agree; the tables would not."""
    subject, faults = planted
    named = {one.message_id for one in check_turns(subject.tables, subject.recorded)}
    assert named >= {message for _, message in faults[-len(END_PLANTS) :]}


@pytest.mark.long
@pytest.mark.parametrize("seed", [11])
def test_a_random_log_in_which_messages_end_in_every_way_agrees(spark, tmp_path, seed):
    """Expiries, births, deletions and corrections meet as the fold makes them meet."""
    script = Script(random=random.Random(seed))
    RandomLog(script, topics=True, ends=True).grow(400)
    report = audited(spark, tmp_path, script.entries)
    assert report.anomalies == []
    assert report.verdict == "agrees"
    assert not any("tables were not compared" in note for note in report.notes)
    assert all(one["balances"] for one in [*report.totals, *report.subscription_totals])
    for end in ("expired", "purged", "removed"):
        assert sum(one[end] for one in report.totals) > 1, end
