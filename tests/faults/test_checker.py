"""The checker of fault runs: a good history passes, and each violation planted in it is found."""

import copy

import pytest

from support.faults.checker import facts_of, judge, witness


def line(at, client, step, **fields):
    """A line of a history."""
    return {"at": float(at), "client": client, "step": step} | fields


def unit(at, client, number, what, puts=(), gets=(), end="ok"):
    """The lines of a unit of work; without an end for a client that was killed in it."""
    put = [list(one) for one in puts]
    got = [[queue, body, sequence] for queue, body, sequence in gets]
    lines = [line(at, client, "invoke", unit=number, what=what, puts=put, gets=got)]
    if end:
        more = {} if end == "ok" else {"error": "outcome-unknown"}
        lines.append(line(at + 0.5, client, end, unit=number, **more))
    return lines


def got(at, client, queue, body, sequence, count=1):
    """A message that was handed over."""
    return line(at, client, "got", queue=queue, body=body, sequence=sequence, count=count)


def good_history():
    """Two producers, a rollback, an unknown outcome that acted, one that did not, and a drain."""
    return [
        *unit(1, "moving-1", 1, "commit", puts=[("work", "moving-1:1"), ("left", "moving-1:2")]),
        *unit(2, "moving-1", 2, "commit", puts=[("work", "moving-1:3")], end="unknown"),
        *unit(3, "moving-2", 1, "commit", puts=[("work", "moving-2:1")], end=""),
        got(4, "moving-1", "work", "moving-1:1", 0),
        *unit(
            5,
            "moving-1",
            3,
            "rollback",
            puts=[("left", "moving-1:4")],
            gets=[("work", "moving-1:1", 0)],
        ),
        got(6, "moving-1", "work", "moving-1:1", 0, count=2),
        *unit(
            7,
            "moving-1",
            4,
            "commit",
            puts=[("left", "moving-1:5")],
            gets=[("work", "moving-1:1", 0)],
        ),
        *unit(
            8, "groups-1", 1, "commit", puts=[("groups", "groups-1:1"), ("groups", "groups-1:2")]
        ),
        got(9, "groups-1", "groups", "groups-1:1", 0),
        got(9.1, "groups-1", "groups", "groups-1:2", 1),
        *unit(
            10,
            "groups-1",
            2,
            "commit",
            gets=[("groups", "groups-1:1", 0), ("groups", "groups-1:2", 1)],
        ),
        *unit(11, "single-1", 1, "send", puts=[("single", "single-1:1"), ("single", "single-1:2")]),
        got(12, "single-1", "single", "single-1:1", 0),
        *unit(13, "single-1", 2, "acknowledge", gets=[("single", "single-1:1", 0)]),
        got(14, "single-2", "single", "single-1:2", 1),
        *unit(15, "single-2", 1, "acknowledge", gets=[("single", "single-1:2", 1)]),
        got(20, "draining-1", "work", "moving-1:3", 1),
        got(21, "draining-1", "left", "moving-1:2", 0),
        got(22, "draining-1", "left", "moving-1:5", 1),
        *unit(
            23,
            "draining-1",
            1,
            "commit",
            gets=[("work", "moving-1:3", 1), ("left", "moving-1:2", 0), ("left", "moving-1:5", 1)],
        ),
    ]


def laws_broken(history):
    """The laws that a history breaks."""
    return {violation.law for violation in judge(facts_of(history))}


def test_a_good_history_breaks_no_law():
    """Rollbacks, unknown outcomes of both kinds and a killed client are nothing bad."""
    assert judge(facts_of(good_history())) == []


def without_delivery_of(body):
    """A history in which a message was never handed over, and nobody took it."""
    history = []
    for one in good_history():
        if one.get("body") == body:
            continue
        one = copy.deepcopy(one)
        if "gets" in one:
            one["gets"] = [place for place in one["gets"] if place[1] != body]
        history.append(one)
    return history


def with_lines(*lines):
    """The good history and something more."""
    return [*good_history(), *lines]


def with_changed(change, **wanted):
    """The good history with a change to the first line that has these fields."""
    history = good_history()
    found = next(one for one in history if wanted.items() <= one.items())
    change(found)
    return history


