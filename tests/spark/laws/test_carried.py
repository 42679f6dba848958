"""A stretch of a log is judged with what was carried into it as the log is judged from 0."""

import random
from collections import Counter

import pytest

from ledgermq.protocol.administration import BackUpJournal
from ledgermq.protocol.operations import AlterQueueManager
from ledgermq_spark.laws.all_laws import LAWS
from ledgermq_spark.laws.facts import RAW
from support.audits.engines import duck_engine
from support.audits.stretches import Stretches
from support.brokers.log_writer import Script
from support.generators.mixed_histories import mixed_history
from support.planted.trial import log_of
from support.random_logs.random_ids import RandomIds
from support.random_logs.random_log import RandomLog
from support.random_logs.random_sources import RandomSources
from support.stories import moving, topics, waiting

FLAVOURS = (
    {},
    {"ends": True, "redelivery": True},
    {"topics": True, "moves": True},
    {"groups": True, "quotas": True, "clock": True},
)
LENGTH = 100
MIXED = 4
CUTS = 2
ROUNDS = (5, 20)


def cuts(length, seed):
    """Return random positions behind which a log is cut."""
    return sorted(random.Random(seed).sample(range(1, length - 1), CUTS))


def routine(rounds):
    """Return a log of sessions that put, get and acknowledge, and where the last round ends."""
    script = Script()
    connection = script.identifier()
    sender, getter = script.session("TRANSACTED"), script.session("CLIENT", connection=connection)
    getter.consumer("q", credit=1)
    getter.subscribe("t", 2, 1, subscription="s", durable=True, shared=True)
    delivered = 0
    for _ in range(rounds):
        sender.put("q", "a")
        sender.publish("t", "b")
        sender.commit()
        for consumer in (1, 2):
            delivered += 1
            getter.acknowledge(delivered)
            getter.get(1, consumer)
        other = script.session("CLIENT", connection=connection)
        other.consumer("r", credit=1)
        other.put("r", "c")
        other.acknowledge(1)
        other.close()
    end = len(script.entries) - 1
    sender.put("q", "last")
    sender.commit()
    return script.entries, end


def journaled():
    """Return a log whose backups rest on journaling of before, and where that ends."""
    script = Script()
    session = script.session("CLIENT")

    def switch(*, on):
        session.send(AlterQueueManager, journaling=on)

    def back_up(position):
        positions = {"needed_from": position, "kept_from": position, "through": position}
        session.send(BackUpJournal, actor="a", reason="r", **positions)

    back_up(0)
    switch(on=True)
    back_up(9999)
    switch(on=False)
    switch(on=True)
    first_end = len(script.entries) - 1
    back_up(first_end)
    back_up(first_end - 1)
    switch(on=False)
    back_up(len(script.entries))
    second_end = len(script.entries) - 1
    back_up(second_end)
    return script.entries, [first_end, first_end + 1, second_end]


@pytest.fixture(scope="module")
def facts(spark):
    """Return the facts of all stretches."""
    stretches = Stretches()
    for seed, flavour in enumerate(FLAVOURS):
        script = Script(random=random.Random(seed))
        RandomLog(script, **flavour).grow(LENGTH)
        stretches.cut(f"random {seed}", script.entries, cuts(LENGTH, seed))
    sources = RandomSources(Script(random=random.Random(8))).grow(LENGTH)
    stretches.cut("random sources", sources.entries, cuts(LENGTH, 8))
    for seed in range(3):
        ids = RandomIds(Script(random=random.Random(seed))).grow(LENGTH)
        stretches.cut(f"random ids {seed}", ids.entries, cuts(LENGTH, seed))
    for seed in range(MIXED):
        log = log_of(mixed_history(seed))
        stretches.cut(f"mixed {seed}", log, cuts(len(log), seed))
    for rounds in ROUNDS:
        entries, end = routine(rounds)
        stretches.cut(f"routine {rounds}", entries, [end, end + 1])
    stretches.cut("journal", *journaled())
    made, end = topics.made_by_its_subscription()
    stretches.cut("made by its subscription", made.entries, [end])
    unbound, end = topics.unbound_by_another()
    stretches.cut("unbound by another", unbound.entries, [end])
    waited, end = waiting.taken_for_a_session()
    stretches.cut("taken for a session", waited.entries, [end])
    stood, end = waiting.put_while_time_stood()
    stretches.cut("put while time stood", stood.entries, [end])
    copied, copied_at = moving.copied_to_a_topic()
    stretches.cut("copied to a topic", copied.entries, [copied_at])
    copied, copied_at = moving.copied_before_it_went_to_a_topic()
    stretches.cut("copied before", copied.entries, [copied_at])
    return stretches.facts(duck_engine())


def test_stretches_of_lawful_logs_break_no_law(facts):
    """What is carried, and carried on from there, is all that any law asks for."""
    assert facts.judge(LAWS) == []


def test_what_is_carried_is_as_large_as_what_is_there_and_not_as_the_log_was_long(facts):
    """Four times as many messages that came and went leave as many rows."""
    sizes = {rounds: Counter() for rounds in ROUNDS}
    for name in (*RAW[:4], "stores_before"):
        for rounds in ROUNDS:
            of_one = f"SELECT * FROM {{{name}}} WHERE queue_manager = 'routine {rounds} 1'"
            sizes[rounds][name] = len(facts.rows(of_one))
    few, many = (sizes[rounds] for rounds in ROUNDS)
    assert few == many
