"""Which tests execute which lines: one run of all tests under coverage, a context for each test.

Kept in `mutants/`, and made again when a source or a test has changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import coverage
import pytest

from mutation.packages import ROOT, SERVICES, TESTS, Package, scopes
from mutation.trial import arguments

SCRIPT = "script: "


class Baseline(NamedTuple):
    """What a run without any mutant found.

    Attributes:
        seconds: For each test, the quickest first, how long it took.
        lines: For each file and line the tests that execute it.
    """

    seconds: dict[str, float]
    lines: dict[str, dict[int, list[str]]]

    def tests_of(self, path: Path, line: int) -> list[str]:
        """The tests that execute a line, quickest first; all tests if it runs at import."""
        scope = scopes(path.read_text(encoding="utf-8")).get(line)
        if scope is None:
            return list(self.seconds)
        by_line = self.lines.get(str(path.relative_to(ROOT)), {})
        wanted = {test for one in scope for test in by_line.get(one, ())}
        return [test for test in self.seconds if test in wanted]


class _Contexts:
    """A pytest plugin that tells coverage which test is running, and takes the time."""

    def __init__(self, measured: coverage.Coverage) -> None:
        self.measured = measured
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        """Around each test: setup, call and teardown, in whatever thread."""
        self.measured.switch_context(item.nodeid)
        started = time.monotonic()
        done = yield
        self.seconds[item.nodeid] = round(time.monotonic() - started, 3)
        return done

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leaves out what needs a broker."""
        items[:] = [one for one in items if "broker" not in getattr(one, "fixturenames", ())]


def _measure(package: Package, target: Path) -> int:
    """Runs the tests of a package and writes what they executed; in a process of its own."""
    measured = coverage.Coverage(
        data_file=None, config_file=False, source=[str(package.directory)], messages=False
    )
    contexts = _Contexts(measured)
    os.environ["LEDGERMQ_EXAMPLES_DIVISOR"] = "4"
    measured.start()
    if package.scripts is not None:
        from support.scripts.play import play
        from support.scripts.script import scripts_of

        for script in scripts_of(package.scripts):
            measured.switch_context(SCRIPT + script.title)
            started = time.monotonic()
            play(script)
            contexts.seconds[SCRIPT + script.title] = round(time.monotonic() - started, 3)
    code = int(pytest.main([*arguments(package), *map(str, package.tests)], plugins=[contexts]))
    measured.stop()
    if code:
        return code
    data = measured.get_data()
    lines = {
        str(Path(name).relative_to(ROOT)): {
            line: [test for test in tests if test]
            for line, tests in data.contexts_by_lineno(name).items()
        }
        for name in sorted(data.measured_files())
    }
    order = sorted(contexts.seconds.items(), key=lambda one: (not _script(one[0]), one[1]))
    target.write_text(json.dumps({"seconds": dict(order), "lines": lines}), encoding="utf-8")
    return 0


def _script(test: str) -> bool:
    return test.startswith(SCRIPT)


def _digest() -> str:
    """Of every source and test, but for what tries the mutants."""
    found = hashlib.sha256()
    for root in (SERVICES, TESTS):
        for path in sorted(one for one in root.rglob("*") if one.suffix in (".py", ".txt")):
            if path.parent != Path(__file__).parent:
                found.update(path.read_bytes())
    return found.hexdigest()[:16]


def baseline_of(package: Package, memory: Path) -> Baseline:
    """The baseline of a package; ends the program if its tests fail without any mutant."""
    kept = memory / f"baseline-{package.name}-{_digest()}.json"
    if not kept.exists():
        memory.mkdir(exist_ok=True)
        pid = os.fork()
        if pid == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            code = 1
            try:
                code = _measure(package, kept)
            finally:
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        if os.waitstatus_to_exitcode(status):
            sys.exit(f"the tests of {package.name} fail without any mutant: run them first")
    read = json.loads(kept.read_text(encoding="utf-8"))
    lines = {
        name: {int(line): tests for line, tests in by_line.items()}
        for name, by_line in read["lines"].items()
    }
    return Baseline(read["seconds"], lines)
