"""Tests of what the life of a message tells: each step, where, through whom and why."""

import math

import pyarrow as pa
import pytest

from ledgermq.protocol import operations as op
from ledgermq.protocol.settings import given_settings
from ledgermq.wire.framing.codec import decode_operation
from ledgermq_spark.log.headers import header_text
from ledgermq_spark.tables.life import life_of, meant
from support.audits.engines import duck_engine, spark_engine
from support.audits.testimonies import Logs
from support.brokers.log_writer import Script
from support.random_logs.random_ends import timed_message
from support.stories import endings, losses, moving, topics
from support.stories.written_again import Relocated

pytestmark = pytest.mark.slow

OVER = "its time to live or the maximum lifetime is over"


def put_of(script, destination, nth=0):
    """Return the id of the nth message put to a destination."""
    operations = [decode_operation(entry.value) for entry in script.entries]
    puts = [one for one in operations if isinstance(one, op.Put) and one.destination == destination]
    return [message["message_id"] for put in puts for message in put.messages][nth]


def born_late():
    """Return a log in which a message waits, comes, and expires as it comes back; and its id."""
    script = Script()
    session = script.session()
    session.consumer("q", credit=1)
    message = timed_message(script, (5_000, 2_000, 0))
    session.send(op.Put, destination="queue:q", messages=[message])
    script.wait(3)
    session.send(op.Alive)
    script.wait(4)
    session.recover(1)
    return script, message["message_id"]


def timed_out():
    """Return a log in which the idle limit of a unit of work is over as it is rolled back."""
    script = Script()
    script.session().put("q", "a")
    slow = script.session("TRANSACTED", unit_of_work_idle_limit_ms=1_000)
    slow.consumer("q", credit=1)
    script.wait(1.5)
    slow.rollback()
    return script


def put_twice():
    """Return a log in which a put comes twice."""
    script = Script()
    session = script.session()
    session.send(op.CreateQueue, queue="q", deduplication_window_ms=9_000, deduplication_ids_max=9)
    for text in ("first", "second"):
        messages = [script.message(text)]
        session.send(op.Put, destination="queue:q", messages=messages, deduplication_id="x")
    return script


def lost_as_others_come():
    """Return a log in which time is over for sessions as others open one, or end one by hand."""
    script = Script()
    for end in ("Open", "EndSession"):
        session = script.session(suspect_timeout_ms=1_000)
        session.put(f"lost_at_{end}", "a")
        session.consumer(f"lost_at_{end}", credit=1)
        ended, operator = script.session(), script.session()
        script.add(op.Suspect(worker="w", sessions=[session.handle]))
        script.wait(1.1)
        if end == "Open":
            script.session()
        else:
            by_hand = {"actor": "op", "reason": "it hangs"}
            operator.send(op.EndSession, target_session=ended.handle, **by_hand)
    return script


def rejected():
    """Return a log in which messages are put back, sent away and dropped by their application."""
    script = Script()
    session = script.session("TRANSACTED")
    session.send(op.CreateQueue, queue="dead")
    settings = given_settings({"error_destination": "queue:dead"})
    session.send(op.CreateQueue, queue="q", settings=settings)
    session.put("q", "a")
    session.put("lossy", "b")
    session.commit()
    session.consumer("q", 1, credit=2)
    session.consumer("lossy", 2, credit=1)
    for consumer, delivery, requeue in ((1, 1, True), (1, 3, False), (2, 2, False)):
        named = [{"first": delivery, "last": delivery}]
        reason = "it cannot be read" if requeue or consumer == 1 else ""
        fields = {"deliveries": named, "requeue": requeue, "reason": reason}
        session.send(op.Reject, consumer=consumer, **fields)
    return script


