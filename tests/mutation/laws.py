"""Mutants before the laws: `make law-mutants` tells how many of them the audit finds by itself.

A mutant of the fold folds the histories of all generators in a process of its own; worker and
rebuild would run that same fold, so nothing but the laws stands against what it tells. Those that
tell nothing otherwise, or do not go on, are no matter for laws. What the right fold makes of all
those histories is judged with them and must be lawful. The summary goes to build/law-mutants.md.
"""

from __future__ import annotations

import argparse
import os
import pickle
import resource
import shutil
import signal
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from mutation.packages import PACKAGES, ROOT
from mutation.report import name_of, reasons_in
from mutation.run import EQUIVALENT, MEMORY, SEED, Case, cases_of, remembered, wanted
from mutation.trial import MEMORY_BYTES, install

REPORT = ROOT / "build" / "law-mutants.md"
PLACE = MEMORY / "laws"
# Rounds of each family of histories; a round has up to 25.
ROUNDS = 3
RANDOM_LOGS, RANDOM_STEPS = 30, 120
LOG_SECONDS_MAX = 5
# Of the histories that a mutant tells otherwise, so many are judged.
JUDGED_MAX = 4
STOPPED = (AssertionError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)

Rows = dict[str, list[tuple[Any, ...]]]


class Told(NamedTuple):
    """What a mutant tells otherwise: rows by the number of the history; and how often it fails."""

    rows: dict[int, Rows]
    stops: int


class EndlessError(Exception):
    """A fold does not come to an end."""


def histories() -> Iterator[list[Any]]:
    """The histories of all generators, the same in every run."""
    import random

    from support.brokers.log_writer import Script
    from support.planted.all_faults import FAMILIES
    from support.planted.trial import log_of
    from support.random_logs.random_log import RandomLog

    for family in FAMILIES:
        for number in range(ROUNDS):
            for history in family.histories(number):
                yield log_of(history)
    kinds = ("topics", "ends", "groups", "moves", "redelivery", "quotas", "clock")
    for number in range(RANDOM_LOGS):
        script = Script(random=random.Random(number))
        chosen = {kind: number >> at & 1 == 1 for at, kind in enumerate(kinds)}
        RandomLog(script, **chosen).grow(RANDOM_STEPS)
        yield script.entries


def rows_of(log: list[Any]) -> Rows:
    """What a fold tells of a history, as the frames that laws are asked of."""
    from support.audits.testimonies import folded_stretches

    _, _, (logs,) = folded_stretches("", log, [len(log) - 1])
    return logs.rows


def write_right() -> None:
    """Folds all histories with the fold as it is."""
    logs = list(histories())
    _write("right", [(log, rows_of(log)) for log in logs])


def write_told(name: str) -> None:
    """Folds all histories with the fold that is imported, a mutant."""

    def ring(_number: int, _frame: object) -> None:
        raise EndlessError

    signal.signal(signal.SIGPROF, ring)
    found: dict[int, Rows] = {}
    stops = 0
    for number, (log, right) in enumerate(_read("right")):
        signal.setitimer(signal.ITIMER_PROF, LOG_SECONDS_MAX)
        try:
            rows = rows_of(log)
        except (*STOPPED, EndlessError, MemoryError, RecursionError):
            stops += 1
            continue
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        if rows != right:
            found[number] = rows
        if len(found) == JUDGED_MAX:
            break
    _write(name, Told(found, stops))


def _write(name: str, found: Any) -> None:
    (PLACE / name).write_bytes(pickle.dumps(found))


def _read(name: str) -> Any:
    return pickle.loads((PLACE / name).read_bytes())


