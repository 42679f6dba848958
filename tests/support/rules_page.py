"""Writes build/rules.md: every rule, the tests that name it, and what became of them.

`make rules` runs the tests that name a rule; `ARGS` goes to pytest and may leave some of them out,
as `ARGS='-k "not kafka" tests/core tests/client'` does.
"""

from __future__ import annotations

import datetime
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import pytest

from support.checkout import ROOT
from support.rules import RULES, Naming, namings

PAGE = ROOT / "build" / "rules.md"
SCRIPTS = "tests/core/test_scripts.py"
PLACES = ("no broker", "memory", "Kafka")
HEAD = """\
# The rules and their tests

Written by `make rules`. The rules are those of the sources that version 1 keeps, in our words: of
sequence numbers (SEQ), of sessions in Jakarta Messaging (SES), of work in flight (INF), of the
message database (DB), of groups (GRP). Where a rule speaks of something that does not exist here,
[jms.md](../docs/jms.md#decided-otherwise) has what there is instead, and the test holds that. A
script's title is its name.
"""


class Case(NamedTuple):
    """One run of a test: of which, where, and how it ended."""

    test: tuple[str, str]
    place: str
    outcome: str


class Results:
    """A pytest plugin that keeps to the tests that name a rule, and notes how each case ended."""

    def __init__(self, named: Iterable[Naming]) -> None:
        self.named = {(one.file, one.name) for one in named if not one.is_script}
        self.scripts = {
            one.name.replace(" ", "_"): (one.file, one.name) for one in named if one.is_script
        }
        self.places: dict[str, tuple[tuple[str, str], str]] = {}
        self.outcomes: dict[str, str] = {}

    def _test_of(self, item: pytest.Function) -> tuple[str, str] | None:
        file = item.path.relative_to(ROOT).as_posix()
        if file == SCRIPTS:
            return self.scripts.get(item.callspec.id)
        test = (file, item.originalname)
        return test if test in self.named else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Function]) -> None:
        """Before anything is deselected, so that what is left out is known too."""
        for item in items:
            test = self._test_of(item)
            if test is not None:
                self.places[item.nodeid] = (test, _place(item))
        items[:] = [one for one in items if one.nodeid in self.places]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A case has failed if any part of it has."""
        before = self.outcomes.get(report.nodeid)
        if before != "failed" and (report.when == "call" or report.outcome != "passed"):
            self.outcomes[report.nodeid] = report.outcome

    def cases(self) -> list[Case]:
        """Every case, also those that were not run."""
        found = self.outcomes.get
        return [
            Case(test, place, found(node, "not run"))
            for node, (test, place) in sorted(self.places.items())
        ]


def _place(item: pytest.Function) -> str:
    """Where a case runs: on Kafka, on the queue manager in memory, or without either."""
    callspec = getattr(item, "callspec", None)
    parameter = callspec.params.get("place") if callspec is not None else None
    if parameter == "memory":
        return "memory"
    if parameter == "kafka" or {"broker", "installation"} & set(item.fixturenames):
        return "Kafka"
    return "no broker"


def page(named: list[Naming], cases: list[Case], how: str) -> str:
    """The page as Markdown."""
    by_test: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in cases:
        by_test[case.test].append(case)
    lines = [HEAD, f"Last run: {how}.", ""]
    lines += [
        f"| rule | what it says | tests | {' | '.join(PLACES)} |",
        "|---|---|---|---|---|---|",
    ]
    for rule, text in RULES.items():
        tests = [(one.file, one.name) for one in named if rule in one.rules]
        mine = [case for test in tests for case in by_test[test]]
        told = [_told([case for case in mine if case.place == place]) for place in PLACES]
        if any(not by_test[test] for test in tests):
            told[-1] = f"{told[-1]}; others not run".removeprefix("; ")
        lines.append(f"| {rule} | {text} | {_listed(tests)} | {' | '.join(told)} |")
    return "\n".join(lines) + "\n"


def _told(cases: list[Case]) -> str:
    count = Counter(case.outcome for case in cases)
    return ", ".join(f"{count[outcome]} {outcome}" for outcome in sorted(count, reverse=True))


def _listed(tests: list[tuple[str, str]]) -> str:
    """The tests, each file named once."""
    by_file: dict[str, list[str]] = defaultdict(list)
    for file, name in tests:
        by_file[file].append(name.replace("|", "\\|"))
    return "<br>".join(
        f"[{file.removeprefix('tests/')}](../{file}): " + ", ".join(f"`{name}`" for name in names)
        for file, names in by_file.items()
    )


def main() -> int:
    """Runs the tests and writes the page; pytest's exit code."""
    asked = sys.argv[1:]
    named = [one for one in namings() if one.rules & set(RULES)]
    results = Results(named)
    files = sorted({SCRIPTS if one.is_script else one.file for one in named})
    chosen = [] if any(one.startswith("tests") for one in asked) else files
    code = int(pytest.main(["-q", "-p", "no:cacheprovider", *asked, *chosen], plugins=[results]))
    cases = results.cases()
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    ran = [place for place in PLACES if any(c.place == place != "no broker" for c in _run(cases))]
    how = f"{today}, brokers: {', '.join(ran) or 'none'}"
    if asked:
        told = " ".join(f'"{one}"' if " " in one else one for one in asked)
        how += f", restricted to `{told}`"
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(named, cases, how), encoding="utf-8")
    print(f"written: {PAGE.relative_to(ROOT)}")
    return code


def _run(cases: list[Case]) -> list[Case]:
    return [case for case in cases if case.outcome != "not run"]


if __name__ == "__main__":
    sys.exit(main())
