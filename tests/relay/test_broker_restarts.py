"""A broker that is killed and comes back under runners that go on: bridges and a relay in a row."""

from __future__ import annotations

import random
import time

import pytest

pytestmark = [pytest.mark.kafka, pytest.mark.long]

PATIENCE_SECONDS = 240
RECORDS = 2_000


def run(ways, *arguments, **more):
    """Runs a command to its end."""
    runner = ways.runner(*arguments, **more)
    told, _ = runner.communicate(timeout=120)
    assert runner.returncode == 0, told


@pytest.mark.timeout(600)
def test_runners_live_through_kills_of_the_broker(own_broker, ways_on, tmp_path):
    """From topic to queue, to another queue manager, to a topic: each record once, in its order."""
    ways = ways_on(own_broker, tmp_path)
    source, goal, queue = ways.topic(), ways.topic(), ways.name()
    run(ways, "relay", "create", "--from", f"queue:{queue}@QM1", "--to", f"queue:{queue}@QM2")
    with ways.connect("QM2") as connection:
        connection.admin.create_queue(queue)
    runners = [
        ways.runner("bridge", "--from-topic", source, "--to", f"queue:{queue}"),
        ways.runner("relay", "run", queue),
        ways.runner(
            *("bridge", "--from", f"queue:{queue}", "--to-topic", goal), queue_manager="QM2"
        ),
    ]
    dice = random.Random(11)
    worker = ways.place.workers[-1]
    for number in range(2):
        values = range(number * RECORDS, (number + 1) * RECORDS)
        ways.produce(source, *({"value": str(one)} for one in values))
        before, limit = ways.ends(goal), time.monotonic() + PATIENCE_SECONDS
        while ways.ends(goal) == before and time.monotonic() < limit:
            time.sleep(0.02)
        time.sleep(dice.uniform(0, 0.5))
        own_broker.kill()
        time.sleep(dice.uniform(0, 3))
        own_broker.start()
        if worker.code is not None:
            worker = ways.place.worker("again", ready=False)
    wanted = [str(one).encode() for one in range(2 * RECORDS)]
    limit = time.monotonic() + PATIENCE_SECONDS
    while len(ways.records(goal)) < len(wanted) and time.monotonic() < limit:
        time.sleep(0.5)
    ended = [one.poll() for one in runners]
    said = []
    for runner in runners:
        runner.terminate()
        said.append(runner.communicate(timeout=60)[0])
    assert ended == [None, None, None], said
    assert [one.value() for one in ways.records(goal)] == wanted, said