def late_and_too_often():
    """Return a log in which messages exceed their limit as a delay ends, with and without target.

    So does one of a topic, at once.

    A third one follows its group, while it waits for its own delay.
    """
    script = Script()
    session = script.session()
    session.send(op.CreateQueue, queue="dead")
    told = {"redelivery_limit": 0, "redelivery_delay_override_ms": 1_000}
    for queue in ("sent", "lossy"):
        target = "queue:dead" if queue == "sent" else ""
        kept = {"error_destination": target, "keeps_group_order": True}
        session.send(op.CreateQueue, queue=queue, settings=given_settings(told | kept))
    grouped = [timed_message(script, (0, 0, 0)) for _ in range(2)]
    for one in grouped:
        one["header"]["properties"]["JMSXGroupID"] = "x"
        one["message_id"] = script.identifier()
    session.send(op.Put, destination="queue:sent", messages=grouped)
    session.put("lossy", "b")
    session.consumer("sent", 1, credit=2)
    session.consumer("lossy", 2, credit=1)
    session.send(
        op.CreateTopic,
        topic="t",
        settings=given_settings({"redelivery_limit": 0} | {"error_destination": "queue:dead"}),
    )
    session.send(op.OpenConsumer, consumer=3, destination="topic:t")
    session.get(1, 3)
    session.send(op.Put, destination="topic:t", messages=[script.message("c")])
    session.recover(1, 3, 4)
    script.wait(0.5)
    session.recover(2)
    script.wait(1)
    session.send(op.Alive)
    return script


def put_back_once_too_often():
    """Return a log in which messages are put back by their application over their limit."""
    script = Script()
    session = script.session()
    session.send(op.CreateQueue, queue="dead")
    for queue, destination in (("last", "queue:dead"), ("lossy", "")):
        limited = {"redelivery_limit": 0, "error_destination": destination}
        session.send(op.CreateQueue, queue=queue, settings=given_settings(limited))
        session.put(queue, "a")
    for number, queue in ((1, "last"), (2, "lossy")):
        session.consumer(queue, number, credit=1)
        named = [{"first": number, "last": number}]
        fields = {"deliveries": named, "requeue": True, "reason": "the database is away"}
        session.send(op.Reject, consumer=number, **fields)
    return script


def handed_on():
    """Return a log in which bindings hand on what a topic is given, to two queues."""
    script = Script()
    session = script.session()
    for queue in ("q", "r"):
        session.send(op.CreateQueue, queue=queue)
        session.send(op.Bind, topics="t", destination=f"queue:{queue}")
    session.publish("t", "a")
    session.subscribe("t")
    session.publish("t", "b")
    return script


@pytest.fixture(scope="module")
def lives():
    """Return the life of a message of each story, by a name of ours."""
    logs, asked = Logs(), {}

    def ask(name, script, **messages):
        logs.fold(name, script.entries)
        asked.update({one: (name, message_id) for one, message_id in messages.items()})

    script = timed_out()
    ask("timed out", script, slow=put_of(script, "queue:q"))
    script = put_twice()
    ask("twice", script, once=put_of(script, "queue:q"), twice=put_of(script, "queue:q", 1))
    script, message_id = born_late()
    ask("late", script, late=message_id)
    script = endings.told()[0]
    ask("endings", script, unborn=put_of(script, "queue:unborn_when_purged"))
    script = topics.made_anew()
    published = ("first", "second", "third", "fourth")
    ask("anew", script, **{one: put_of(script, "topic:t", at) for at, one in enumerate(published)})
    script, message = moving.wandering()
    ask("wandering", script, wandering=message["message_id"], copied=put_of(script, "queue:old", 4))
    script, messages = moving.parked_and_sent_back()
    ask("sent back", script, **messages)
    script = late_and_too_often()
    late = {"late_lossy": "queue:lossy", "late_sent": "queue:sent", "published": "topic:t"}
    asked_of = {name: put_of(script, destination) for name, destination in late.items()}
    ask("too often", script, late_follower=put_of(script, "queue:sent", 1), **asked_of)
    script = rejected()
    sent_away = {"rejected": "queue:q", "rejected_for_good": "queue:lossy"}
    asked_of = {name: put_of(script, destination) for name, destination in sent_away.items()}
    ask("rejected", script, **asked_of)
    script = put_back_once_too_often()
    too_often = {"put_back_last": "queue:last", "put_back_for_good": "queue:lossy"}
    asked_of = {name: put_of(script, destination) for name, destination in too_often.items()}
    ask("put back", script, **asked_of)
    script = losses.two_losses()
    ask("losses", script, lost=put_of(script, "queue:q"))
    script = lost_as_others_come()
    ends = ("Open", "EndSession")
    asked_of = {f"lost_at_{end}": put_of(script, f"queue:lost_at_{end}") for end in ends}
    ask("others", script, **asked_of)
    script = handed_on()
    handed = {"bound": put_of(script, "topic:t"), "bound_too": put_of(script, "topic:t", 1)}
    ask("handed on", script, **handed)
    again = Relocated()
    ask("again", again.script, again=again.message["message_id"])
    facts = logs.facts(duck_engine())
    return {name: life_of(facts, *place) for name, place in asked.items()}


