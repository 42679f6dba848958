"""Mutation testing of the core: `make mutants` breaks the fold in every small way, one at a time.

Each mutant gets a forked process that imports the mutated module in place of the real one and
runs the core's tests until the first failure. A mutant that all tests pass has survived. The
summary goes to docs/mutation.md; survivors that can make no difference have their reason in
`equivalent.txt` (file, line's text before => after, reason).
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import importlib.abc
import importlib.machinery
import json
import os
import resource
import signal
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import fastavro  # noqa: F401  (imported once, before the forks)
import hypothesis.stateful  # noqa: F401
import pytest

ROOT = Path(__file__).parents[2]
CORE = ROOT / "services" / "ledgermq" / "core"
TESTS = ROOT / "tests"
EQUIVALENT = Path(__file__).with_name("equivalent.txt")
REPORT = ROOT / "docs" / "mutation.md"
MEMORY = ROOT / "mutants" / "verdicts.json"
# Of processor time, so that a busy machine makes no mutant look endless; memory for the same end.
TIMEOUT_SECONDS = 60
MEMORY_BYTES = 3 * 1024**3
sys.path.insert(0, str(TESTS))

from mutation.mutators import Mutant, mutants  # noqa: E402

# Quick and telling tests first. Tests that plant faults themselves prove nothing here.
ARGUMENTS = [
    *("-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:faulthandler"),
    *("-k", "not planted and not rule_coverage and not hash_seed and not as_the_script_says"),
    *(str(TESTS / "core"), str(TESTS / "golden" / "test_golden_logs.py")),
]


class Verdict(NamedTuple):
    """What became of a mutant: `killed`, `survived` or `timeout` (which counts as killed)."""

    path: Path
    mutant: Mutant
    outcome: str


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads one module from the mutated text."""

    def __init__(self, name: str, path: Path, source: str) -> None:
        self.name, self.path, self.source = name, path, source

    def find_spec(self, fullname, path, target=None):
        """Answers for the mutated module only."""
        if fullname != self.name:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, origin=str(self.path))

    def exec_module(self, module: ModuleType) -> None:
        """Runs the mutated text as the module."""
        exec(compile(self.source, str(self.path), "exec"), module.__dict__)


