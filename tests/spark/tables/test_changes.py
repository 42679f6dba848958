"""What changed between two positions is what the fold's states there differ by."""

import random
from collections import Counter

import pytest

from ledgermq.core.apply import new_state
from ledgermq.core.state.records import Subscription, Topic
from ledgermq.protocol import operations as op
from ledgermq_spark.log.read_log import as_operation
from ledgermq_spark.tables.changes import changes_since
from support.audits.engines import duck_engine
from support.audits.testimonies import Logs
from support.brokers.log_writer import Script, fold_one
from support.random_logs.random_log import RandomLog

pytestmark = pytest.mark.slow

OPERATIONS = 150


def resident(state):
    """How many messages each queue and subscription has."""
    counts = Counter()
    for store in (*state.stores.values(), *state.topics.values()):
        if isinstance(store, Topic):
            continue
        is_copies = isinstance(store, Subscription)
        kind = f"topic:{store.topic.name}" if is_copies else f"queue:{store.name}"
        counts[kind, is_copies] += len(store.messages)
    return counts


@pytest.fixture(scope="module")
def log():
    """Return a random log's facts, its entries, and what each store had after each entry."""
    script = Script(random=random.Random(71))
    RandomLog(script, topics=True, moves=True, ends=True).grow(OPERATIONS)
    logs = Logs()
    logs.fold("L", script.entries)
    state, contents, held = new_state(), {}, []
    for position, entry in enumerate(script.entries):
        fold_one(state, contents, position, entry)
        held.append(resident(state))
    return logs.facts(duck_engine()), script.entries, held


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_what_was_there_before_and_after_is_what_the_fold_has(log, share):
    """Wherever something happened: before + came - went = after, as the states tell."""
    facts, entries, held = log
    since = int(len(entries) * share)
    changes = changes_since(facts, since)
    assert changes.position == len(entries) - 1
    before, after = Counter(), Counter()
    for one in changes.places:
        assert one.before + one.came - one.went == one.after, one
        if one.destination.startswith("queue:") or one.subscription is not None:
            place = (one.destination, one.subscription is not None)
            before[place] += one.before
            after[place] += one.after
    touched = {place for place in held[-1] | held[since] if held[-1][place] != held[since][place]}
    assert touched <= set(before)
    for place in touched:
        assert after[place] - before[place] == held[-1][place] - held[since][place], place


def test_every_operation_is_counted_by_its_kind(log):
    """What was asked for between the two is what the log has there."""
    facts, entries, _ = log
    kinds = Counter(type(as_operation(one.value, one.stamp)).__name__ for one in entries[61:])
    assert changes_since(facts, 60).operations == kinds


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_wherever_anything_changed_an_operation_did_it(log, share):
    """Also where no message was: what was made or ended names what made or ended it."""
    facts, entries, _ = log
    changes = changes_since(facts, int(len(entries) * share))
    assert any(one.made and not one.events for one in changes.places)
    for one in changes.places:
        assert one.operations, one
        for kind, count in one.operations.items():
            assert count <= changes.operations[kind], one


def test_a_queue_that_was_created_and_deleted_names_both_operations():
    """One that nothing was put to is made by its creation, and ended by its deletion."""
    script = Script()
    session = script.session()
    session.send(op.CreateQueue, queue="lasting")
    session.send(op.CreateQueue, queue="passing")
    session.send(op.DeleteQueue, queue="passing", purge=False)
    logs = Logs()
    logs.fold("L", script.entries)
    places = {one.destination: one for one in changes_since(logs.facts(duck_engine()), -1).places}
    assert places["queue:lasting"].operations == {"CreateQueue": 1}
    assert places["queue:passing"].operations == {"CreateQueue": 1, "DeleteQueue": 1}


def test_nothing_changed_after_the_end(log):
    """Two moments that are one have no difference."""
    facts, entries, _ = log
    changes = changes_since(facts, len(entries) - 1)
    assert (changes.places, changes.operations, changes.refused) == ([], {}, {})
    assert changes.since_us == changes.time_us > 0