def steps_of(life):
    """Return what happened, and what is told of it."""
    return [(one.what, one.reason) for one in life.steps]


def whats(life):
    """Return what happened, without what is told of it."""
    return [one.what for one in life.steps]


def test_the_life_of_a_message_tells_its_birth_and_its_end(lives):
    """It waited, came, and expired as it came back when its time was over."""
    life = lives["late"]
    assert (life.queue, life.sequence, life.fate, life.backout_count) == ("q", 0, "expired", 1)
    assert steps_of(life) == [
        ("put", "queue q: by itself, session 0; number 0"),
        ("born", "queue q: its delivery delay is over"),
        (
            "delivered",
            "queue q: for the first time, delivery 1 of session 0 to consumer 1, delivery count 1",
        ),
        ("expired", f"queue q: {OVER}, as delivery 1 of session 0 came back"),
    ]


def test_the_life_of_a_message_says_that_a_unit_of_work_was_out_of_time(lives):
    """Not that its session rolled back, though it did so at the same entry."""
    (returned,) = [one.reason for one in lives["slow"].steps if one.what == "returned"]
    assert returned.startswith("queue q: a time limit of its unit of work was over, delivery 1")


def test_the_life_of_a_message_that_was_put_before_says_so(lives):
    """It was nowhere; the one that is there knows nothing of it."""
    assert whats(lives["once"]) == ["put"]
    (vanished,) = lives["twice"].steps
    assert vanished.what == "vanished"
    told = "queue q: it was put before under its deduplication id x, as number 0"
    assert vanished.reason.startswith(told)


def test_the_life_of_a_message_that_was_purged_unborn_tells_no_birth(lives):
    """Though its delay was over later."""
    assert whats(lives["unborn"]) == ["put", "purged"]


def test_the_life_of_a_topic_message_tells_of_its_copies(lives):
    """Consumed by its one subscription, wanted by none, or dropped as those two are gone."""
    life = lives["third"]
    assert (life.queue, life.sequence, life.fate) == ("topic:t", 2, "consumed")
    assert whats(life) == ["put", "added", "delivered", "consumed", "consumed"]
    assert steps_of(lives["second"]) == [
        ("dropped", "topic t: no subscription wants it, session 0; number 1")
    ]
    assert steps_of(lives["fourth"]) == [
        ("put", "topic t: by itself, session 0; number 3"),
        ("added", "subscription s of topic t: the subscription wants it; number 3"),
        ("added", "subscription 1/3 of topic t: the subscription wants it; number 3"),
        ("purged", "subscription s of topic t: its subscription was unsubscribed"),
        ("purged", "subscription 1/3 of topic t: its subscription ended with its last consumer"),
        ("dropped", "topic t: no subscription has it"),
    ]