def forked(work: Callable[[], None]) -> int:
    """Starts a process that does some work, silently and within bounds; its number."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1)
            os.dup2(silent, 2)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            work()
            code = 0
        finally:
            os._exit(code)
    return pid


def fold_all(cases: list[Case], jobs: int) -> None:
    """Lets each mutant tell of the histories; what cannot even be imported leaves no file."""

    def work(number: int, case: Case) -> None:
        install(case.path, case.mutant.source)
        write_told(str(number))

    os.waitpid(forked(write_right), 0)
    running = 0
    for number, case in enumerate(cases):
        if running == jobs:
            os.wait()
            running -= 1
        forked(lambda number=number, case=case: work(number, case))  # type: ignore[misc]
        running += 1
    for _ in range(running):
        os.wait()


def judged() -> tuple[dict[str, set[str]], int]:
    """Letters of the laws that each log breaks, and how many logs are of the right fold."""
    from ledgermq_spark.laws.all_laws import LAWS
    from support.audits.engines import duck_engine
    from support.audits.testimonies import Logs

    logs = Logs()

    def add(name: str, rows: Rows) -> None:
        for kind, told in rows.items():
            logs.rows[kind] += [(name, *row[1:]) for row in told]

    right = _read("right")
    for number, (_, rows) in enumerate(right):
        add(f"right {number}", rows)
    for path in PLACE.iterdir():
        if path.name != "right":
            for number, rows in _read(path.name).rows.items():
                add(f"{path.name} {number}", rows)
    letters: dict[str, set[str]] = defaultdict(set)
    for row in logs.facts(duck_engine()).judge(LAWS, most=10_000_000):
        letters[row["queue_manager"]].add(row["law"])
    return letters, len(right)


def verdicts(cases: list[Case], letters: dict[str, set[str]]) -> Iterator[tuple[str, Case, str]]:
    """What became of each mutant, and by which laws."""
    for number, case in enumerate(cases):
        if not (PLACE / str(number)).exists():
            yield "stopped", case, ""
            continue
        told: Told = _read(str(number))
        laws = sorted(set().union(*(letters[f"{number} {at}"] for at in told.rows)))
        if laws:
            yield "found", case, ", ".join(laws)
        elif told.rows:
            frames = Counter(
                kind
                for at, rows in told.rows.items()
                for kind in rows
                if rows[kind] != _right()[at][1][kind]
            )
            yield "not found", case, ", ".join(sorted(frames))
        else:
            yield "stopped" if told.stops else "told nothing otherwise", case, ""


def _right(read: list[Any] = []) -> list[Any]:  # noqa: B006 (read once)
    if not read:
        read.extend(_read("right"))
    return read


def summary(cases: list[Case], letters: dict[str, set[str]], clean: int, how: str) -> str:
    """The page: the share that the laws find, and each mutant that they do not."""
    told = list(verdicts(cases, letters))
    counts = Counter(what for what, _, _ in told)
    wrong = counts["found"] + counts["not found"]
    share = f"{100 * counts['found'] / wrong:.1f} %" if wrong else "none to find"
    unlawful = sorted(name for name in letters if name.startswith("right"))
    known = remembered().get("core", {})
    tested = Counter(
        known[case.key] != "survived"
        for what, case, _ in told
        if what in ("found", "not found") and case.key in known
    )
    reasons = reasons_in(EQUIVALENT)
    by_law = Counter(law for what, _, laws in told if what == "found" for law in laws.split(", "))
    unlawful_told = f": {', '.join(unlawful)}" if unlawful else ""
    laws_told = ", ".join(f"{law} {count}" for law, count in sorted(by_law.items()))
    lines = f"""\
# Mutants before the laws

Written by `make law-mutants`: {how}.

- Histories of the right fold: {clean}. Laws find fault with {len(unlawful)}{unlawful_told}.
- Mutants of the fold: {len(cases)}. {counts["stopped"]} stop it;
  {counts["told nothing otherwise"]} tell all of these histories as it does.
- The other {wrong} tell some otherwise: laws find {counts["found"]} ({share}).
- Tests of the fold were run on {tested.total()} of these, and kill {tested[True]}.
- By law: {laws_told}.

## Not found

What they change, and where it shows.
""".splitlines()
    lines.append("")
    for what, case, frames in told:
        if what == "not found":
            verdict = case.verdict(what)
            reason = reasons.get(name_of(verdict), "")
            lines.append(
                f"- `{name_of(verdict)}` (line {verdict.line}; {frames}) {reason}".rstrip()
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Tries a sample of the fold's mutants, and writes the summary."""
    parser = argparse.ArgumentParser(prog="make law-mutants", description=__doc__)
    parser.add_argument("files", nargs="*", help="files such as apply.py; all else")
    parser.add_argument("--sample", type=int, default=300, help="so many mutants, at random")
    parser.add_argument("--seed", type=int, default=SEED, help="which sample that is")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    asked = parser.parse_args()
    asked.minutes = None
    cases = wanted(cases_of(PACKAGES["core"]), asked)
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    fold_all(cases, asked.jobs)
    letters, clean = judged()
    REPORT.parent.mkdir(exist_ok=True)
    page = summary(cases, letters, clean, f"{len(cases)} mutants, seed {asked.seed}")
    REPORT.write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
