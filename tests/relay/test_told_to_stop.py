"""Runners that are told to stop while their broker does not answer: they end, and lose nothing."""

from __future__ import annotations

import os
import signal
import time

import pytest

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

# When the last of three runners has written its first 500, the first one has put them all, the
# second is in the middle.
RECORDS = 3_000
# Beside how long a call to Kafka may wait, this is nothing.
TIMEOUT = ("--timeout", "200")
PATIENCE_SECONDS = 60


def start_all(ways, source, queue, goal, *more):
    """From a topic to a queue, to another queue manager, to a topic."""
    return [
        ways.runner("bridge", "--from-topic", source, "--to", f"queue:{queue}", *more),
        ways.runner("relay", "run", queue, *more),
        ways.runner(
            *("bridge", "--from", f"queue:{queue}", "--to-topic", goal, *more), queue_manager="QM2"
        ),
    ]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("is_frozen", [True, False])
def test_runners_end_while_their_broker_does_not_answer(own_broker, ways_on, tmp_path, is_frozen):
    """They say so, and not that they are done; the same runs go on where they were (I1, I3)."""
    ways = ways_on(own_broker, tmp_path)
    source, goal, queue = ways.topic(), ways.topic(), ways.name()
    create = ways.runner(
        "relay", "create", "--from", f"queue:{queue}@QM1", "--to", f"queue:{queue}@QM2"
    )
    assert create.wait(60) == 0
    with ways.connect("QM2") as connection:
        connection.admin.create_queue(queue)
    ways.produce(source, *({"value": str(one)} for one in range(RECORDS)))
    runners = start_all(ways, source, queue, goal, *TIMEOUT)
    limit = time.monotonic() + PATIENCE_SECONDS
    while ways.ends(goal) == [0] and time.monotonic() < limit:
        time.sleep(0.05)
    pid = own_broker.pid
    if is_frozen:
        os.kill(pid, signal.SIGSTOP)
    else:
        own_broker.kill()
    try:
        for runner in runners:
            runner.send_signal(signal.SIGTERM)
        said = [runner.communicate(timeout=PATIENCE_SECONDS)[0] for runner in runners]
    finally:
        if is_frozen:
            os.kill(pid, signal.SIGCONT)
        else:
            own_broker.start()
        for runner in runners:
            runner.kill()
    assert [runner.returncode for runner in runners] == [3, 3, 3], said
    for text in said:
        assert "goes on" in text
        assert " put to " not in text
        assert "written to" not in text
    if ways.place.workers[-1].code is not None:
        ways.place.worker("again", ready=False)
    ways.place.wait_for_worker()
    runners = start_all(ways, source, queue, goal)
    limit = time.monotonic() + 4 * PATIENCE_SECONDS
    while len(ways.records(goal)) < RECORDS and time.monotonic() < limit:
        time.sleep(0.5)
    for runner in runners:
        runner.terminate()
    said = [runner.communicate(timeout=PATIENCE_SECONDS)[0] for runner in runners]
    told = "\n".join([*said, ways.place.workers[-1].log])
    assert [runner.returncode for runner in runners] == [0, 0, 0], told
    assert [int(one.value()) for one in ways.records(goal)] == list(range(RECORDS)), told