def test_the_life_of_a_message_is_told_across_queues(lives):
    """Where it left each place for, and under which number it came to the next."""
    life = lives["wandering"]
    assert (life.queue, life.fate) == ("late", "available")
    away = [one for one in steps_of(life) if one[0] in ("expired", "arrived")]
    assert away == [
        ("expired", f"queue q: {OVER}"),
        ("arrived", "queue old: it came from queue q; number 1"),
        ("expired", f"queue old: {OVER}"),
        ("arrived", "topic over: it came from queue old; number 1"),
        (
            "expired",
            f"subscription s of topic over: {OVER}",
        ),
        ("expired", f"topic over: {OVER}"),
        ("arrived", "queue late: it came from topic over; number 2"),
    ]
    copied = ("arrived", "queue q: copied by administration; number 2; op: test")
    assert steps_of(lives["copied"])[-1] == copied


def test_the_life_of_a_message_tells_where_bindings_handed_it_on(lives):
    """Whether a subscription wants it too or none does, each copy came from the topic (§5)."""
    unwanted = "no subscription wants it: it goes to queue q and queue r"
    assert steps_of(lives["bound"]) == [
        ("moved", f"topic t: {unwanted}, session 0; number 0"),
        ("arrived", "queue q: it came from topic t; number 0"),
        ("arrived", "queue r: it came from topic t; number 0"),
    ]
    assert steps_of(lives["bound_too"]) == [
        ("put", "topic t: by itself, session 0; number 1"),
        ("added", "subscription 0/1 of topic t: the subscription wants it; number 1"),
        ("arrived", "queue q: it came from topic t; number 1"),
        ("arrived", "queue r: it came from topic t; number 1"),
    ]


def test_the_life_of_a_message_says_why_it_was_moved_and_who_moved_it(lives):
    """Rules of the queue are told as such; what is done by hand, by whom and why (§14, §17)."""
    exceeded = "its redelivery limit is exceeded"
    assert steps_of(lives["limited"])[-5:] == [
        ("moved", f"queue limited: {exceeded}, as delivery 1 of session 0 came back"),
        ("arrived", "queue dead: it came from queue limited; number 0"),
        ("moved", "queue dead: by administration; op: mended"),
        ("arrived", "queue limited: it came from queue dead; number 1; op: mended"),
        ("removed", "queue limited: by administration; op: mended"),
    ]
    nowhere = f"queue lossy: {exceeded}, and it has nowhere to go, as delivery 2 of session 0"
    assert steps_of(lives["lossy"])[-1] == ("dropped", f"{nowhere} came back")


def test_a_message_that_was_rejected_says_so_and_why(lives):
    """In the words of its application, if it said any (§5)."""
    put_back = "queue q: the application put it back, delivery 1 of session 0"
    came_back = "as delivery 3 of session 0 came back: it cannot be read"
    assert steps_of(lives["rejected"])[-4:] == [
        ("returned", f"{put_back}; backout count 1: it cannot be read"),
        (
            "delivered",
            "queue q: again, delivery 3 of session 0 to consumer 1, delivery count 2",
        ),
        ("moved", f"queue q: its application rejected it, {came_back}"),
        ("arrived", "queue dead: it came from queue q; number 0"),
    ]
    nowhere = "queue lossy: its application rejected it, and it has nowhere to go"
    dropped = ("dropped", f"{nowhere}, as delivery 2 of session 0 came back")
    assert steps_of(lives["rejected_for_good"])[-1] == dropped


def test_a_message_that_was_put_back_once_too_often_says_so_and_why(lives):
    """The last words of its application are on the log as all others are (INF-11)."""
    over = "the application put it back, and its redelivery limit is exceeded"
    came_back = "as delivery 1 of session 0 came back: the database is away"
    assert ("moved", f"queue last: {over}, {came_back}") in steps_of(lives["put_back_last"])
    dropped = over.replace(", and", ",") + ", and it has nowhere to go"
    came_back = came_back.replace("delivery 1", "delivery 2")
    last = ("dropped", f"queue lossy: {dropped}, {came_back}")
    assert steps_of(lives["put_back_for_good"])[-1] == last