PLANTED = {
    "a get is dropped": (without_delivery_of("moving-1:2"), "I1"),
    "a message nobody put is got": (with_lines(got(30, "moving-2", "work", "moving-9:1", 9)), "I2"),
    "a message of a rolled back unit of work is got": (
        with_lines(got(30, "moving-2", "left", "moving-1:4", 9)),
        "I2",
    ),
    "a get is doubled": (
        with_lines(*unit(30, "moving-2", 2, "commit", gets=[("work", "moving-1:3", 1)])),
        "I3",
    ),
    "a message comes again unmarked": (
        with_lines(got(30, "moving-2", "work", "moving-1:3", 1)),
        "I3",
    ),
    "a message comes again after it was consumed": (
        with_lines(got(30, "moving-2", "work", "moving-1:3", 1, count=2)),
        "I3",
    ),
    "a message is put twice": (
        with_lines(got(30, "moving-2", "work", "moving-1:3", 7, count=2)),
        "I4",
    ),
    "two messages have one number": (
        with_changed(lambda one: one.update(sequence=0), step="got", body="moving-1:5"),
        "I5",
    ),
    "numbers of two messages are swapped": (
        [
            one | {"sequence": 1 - one["sequence"]}
            if one["step"] == "got" and one["queue"] == "left"
            else one
            for one in good_history()
        ],
        "I6",
    ),
    "a group is taken in pieces": (
        with_changed(lambda one: one["gets"].pop(), client="groups-1", unit=2),
        "I6",
    ),
    "a unit of work is split": (without_delivery_of("moving-1:2"), "I7"),
    "an unknown unit of work acted in part": (
        [
            *good_history(),
            *unit(
                24,
                "moving-3",
                1,
                "commit",
                puts=[("work", "moving-3:1"), ("left", "moving-3:2")],
                end="unknown",
            ),
            got(30, "draining-1", "work", "moving-3:1", 5),
        ],
        "I7",
    ),
    "two units of work put something for one get": (
        with_lines(
            *unit(
                24,
                "moving-3",
                1,
                "commit",
                puts=[("right", "moving-3:1")],
                gets=[("work", "moving-1:1", 0)],
                end="unknown",
            ),
            got(30, "draining-1", "right", "moving-3:1", 0),
        ),
        "I7",
    ),
    "who stands by gets a message": (
        with_changed(lambda one: one.update(at=12.5), step="got", body="single-1:2"),
        "I6",
    ),
    "a delivery count falls": (
        with_lines(
            got(30, "moving-2", "work", "moving-1:3", 1, count=3),
            got(31, "moving-2", "work", "moving-1:3", 1, count=2),
        ),
        "I8",
    ),
    "two applications are handed one delivery": (
        with_lines(
            got(20.1, "moving-2", "work", "moving-1:1", 0, count=2),
        ),
        "I8",
    ),
    "an application is shown an error": (
        with_lines(line(30, "auto-1", "error", error="broker-unavailable")),
        "I12",
    ),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_violation_is_found(planted):
    """Each by the law that it breaks, with lines of the history as its witness."""
    history, law = PLANTED[planted]
    facts = facts_of(sorted(history, key=lambda one: one["at"]))
    found = [violation for violation in judge(facts) if violation.law == law]
    assert found
    assert law == "I12" or witness(facts, found[0])


def test_a_client_that_was_hurt_may_be_shown_an_error():
    """Its sessions ended while it stood still; that is told to it."""
    history = with_lines(
        line(25, "nemesis", "fault", what="client frozen", hurts=["auto-1"]),
        line(30, "auto-1", "error", error="session-lost"),
    )
    assert laws_broken(history) == set()


def test_a_kill_in_the_middle_of_a_line_leaves_a_history_that_can_be_read(tmp_path):
    """What was not written to its end was never done."""
    from support.faults.history import Recorder, read

    recorder = Recorder(tmp_path, "auto-1")
    recorder.write("got", queue="auto", body="auto-1:1", sequence=0, count=1)
    with (tmp_path / "auto-1.jsonl").open("a") as file:
        file.write('{"at": 3.0, "cli')
    assert [one["step"] for one in read(tmp_path)] == ["got"]
