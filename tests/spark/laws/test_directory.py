"""Which queues, topics and subscriptions there are, and their settings: as the fold has them."""

import random
from dataclasses import asdict

import pytest

from ledgermq.protocol import operations as op
from ledgermq.protocol.settings import given_settings, redelivery_of
from ledgermq.wire.content.objects import LONG_MAX
from ledgermq_spark.laws.places.directory import FIELDS, GIVEN, MANAGER_FIELDS, MANAGER_GIVEN
from support.audits.engines import duck_engine
from support.audits.testimonies import Logs
from support.brokers.log_writer import Script, color_header
from support.random_logs.random_log import RandomLog

FLAVOURS = (
    {"topics": True, "ends": True},
    {"quotas": True, "redelivery": True},
    {"topics": True, "groups": True, "redelivery": True},
    {"moves": True, "ends": True, "clock": True},
)
SEEDS = 3


def changing_script():
    """A queue that is altered, deleted and comes again by its use; others that come and go."""
    script = Script()
    one = script.session(client_id="c")
    one.send(op.CreateQueue, queue="q", settings=given_settings({"messages_max": 5}))
    one.send(op.AlterQueue, queue="q", settings=given_settings({"redelivery_limit": 3}))
    changed = given_settings({"messages_max": 7})
    one.send(
        op.AlterQueue, queue="q", settings=changed, single_active_consumer=True, available_max=2
    )
    one.send(op.DeleteQueue, queue="q")
    one.put("q", "a")
    one.send(op.AlterQueueManager, maximum_lifetime_ms=9_000)
    one.subscribe("t", 1, subscription="s", durable=True)
    one.send(op.AlterTopic, topic="t", unacknowledged_max=3, available_max=4, last_value_key="k")
    one.send(op.CloseConsumer, consumer=1, unseen=[])
    one.send(op.Unsubscribe, subscription="s")
    one.subscribe("t", 2, subscription="s", shared=True)
    one.close()
    return script


def waiting_script():
    """Puts that wait make a queue and a topic where others are made, or have come and gone."""
    script = Script()
    one = script.session()
    one.send(op.AlterQueueManager, messages_max=1)
    message = script.message("x", 4, color_header("red") | {"time_to_live_ms": 1_000})
    one.send(op.Put, destination="queue:x", messages=[message])
    for destination in ("queue:r", "topic:t"):
        messages = [script.message("m")]
        one.send(op.Put, destination=destination, messages=messages, blocking_ms=50_000)
    one.send(op.CreateQueue, queue="r")
    one.send(op.DeleteQueue, queue="r")
    script.wait(2)
    one.subscribe("u", 1)
    one.send(op.AlterQueueManager, messages_max=9)
    one.consumer("r", 2)
    one.send(op.AlterQueue, queue="r", settings=given_settings({"redelivery_limit": 3}))
    return script


def all_scripts():
    """Those above and random ones, by name."""
    yield "changing", changing_script()
    yield "waiting", waiting_script()
    for flavour in FLAVOURS:
        for seed in range(SEEDS):
            script = Script(random=random.Random(seed))
            RandomLog(script, **flavour).grow(120)
            yield f"{'+'.join(flavour)} {seed}", script


def settings_of(kind, store):
    """The settings of a queue, topic or subscription by name, as the fold has them."""
    affinity = kind == "queue" and store.affinity is not None
    fields = {name: getattr(store, name) for name in FIELDS if name != "group_affinity"}
    # Subscriptions have those of their topic, which remembers for all of them.
    remembers = getattr(store, "topic", store).deduplication
    window = {
        "deduplication_window_ms": remembers.window_ms if remembers else 0,
        "deduplication_ids_max": remembers.ids_max if remembers else 0,
    }
    mark = getattr(store, "topic", store).resume_mark
    marks = {
        "messages_resume": mark.messages if mark else 0,
        "bytes_resume": mark.bytes if mark else 0,
    }
    flags = {
        "group_affinity": affinity,
        "inherits_redelivery": getattr(store, "topic", store).inherits_redelivery,
        "single_active_consumer": store.single_active_consumer,
        "available_max": store.available_max,
        "last_value_key": store.last_value_key,
        "moves_unrouted": kind == "topic" and store.moves_unrouted,
    }
    return asdict(store.settings) | fields | flags | window | marks


def standing_in(state):
    """What stands in a state: kind, destination and place of creation, with its settings."""
    found = {
        "queue": state.queues.values(),
        "topic": state.topics.values(),
        "subscription": [one for one in state.subscriptions.values() if not one.has_ended],
    }
    return {
        (kind, getattr(one, "topic", one).destination, one.created_position): settings_of(kind, one)
        for kind, stores in found.items()
        for one in stores
    }


