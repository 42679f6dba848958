"""Mutation testing: `make mutants` breaks a package in every small way, one at a time.

Each mutant gets a forked process that imports the mutated module in place of the real one and
runs the tests that execute the mutated line, quickest first, until one fails. A mutant that all of
them pass has survived. The summary goes to build/mutation.md; survivors that can make no
difference have their reason in `equivalent.txt` (file, line's text before => after, reason).
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import fastavro  # noqa: F401  (imported once, before the forks)
import hypothesis.stateful  # noqa: F401
import lark  # noqa: F401

sys.path.insert(0, str(Path(__file__).parents[1]))

from mutation.baseline import Baseline, baseline_of
from mutation.mutators import Mutant, mutants
from mutation.packages import PACKAGES, ROOT, SERVICES, Package
from mutation.report import Verdict, name_of, part, reasons_in, written
from mutation.trial import outcome_of, start

EQUIVALENT = Path(__file__).with_name("equivalent.txt")
REPORT = ROOT / "build" / "mutation.md"
MEMORY = ROOT / "mutants"
VERDICTS = MEMORY / "verdicts.json"
SEED = 1


class Case(NamedTuple):
    """A mutant and where it belongs."""

    path: Path
    mutant: Mutant

    @property
    def file(self) -> str:
        """Its file as `core/apply.py`."""
        return self.path.relative_to(SERVICES / "ledgermq").as_posix()

    @property
    def key(self) -> str:
        """The same for the same change of the same source."""
        return hashlib.sha256(f"{self.file}\n{self.mutant.source}".encode()).hexdigest()

    def verdict(self, outcome: str) -> Verdict:
        """With what became of it."""
        line, before, after, _ = self.mutant
        return Verdict(self.file, line, before, after, outcome)


class Trials:
    """Tries mutants of a package, several at a time, until all are done or time is up."""

    def __init__(self, package: Package, jobs: int, deadline: float) -> None:
        self.package = package
        self.jobs = jobs
        self.deadline = deadline
        self.baseline: Baseline = baseline_of(package, MEMORY)
        self.outcomes: dict[str, str] = {}
        self._running: dict[int, Case] = {}

    def run(self, cases: list[Case]) -> None:
        """Tries them in order."""
        for case in cases:
            if time.monotonic() > self.deadline:
                break
            names = self.baseline.tests_of(case.path, case.mutant.line)
            if not names:
                self._settle(case, "unexecuted")
                continue
            while len(self._running) >= self.jobs:
                self._wait()
            tests = {name: self.baseline.seconds[name] for name in names}
            pid = start(self.package, case.path, case.mutant.source, tests)
            self._running[pid] = case
        while self._running:
            self._wait()

    def _wait(self) -> None:
        pid, status = os.wait()
        self._settle(self._running.pop(pid), outcome_of(status))

    def _settle(self, case: Case, outcome: str) -> None:
        self.outcomes[case.key] = outcome
        verdict = case.verdict(outcome)
        if verdict.alive:
            print(f"  {outcome}: {case.file}:{verdict.line} {name_of(verdict)}", flush=True)

    def check_sound(self) -> None:
        """Tries no mutant at all: tests that began to fail would have killed whatever ran."""
        path = self.package.sources()[0]
        source = path.read_text(encoding="utf-8")
        pid = start(self.package, path, source, self.baseline.seconds)
        if outcome_of(os.waitpid(pid, 0)[1]) != "survived":
            sys.exit(f"the tests of {self.package.name} fail without any mutant: no verdict counts")


def cases_of(package: Package) -> list[Case]:
    """All mutants of a package."""
    found: list[Case] = []
    for path in package.sources():
        text = path.read_text(encoding="utf-8")
        with_asserts = path.name.endswith("invariants.py")
        found += [Case(path, one) for one in mutants(text, with_asserts=with_asserts)]
    return found


def wanted(cases: list[Case], asked: argparse.Namespace) -> list[Case]:
    """Those of the files named, then a sample of them if one is asked for."""
    if asked.files:
        cases = [one for one in cases if {one.file, one.path.name} & set(asked.files)]
    if asked.sample and asked.sample < len(cases):
        places = random.Random(asked.seed).sample(range(len(cases)), asked.sample)
        cases = [cases[place] for place in sorted(places)]
    if asked.minutes:
        # So that what there was time for is a sample of all.
        random.Random(asked.seed).shuffle(cases)
    return cases


def remembered() -> dict[str, Any]:
    """Outcomes of earlier runs, by package and mutant."""
    return json.loads(VERDICTS.read_text(encoding="utf-8")) if VERDICTS.exists() else {}


def try_package(package: Package, asked: argparse.Namespace, deadline: float) -> str:
    """Tries the mutants of a package that were not killed before; its part of the summary."""
    memory = remembered()
    known: dict[str, str] = memory.setdefault(package.name, {})
    cases = cases_of(package)
    chosen = wanted(cases, asked)
    if asked.fresh:
        for case in chosen:
            known.pop(case.key, None)
    open_ = [one for one in chosen if known.get(one.key, "survived") in ("survived", "unexecuted")]
    # What survived before, perhaps with a test for it by now, comes before what was never tried.
    open_.sort(key=lambda one: one.key not in known)
    print(f"{package.name}: {len(open_)} of {len(cases)} mutants to try", flush=True)
    trials = Trials(package, asked.jobs, deadline)
    trials.run(open_)
    trials.check_sound()
    known |= trials.outcomes
    VERDICTS.write_text(json.dumps(memory), encoding="utf-8")
    verdicts = [one.verdict(known.get(one.key, "untried")) for one in cases]
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    how = f"{today}, a sample with seed {asked.seed}" if asked.sample else today
    return part(package.name, verdicts, how, reasons_in(EQUIVALENT))


def main() -> None:
    """Runs the mutants asked for, and writes the summary."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("files", nargs="*", help="files such as apply.py; all else")
    parser.add_argument("--package", action="append", choices=list(PACKAGES), help="all without")
    parser.add_argument("--sample", type=int, help="so many mutants of a package, at random")
    parser.add_argument("--seed", type=int, default=SEED, help="which sample that is")
    parser.add_argument("--minutes", type=float, help="start no mutant after so long")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    parser.add_argument("--fresh", action="store_true", help="run again what was killed before")
    asked = parser.parse_args()
    deadline = time.monotonic() + 60 * asked.minutes if asked.minutes else float("inf")
    parts = {
        name: try_package(PACKAGES[name], asked, deadline) for name in asked.package or PACKAGES
    }
    before = REPORT.read_text(encoding="utf-8") if REPORT.exists() else ""
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(written(before, parts, PACKAGES), encoding="utf-8")
    print(f"summary in {REPORT.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