def _child(path: Path, source: str) -> None:
    """Runs the tests on one mutant; never returns."""
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    resource.setrlimit(resource.RLIMIT_CPU, (TIMEOUT_SECONDS, TIMEOUT_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    os.environ["LEDGERMQ_EXAMPLES_DIVISOR"] = "4"
    sys.meta_path.insert(0, _Finder(f"ledgermq.core.{path.stem}", path, source))
    sys.dont_write_bytecode = True
    code = 1
    try:
        _play_scripts()
        code = int(pytest.main(ARGUMENTS))
    finally:
        os._exit(code)


def _play_scripts() -> None:
    """The scripts without pytest around them: they end most mutants within a moment."""
    from support.play import play
    from support.script import scripts_of

    for script in scripts_of(TESTS / "core" / "scripts"):
        play(script)


def _start(path: Path, source: str) -> int:
    pid = os.fork()
    if pid == 0:
        _child(path, source)
    return pid


def _outcome(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return "timeout"
    return "survived" if code == 0 else "killed"


def _run(path: Path, found: list[Mutant], jobs: int) -> list[Verdict]:
    """The verdicts on the mutants of one file."""
    waiting = list(reversed(found))
    running: dict[int, Mutant] = {}
    verdicts: list[Verdict] = []
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop()
            running[_start(path, mutant.source)] = mutant
        pid, status = os.wait()
        verdicts.append(Verdict(path, running.pop(pid), _outcome(status)))
    return verdicts


def _key(path: Path, mutant: Mutant) -> str:
    return hashlib.sha256(f"{path.name}\n{mutant.source}".encode()).hexdigest()


def _remembered() -> dict[str, str]:
    """Outcomes of earlier runs by mutant; survivors are always tried again."""
    return json.loads(MEMORY.read_text(encoding="utf-8")) if MEMORY.exists() else {}


def _try_file(path: Path, known: dict[str, str], jobs: int, *, again: bool) -> list[Verdict]:
    """The verdicts on one file; unless `again`, what was killed before is not run again."""
    text = path.read_text(encoding="utf-8")
    found = list(mutants(text, with_asserts=path.name == "invariants.py"))
    before = {} if again else known
    dead = [one for one in found if before.get(_key(path, one), "survived") != "survived"]
    verdicts = [Verdict(path, one, known[_key(path, one)]) for one in dead]
    verdicts += _run(path, [one for one in found if one not in dead], jobs)
    known |= {_key(path, one.mutant): one.outcome for one in verdicts}
    MEMORY.parent.mkdir(exist_ok=True)
    MEMORY.write_text(json.dumps(known), encoding="utf-8")
    return sorted(verdicts, key=lambda one: one.mutant.line)


def _equivalent() -> dict[str, str]:
    """Reasons of survivors that make no difference, by file and change."""
    reasons: dict[str, str] = {}
    for line in EQUIVALENT.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            change, _, reason = line.rpartition(" | ")
            reasons[change] = reason
    return reasons


def _name(verdict: Verdict) -> str:
    return f"{verdict.path.name}: {verdict.mutant.before} => {verdict.mutant.after}"


def report(verdicts: list[Verdict]) -> str:
    """The summary in Markdown."""
    reasons = _equivalent()
    count = Counter(one.outcome for one in verdicts)
    killed = count["killed"] + count["timeout"]
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    lines = [
        "# Mutation testing of the core",
        "",
        "Written by `make mutants`; see `tests/mutation/`. Each mutant is `services/ledgermq/core`",
        "with one small thing wrong; a failing test of `tests/core` or of a golden log kills it.",
        "",
        f"{today}: {len(verdicts)} mutants, {killed} killed ({killed / len(verdicts):.1%};",
        f"{count['timeout']} of them ran without end), {count['survived']} survived.",
        "",
        "| file | mutants | killed | survived |",
        "|---|---|---|---|",
    ]
    for path in sorted({one.path for one in verdicts}):
        mine = Counter(one.outcome for one in verdicts if one.path == path)
        alive = mine["survived"]
        lines.append(f"| {path.name} | {mine.total()} | {mine.total() - alive} | {alive} |")
    lines += ["", "## Survivors", "", "| where | before | after | reason |", "|---|---|---|---|"]
    for one in verdicts:
        if one.outcome == "survived":
            before, after = (text.replace("|", "\\|") for text in one.mutant[1:3])
            reason = reasons.get(_name(one), "**not explained**")
            place = f"{one.path.name}:{one.mutant.line}"
            lines.append(f"| {place} | `{before}` | `{after}` | {reason} |")
    return "\n".join(lines) + "\n"


def _check_sound() -> None:
    path = CORE / "turn.py"
    (sound,) = _run(path, [Mutant(0, "", "", path.read_text(encoding="utf-8"))], 1)
    if sound.outcome != "survived":
        sys.exit("the tests fail without any mutant: run `pytest tests/core` first")


def main() -> None:
    """Runs all mutants, or those of the files named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", help="files of the core, such as apply.py; all without")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    parser.add_argument("--fresh", action="store_true", help="run again what was killed before")
    asked = parser.parse_args()
    paths = [CORE / name for name in asked.files] or sorted(CORE.glob("*.py"))
    known = _remembered()
    _check_sound()
    verdicts: list[Verdict] = []
    for path in paths:
        mine = _try_file(path, known, asked.jobs, again=asked.fresh)
        verdicts += mine
        alive = [one for one in mine if one.outcome == "survived"]
        print(f"{path.name}: {len(mine)} mutants, {len(alive)} survived", flush=True)
        for one in alive:
            print(f"  {one.mutant.line}: {one.mutant.before} => {one.mutant.after}", flush=True)
    try:
        # Tests that began to fail meanwhile would have killed whatever ran since.
        _check_sound()
    except SystemExit:
        MEMORY.unlink(missing_ok=True)
        raise
    if not asked.files:
        REPORT.write_text(report(verdicts), encoding="utf-8")
        print(f"summary in {REPORT.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