def manager_settings_of(state):
    """Settings of the queue manager by name, as the fold has them."""
    limits = ("unit_of_work_time_limit_ms", "unit_of_work_idle_limit_ms")
    told = {name: getattr(state, name) for name in ("messages_max", "bytes_max", *limits)}
    told |= {"automatic_creation": state.automatic_creation}
    mark = state.resume_mark
    told |= {"messages_resume": mark.messages if mark else 0}
    told |= {"bytes_resume": mark.bytes if mark else 0}
    told |= {"maximum_lifetime_ms": state.lifetimes.maximum_ms} | redelivery_of(state.redelivery)
    return told | storage_of(state)


def storage_of(state):
    """Settings of the storage by name."""
    settings = state.storage.settings
    names = ("segment_bytes", "segments_min", "segments_max")
    return {name: getattr(settings, name) for name in names}


@pytest.fixture(scope="module")
def directory(spark):
    """Return the states that scripts come to, and the rows of the directory of all of them."""
    logs, states = Logs(), {}
    for name, script in all_scripts():
        logs.fold(name, script.entries)
        states[name] = script.state
    facts = logs.facts(duck_engine())
    frames = ("settings", "stores", "manager_settings", "consumers")
    return states, {name: facts.rows(f"SELECT * FROM {{{name}}}") for name in frames}


def test_what_stands_in_the_end_stands_in_the_state_with_these_settings(directory):
    """What is read off the operations is what the fold made of them (D10)."""
    states, rows = directory
    gone = {
        (one["queue_manager"], one["kind"], one["destination"], one["store"])
        for one in rows["stores"]
        if one["gone_at"] is not None
    }
    found = {name: {} for name in states}
    for row in rows["settings"]:
        place = (row["kind"], row["destination"], row["store"])
        if row["until_position"] == LONG_MAX and (row["queue_manager"], *place) not in gone:
            found[row["queue_manager"]][place] = {name: row[name] for name in (*GIVEN, *FIELDS)}
    assert found == {name: standing_in(state) for name, state in states.items()}


def test_settings_of_the_queue_manager_are_those_of_the_state(directory):
    """Lifetime, quotas and storage are those that were given last."""
    states, rows = directory
    last = [row for row in rows["manager_settings"] if row["until_position"] == LONG_MAX]
    wanted = {name: manager_settings_of(state) for name, state in states.items()}
    names = [name for name in (*MANAGER_FIELDS, *MANAGER_GIVEN) if "journal" not in name]
    assert {row["queue_manager"]: {name: row[name] for name in names} for row in last} == wanted


def test_settings_are_in_force_from_the_operation_that_gives_them_to_the_next(directory):
    """A queue that comes again under its name has the settings of its own life only."""
    _, rows = directory
    told = [
        (row["from_position"], row["until_position"], row["messages_max"], row["redelivery_limit"])
        for row in rows["settings"]
        if row["queue_manager"] == "changing" and row["destination"] == "queue:q"
    ]
    assert sorted(told) == [(1, 2, 5, -1), (2, 3, 5, 3), (3, 4, 7, 3), (5, LONG_MAX, 0, -1)]


def test_a_subscription_is_there_until_it_is_ended(directory):
    """A durable one ends by Unsubscribe, a shared one with its last consumer."""
    _, rows = directory
    told = [
        (row["life"], row["subscription"], row["store"], row["gone_at"])
        for row in rows["stores"]
        if row["queue_manager"] == "changing" and row["kind"] == "subscription"
    ]
    assert sorted(told) == [("durable", "s", 7, 10), ("shared", "s", 11, 12)]


def test_what_a_put_makes_that_waited_is_made_at_its_position_when_it_is_let_in(directory):
    """Each is told from what came and went meanwhile, and from what comes at the same entry."""
    _, rows = directory
    told = {
        (row["store"], row["kind"], row["destination"], row["made_at"], row["gone_at"])
        for row in rows["stores"]
        if row["queue_manager"] == "waiting"
    }
    assert told == {
        (2, "queue", "queue:x", 2, None),
        (5, "queue", "queue:r", 5, 6),
        (3, "queue", "queue:r", 7, None),
        (7, "topic", "topic:u", 7, None),
        (7, "subscription", "topic:u", 7, None),
        (4, "topic", "topic:t", 8, None),
    }
    consumers = [row for row in rows["consumers"] if row["queue_manager"] == "waiting"]
    assert sorted(row["store"] for row in consumers) == [3, 7]
