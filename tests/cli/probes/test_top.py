"""`ledgermq top`: queues with rates between two looks, until told to end."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest

from ledgermq.cli.commands import top
from ledgermq.cli.printing.exits import OK, UNREACHABLE
from ledgermq.client.admin.admin import Admin
from ledgermq.errors import WorkerUnavailableError


@pytest.fixture
def between(memory, broker_in_memory, monkeypatch):
    """A command line, and a list of what happens while it waits for its next look."""
    happens = []
    with broker_in_memory.connect() as connection, connection.session() as session:
        connection.admin.create_queue("busy")
        connection.admin.create_queue("idle")
        session.producer("queue:idle").send("x")
        times = iter(range(0, 1000, 2))
        monkeypatch.setattr(
            top,
            "time",
            SimpleNamespace(
                monotonic=lambda: next(times),
                sleep=lambda _: happens and happens.pop(0)(connection, session),
            ),
        )
        yield happens


def five_put_and_two_consumed(_, session):
    """What a busy queue sees."""
    producer, consumer = session.producer("queue:busy"), session.consumer("queue:busy")
    for _ in range(5):
        producer.send("x")
    for _ in range(2):
        consumer.receive(timeout=1)
    consumer.close()


def test_rates_are_what_happened_between_two_looks(memory, between):
    """Busiest first; of the first look there are none; how long the oldest waits is told."""
    between.append(five_put_and_two_consumed)
    first, second = memory("top", "--looks", 2, "--json").documents
    rates = [(row["name"], row["puts_per_second"]) for row in first["queues"]]
    assert rates == [("busy", None), ("idle", None)]
    busy, idle = second["queues"]
    assert (busy["puts_per_second"], busy["consumed_per_second"], busy["current"]) == (2.5, 1.0, 3)
    assert (idle["puts_per_second"], idle["consumed_per_second"]) == (0.0, 0.0)
    assert (idle["oldest_seconds"] is None, idle["current"]) == (False, 1)
    assert second["position"] > first["position"]


def test_a_queue_that_was_made_anew_has_no_rate(memory, between):
    """Its numbers begin anew, and fell since the look before."""

    def made_anew(connection, _):
        connection.admin.delete_queue("idle", purge=True)
        connection.admin.create_queue("idle")

    between.append(made_anew)
    (_, second) = memory("top", "idle", "--looks", 2, "--json").documents
    (idle,) = second["queues"]
    assert (idle["puts_per_second"], idle["oldest_seconds"]) == (None, None)


def test_queues_are_chosen_and_ordered(memory, between):
    """By name as in lists; each look is a table."""
    told = memory("top", "--looks", 2, "--sort", "current", "[bi]*").lines
    assert [line.split("\t")[0] for line in told] == ["NAME", "idle", "busy"] * 2
    assert memory("top", "none.*", "--looks", 1, "--json").document["queues"] == []


def test_a_terminal_is_told_while_nothing_answers(memory, between, monkeypatch):
    """And sees the queues again afterwards; programs are told by the exit code."""
    answered = Admin.list_queues
    answers = [answered, unanswered, answered]

    def in_turn(admin, **_):
        return answers.pop(0)(admin)

    monkeypatch.setattr(Admin, "list_queues", in_turn)
    screens = []
    monkeypatch.setattr("rich.live.Live.update", lambda _, shown, **__: screens.append(shown))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert memory("top", "--looks", 3).code == OK
    headlines = [screen.renderables[0].plain for screen in screens]
    assert ["no answer: nobody" in line for line in headlines] == [False, True, False]
    assert "2 queues, 1 message" in headlines[2]

    answers[:] = [answered, unanswered]
    told = memory("top", "--looks", 3, "--json")
    assert (told.code, len(told.lines)) == (UNREACHABLE, 1)
    assert json.loads(told.err)["error"]["code"] == "worker-unavailable"


def unanswered(_):
    """As where no worker runs."""
    raise WorkerUnavailableError("nobody")
