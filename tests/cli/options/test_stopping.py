"""Commands that run until they are stopped end by a signal, whatever they are in."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, sys
from ledgermq.cli.options import stopping
from ledgermq.cli.printing.output import Output
stopping.STOP_SECONDS = float(sys.argv[1])
with stopping.stopped_by_signals(Output(as_json=True)) as told:
    print("begun", flush=True)
    told.wait()
    print("told", flush=True)
    # A call that no signal interrupts, as those of Kafka's library.
    left = int(sys.argv[2])
    while left:
        left = ctypes.CDLL(None).sleep(left)
        if sys.argv[3] == "orderly":
            break
"""


@pytest.fixture
def begin():
    """Starts the program; ends what still runs."""
    made = []

    def start(*arguments):
        found = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        made.append(found)
        assert found.stdout.readline() == "begun\n"
        return found

    yield start
    for one in made:
        one.kill()
        one.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_lets_it_end_and_the_second_ends_it(begin, number):
    """With the code of a process that was ended by it."""
    running = begin(600, 600, "stuck")
    running.send_signal(number)
    assert running.stdout.readline() == "told\n"
    running.send_signal(number)
    assert running.wait(30) == 128 + number


def test_what_ends_in_time_ends_as_it_likes(begin):
    """Without a word of it."""
    running = begin(600, 0, "orderly")
    running.send_signal(signal.SIGTERM)
    told, errors = running.communicate(timeout=30)
    assert (running.returncode, told, errors) == (0, "told\n", "")


def test_what_does_not_end_in_time_is_ended_and_says_so(begin):
    """As any error: for scripts, too."""
    running = begin(0.2, 600, "stuck")
    running.send_signal(signal.SIGTERM)
    _, errors = running.communicate(timeout=30)
    assert running.returncode == 3
    assert json.loads(errors)["error"]["code"] == "broker-unavailable"


def test_what_nobody_listens_to_any_more_is_ended_too(begin):
    """Where it cannot say so: what has started it is gone, and the pipe with that."""
    running = begin(0.2, 600, "stuck")
    running.stderr.close()
    running.send_signal(signal.SIGTERM)
    assert running.wait(30) == 3
