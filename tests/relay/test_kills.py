"""Runners that are killed anywhere, run twice, or lose their worker: nothing is lost or doubled."""

from __future__ import annotations

import random
import signal
import time

import pytest

ROUNDS = 20
BATCH = 3000


def deadline(seconds):
    """Whether there is time left, as a function."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() < end


def kill_rounds(random_, start, rounds, progress, feed=lambda number: None):
    """Starts a runner so many times, and kills it soon after it has done something.

    Every third round there are two at once.
    """
    for number in range(rounds):
        feed(number)
        before, there_is_time = progress(), deadline(20)
        runners = [start() for _ in range(2 if number % 3 == 2 else 1)]
        while progress() == before and there_is_time():
            time.sleep(0.01)
        time.sleep(random_.uniform(0, 0.3))
        for runner in runners:
            runner.kill()
            runner.communicate()


def taken_of(connection, queue):
    """How far a queue has taken its sources, as a function."""
    return lambda: [one for one in told(connection) if one[0] == f"queue:{queue}"]


def told(connection):
    """What each destination has taken."""
    found = connection.admin.list_sources()
    return [(one.destination, one.name, one.partition, one.taken) for one in found]


def finish(start, seconds=240):
    """Lets one more run to the end of what there is; returns what it said."""
    runner = start("--until-end")
    told, _ = runner.communicate(timeout=seconds)
    assert runner.returncode == 0, told
    return told


@pytest.mark.long
def test_a_bridge_that_is_killed_twenty_times_loses_and_doubles_nothing(ways):
    """Records come all the while; in the middle the worker is killed too."""
    topic, queue = ways.topic(3), ways.name()
    random_ = random.Random(19)

    def start(*more):
        return ways.runner("bridge", "--from-topic", topic, "--to", f"queue:{queue}", *more)

    def feed(number):
        values = range(number * BATCH, (number + 1) * BATCH)
        ways.produce(topic, *({"value": str(n), "key": f"k{n % 11}"} for n in values))
        if number == ROUNDS // 2:
            ways.place.workers[-1].kill()
            ways.place.worker("again", ready=False)

    with ways.connect() as connection:
        kill_rounds(random_, start, ROUNDS, taken_of(connection, queue), feed)
    finish(start)
    check_taken(ways, topic, queue, ROUNDS * BATCH)


def check_taken(ways, topic, queue, count):
    """Every record of the topic is on the queue once, in the order of its partition."""
    messages = ways.messages(queue)
    assert sorted(int(one.body) for one in messages) == list(range(count))
    offsets = {}
    for one in messages:
        told = one.properties
        assert told["LedgerMQ_KafkaTopic"] == topic
        offsets.setdefault(told["LedgerMQ_KafkaPartition"], []).append(told["LedgerMQ_KafkaOffset"])
    for found in offsets.values():
        assert found == list(range(len(found)))


@pytest.mark.slow
def test_a_bridge_that_is_killed_goes_on_where_it_was(ways):
    """Three kills at random times, in the middle two runners at once."""
    topic, queue = ways.topic(2), ways.name()
    ways.produce(topic, *({"value": str(n)} for n in range(20_000)))

    def start(*more):
        return ways.runner("bridge", "--from-topic", topic, "--to", f"queue:{queue}", *more)

    with ways.connect() as connection:
        kill_rounds(random.Random(3), start, 3, taken_of(connection, queue))
    finish(start)
    check_taken(ways, topic, queue, 20_000)


@pytest.mark.slow
def test_a_frozen_bridge_that_wakes_puts_nothing_again(ways):
    """While it sleeps, another one takes what it had read."""
    topic, queue = ways.topic(), ways.name()
    ways.produce(topic, *({"value": str(n)} for n in range(20_000)))

    def start(*more):
        return ways.runner("bridge", "--from-topic", topic, "--to", f"queue:{queue}", *more)

    frozen = start("--until-end")
    there_is_time = deadline(60)
    with ways.connect() as connection:
        while not taken_of(connection, queue)() and there_is_time():
            time.sleep(0.02)
    frozen.send_signal(signal.SIGSTOP)
    finish(start)
    frozen.send_signal(signal.SIGCONT)
    told, _ = frozen.communicate(timeout=120)
    assert frozen.returncode == 0, told
    check_taken(ways, topic, queue, 20_000)


def relayed(ways, name, rounds, feed, count):
    """A relay from QM1 to QM2 under kills; the bodies that came, in their order."""

    def start(*more):
        return ways.runner("relay", "run", name, *more)

    with ways.connect("QM2") as connection:
        kill_rounds(random.Random(7), start, rounds, taken_of(connection, name), feed)
    finish(start)
    bodies = [int(one.body) for one in ways.messages(name, "QM2")]
    assert len(bodies) == count
    return bodies


def create_relay(ways, name):
    """Defines a relay between queues of one name."""
    command = ("relay", "create", "--from", f"queue:{name}@QM1", "--to", f"queue:{name}@QM2")
    runner = ways.runner(*command)
    told, _ = runner.communicate(timeout=60)
    assert runner.returncode == 0, told


@pytest.mark.long
def test_a_relay_that_is_killed_loses_and_doubles_nothing(ways):
    """Messages come all the while; what a killed runner held comes back after some time."""
    name, rounds = ways.name("relay"), 8
    create_relay(ways, name)

    def feed(number):
        with ways.connect() as connection, connection.session() as session:
            bodies = [str(n) for n in range(number * BATCH, (number + 1) * BATCH)]
            session.producer(f"queue:{name}").send_many(bodies)
        if number == rounds // 2:
            ways.place.workers[-1].kill()
            ways.place.worker("again", ready=False)
            ways.place.wait_for_worker()

    bodies = relayed(ways, name, rounds, feed, rounds * BATCH)
    assert sorted(bodies) == list(range(rounds * BATCH))


@pytest.mark.long
def test_a_bridge_to_kafka_that_is_killed_loses_and_doubles_nothing(ways):
    """For readers of what is committed."""
    topic, queue, rounds = ways.topic(3), ways.name(), 8

    def start(*more):
        return ways.runner("bridge", "--from", f"queue:{queue}", "--to-topic", topic, *more)

    def feed(number):
        with ways.connect() as connection, connection.session() as session:
            bodies = [str(n) for n in range(number * BATCH, (number + 1) * BATCH)]
            session.producer(f"queue:{queue}").send_many(bodies)

    kill_rounds(random.Random(11), start, rounds, lambda: ways.ends(topic), feed)
    finish(start)
    values = [int(one.value()) for one in ways.records(topic)]
    assert sorted(values) == list(range(rounds * BATCH))
    ends = [dict(one.headers())["ledgermq-source"] for one in ways.records(topic)]
    assert len(set(ends)) == rounds * BATCH