def test_a_limit_is_told_as_such_when_a_delay_ends(lives):
    """A message alone follows nobody; what does not end a delay follows its group (INF-11)."""
    exceeded = "its redelivery limit is exceeded"
    assert ("moved", f"queue sent: {exceeded}") in steps_of(lives["late_sent"])
    follows = "it follows one of its group that came back too often or was rejected"
    assert ("parked", f"queue sent: {follows}") in steps_of(lives["late_follower"])
    nowhere = ("dropped", f"queue lossy: {exceeded}, and it has nowhere to go")
    assert steps_of(lives["late_lossy"])[-1] == nowhere
    assert [one for one in steps_of(lives["published"]) if one[0] == "moved"] == [
        ("moved", f"subscription 0/3 of topic t: {exceeded}, as delivery 4 of session 0 came back"),
        ("moved", "topic t: the last subscription that had it sent it elsewhere"),
    ]


def test_the_life_of_a_message_says_whether_a_loss_counts_against_it(lives):
    """The first return does not, the second does: it was being handed over (H20)."""
    lost = "queue q: the session was lost: nothing was heard of its client in time"
    assert [one for one in steps_of(lives["lost"]) if one[0] == "returned"] == [
        ("returned", f"{lost}, delivery 1 of session 0; backout count 1, 1 not against it"),
        ("returned", f"{lost}, delivery 1 of session 6; backout count 2, 1 not against it"),
    ]


@pytest.mark.parametrize("end", ["Open", "EndSession"])
def test_a_loss_is_told_as_one_whatever_entry_comes_next(lives, end):
    """Somebody else's entry is only where the log's time went on."""
    returned = dict(steps_of(lives[f"lost_at_{end}"]))["returned"]
    lost = "the session was lost: nothing was heard of its client in time"
    assert returned.startswith(f"queue lost_at_{end}: {lost}, delivery 1 of session")
    assert returned.endswith("; backout count 1, 1 not against it")


def test_the_life_of_a_message_tells_where_it_was_written_again(lives):
    """Who wanted it, and why; a refused Relocate is no step of it (H24)."""
    again, life = Relocated(), lives["again"]
    steps = [one for one in life.steps if one.what == "written again"]
    assert [one.position for one in steps] == [again.first, again.second, again.late]
    assert steps[0].reason == "operator: disk; the message is what and where it was"
    assert whats(life)[-2:] == ["consumed", "written again"]


GIVEN = {"price": 250.0, "rate": 1e16, "size": 7, "text": "007", "name": "it's", "inf": math.inf}


@pytest.mark.spark
@pytest.mark.parametrize("make_engine", [duck_engine, spark_engine])
@pytest.mark.parametrize(
    ("name", "value", "is_meant"),
    [
        *(("price", one, True) for one in ("250.0", "250", "250.00", "2.5e2")),
        *(("rate", one, True) for one in ("1e+16", "1e16", "1.0E16", "10000000000000000")),
        ("size", "7", True),
        *(("size", one, False) for one in ("7.5", "07", "")),
        ("text", "007", True),
        *(("text", one, False) for one in ("7", "7.0")),
        ("name", "it's", True),
        ("inf", "Infinity", True),
        *(("inf", one, False) for one in ("1e999", "nan")),
        ("nothing", "250", False),
    ],
)
def test_a_number_is_meant_however_it_is_written(spark, make_engine, name, value, is_meant):
    """JSON writes 250.0 for what an application calls 250; a text is what it is."""
    header = {"correlation_id": None, "type": None, "properties": GIVEN}
    told = header_text(header | {"time_to_live_ms": 0, "delivery_delay_ms": 0, "age_ms": 0})
    engine = make_engine(spark)
    given = engine.taken({"puts": pa.table({"header": [told]})})
    asked = f"SELECT * FROM {{puts}} WHERE {meant(properties={name: value})}"
    assert len(engine.rows(engine.ask(asked, given))) == is_meant
