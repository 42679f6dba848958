"""Tests of the pytest processes that `make test` starts: each test is in one of them, once."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from support import side_by_side

SCRIPT = side_by_side.__file__


def _item(name, *marks, asks=()):
    return SimpleNamespace(
        path=side_by_side.ROOT / name,
        nodeid=f"{name}::test",
        fixturenames=asks,
        get_closest_marker=lambda mark: mark if mark in marks else None,
    )


def test_they_meet_and_each_file_is_in_one(tmp_path):
    """Three begin with what needs a broker, one with Spark, one with the rest."""
    items = [
        _item("tests/a.py"),
        _item("tests/b.py", "spark"),
        _item("tests/c.py"),
        _item("tests/c.py", "kafka"),
        _item("tests/d.py"),
        _item("tests/e.py"),
        _item("tests/f.py", "kafka"),
        _item("tests/g.py", "spark"),
        _item("tests/h.py", "kafka"),
        _item("tests/i.py", "kafka"),
    ]
    first = side_by_side._taken(items, 1, tmp_path)
    second = side_by_side._taken(items, 2, tmp_path)
    third = side_by_side._taken(items, 3, tmp_path)
    fourth = side_by_side._taken(items, 4, tmp_path)
    fifth = side_by_side._taken(items, 5, tmp_path)
    assert next(first) is items[2]
    assert next(second) is items[7]
    assert next(third) is items[0]
    assert next(fourth) is items[9]
    assert next(fifth) is items[6]
    assert next(first) is items[3]
    assert list(third) == [items[4], items[5], items[8]]
    assert list(second) == [items[1]]
    assert list(first) == list(fourth) == list(fifth) == []


def test_the_longest_are_begun_first_by_all_that_begin_with_brokers(tmp_path, monkeypatch):
    """Else one of them is what all others wait for in the end."""
    items = [_item(f"tests/{name}.py", "kafka") for name in "abcdef"]
    monkeypatch.setattr(side_by_side, "LONGEST", {items[at].path for at in (1, 2, 4)})
    taken = [side_by_side._taken(items, side, tmp_path) for side in (1, 4, 5)]
    assert {next(one).path for one in taken} == side_by_side.LONGEST
    assert [next(one) for one in taken] == [items[0], items[5], items[3]]


def test_the_files_that_take_longest_are_there():
    """A file that was moved would be begun late, or where most of the others with Spark are."""
    named = side_by_side.LONGEST | side_by_side.SPARK_ELSEWHERE
    assert [one for one in named if not one.exists()] == []


def test_what_needs_its_own_spark_is_anywhere_and_what_asks_for_all_logs_is_where_spark_is(
    tmp_path, monkeypatch
):
    """One session is enough, and those logs are made once."""
    items = [
        _item("tests/a.py", "spark"),
        _item("tests/b.py", asks=[side_by_side.LAWFUL_LOGS]),
        _item("tests/c.py", "spark"),
        _item("tests/d.py", "spark", "kafka"),
    ]
    monkeypatch.setattr(side_by_side, "SPARK_ELSEWHERE", {items[at].path for at in (2, 3)})
    first, second, third = (side_by_side._taken(items, side, tmp_path) for side in (1, 2, 3))
    assert next(first) is items[3]
    assert next(third) is items[2]
    assert list(third) == []
    assert list(second) == [items[1], items[0]]


def test_who_begins_with_a_schema_registry_takes_all_that_ask_for_it(tmp_path):
    """Else each process would start one; what needs Spark besides stays with that."""
    registry = ["schema_registry"]
    items = [
        _item("tests/a.py", "kafka"),
        _item("tests/b.py", "kafka", asks=registry),
        _item("tests/c.py", "spark", asks=registry),
        _item("tests/d.py", "kafka"),
        _item("tests/e.py", asks=registry),
    ]
    first = side_by_side._taken(items, 1, tmp_path)
    assert [next(first), next(first), next(first)] == [items[0], items[1], items[4]]
    second = side_by_side._taken(items, 2, tmp_path)
    assert next(second) is items[2]
    assert list(side_by_side._taken(items, 3, tmp_path)) == [items[3]]
    assert list(first) == list(second) == []


ALL = ("takes x::a", "passed x::a", "takes x::b", "took all that was left")


@pytest.mark.parametrize(
    ("first", "second", "codes", "remembered"),
    [
        pytest.param(ALL, ("takes y::c", "passed y::c"), (1, 0), ["x::b"], id="failed"),
        pytest.param(
            ALL, ("takes y::c", "takes y::d"), (1, -9), ["x::b", "y::c", "y::d"], id="died"
        ),
        pytest.param(ALL[:3], ("takes y::c",), (-9, 1), None, id="all died"),
        pytest.param(ALL, ("takes y::c",), (1, 2), None, id="interrupted"),
    ],
)
def test_what_did_not_pass_is_run_again(first, second, codes, remembered, tmp_path, monkeypatch):
    """By `--last-failed`; where some were taken by none, or all was interrupted, nothing is."""
    monkeypatch.chdir(tmp_path)
    kept = tmp_path / ".pytest_cache/v/cache/lastfailed"
    kept.parent.mkdir(parents=True)
    kept.write_text('{"old::c": true}')
    for number, steps in ((1, first), (2, second)):
        (tmp_path / f"steps-{number}").write_text("".join(f"{step}\n" for step in steps))
    side_by_side._remember_failures(tmp_path, list(codes))
    assert (list(json.loads(kept.read_text())) if kept.exists() else None) == remembered


def test_no_test_at_all_is_a_failure(tmp_path):
    """As with one pytest: exit code 5, and what either said stands behind its number."""
    ended = subprocess.run(
        [sys.executable, SCRIPT, "-q", "-k", "no_such_test", __file__],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == pytest.ExitCode.NO_TESTS_COLLECTED
    starts = {line[:4] for line in ended.stdout.splitlines()}
    assert starts >= {*(f"{side} | " for side in side_by_side.SIDES), "all:"}


def test_a_process_that_hangs_says_where_and_costs_only_itself(tmp_path):
    """The time limit of a test is a signal that Python handles, which a hang in C never lets it."""
    hangs = side_by_side.ROOT / "tests/support/hanging.py"
    ended = subprocess.run(
        [sys.executable, SCRIPT, "-q", "-o", "timeout=1", hangs],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == pytest.ExitCode.TESTS_FAILED
    assert f'File "{hangs}", line 15 in test_that_hangs' in ended.stdout
    assert len([line for line in ended.stdout.splitlines() if "no tests ran" in line]) == 4
    failed = json.loads((tmp_path / ".pytest_cache/v/cache/lastfailed").read_text())
    assert [test.partition("::")[2] for test in failed] == ["test_behind", "test_that_hangs"]
