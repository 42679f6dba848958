"""One mutant on trial: a forked process that has the mutated module in place of the real one."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mutation.packages import ROOT, SERVICES, Package

MEMORY_BYTES = 8 * 1024**3
# A test may take so much longer than without a mutant before the mutant counts as endless: of
# processor time, or on the clock on the wall where tests wait.
PATIENCE_SECONDS = 8
PATIENCE_TIMES = 15
SCRIPT = "script: "


def arguments(package: Package) -> list[str]:
    """What pytest is told, but for the tests."""
    quiet = ("-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:faulthandler")
    return [*quiet, f"--rootdir={ROOT}", "-k", package.left_out]


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


class _Chosen:
    """A pytest plugin that runs the tests chosen, quickest first, each within its time."""

    def __init__(self, tests: dict[str, float], *, waits: bool) -> None:
        self.tests = tests
        self.waits = waits

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leaves out all others."""
        place = {test: at for at, test in enumerate(self.tests)}
        items[:] = sorted(
            (one for one in items if one.nodeid in place), key=lambda one: place[one.nodeid]
        )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        """Around each test."""
        _limit(self.tests[item.nodeid], waits=self.waits)
        return (yield)


def _limit(seconds: float, *, waits: bool) -> None:
    """Ends this process unless the next test is done in time; the signal is not caught."""
    allowed = PATIENCE_SECONDS + PATIENCE_TIMES * seconds
    signal.setitimer(signal.ITIMER_REAL if waits else signal.ITIMER_PROF, allowed)


def install(path: Path, source: str) -> None:
    """Has this process import a mutant of a module in its place."""
    name = ".".join(path.relative_to(SERVICES).with_suffix("").parts)
    sys.meta_path.insert(0, _Finder(name, path, source))
    sys.dont_write_bytecode = True


def _child(package: Package, path: Path, source: str, tests: dict[str, float]) -> int:
    """Runs the chosen tests on one mutant; 0 if they pass."""
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    os.environ["LEDGERMQ_EXAMPLES_DIVISOR"] = "4"
    install(path, source)
    scripts = {one.removeprefix(SCRIPT) for one in tests if one.startswith(SCRIPT)}
    _limit(2.0, waits=package.waits)
    if scripts and package.scripts is not None:
        from support.scripts.play import play
        from support.scripts.script import scripts_of

        for script in scripts_of(package.scripts):
            if script.title in scripts:
                _limit(tests[SCRIPT + script.title], waits=package.waits)
                play(script)
    rest = {one: seconds for one, seconds in tests.items() if not one.startswith(SCRIPT)}
    if not rest:
        return 0
    # Collection imports the tests; a mutant may make that endless too.
    _limit(2.0, waits=package.waits)
    files = sorted({str(ROOT / one.partition("::")[0]) for one in rest})
    chosen = _Chosen(rest, waits=package.waits)
    return int(pytest.main([*arguments(package), *files], plugins=[chosen]))


def start(package: Package, path: Path, source: str, tests: dict[str, float]) -> int:
    """Puts a mutant on trial; its process."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = _child(package, path, source, tests)
        finally:
            os._exit(code)
    return pid


def outcome_of(status: int) -> str:
    """What the end of its process says about a mutant."""
    code = os.waitstatus_to_exitcode(status)
    if code in (-signal.SIGALRM, -signal.SIGPROF, -signal.SIGKILL):
        return "timeout"
    return "survived" if code == 0 else "killed"
