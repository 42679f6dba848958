"""Runs the tests as five pytest processes side by side, each test in one of them: `make test`.

Waiting for a broker and computing share a machine well, so three processes begin with what needs a
broker, from either end and from the middle, one with what needs Spark, and one with the rest, which
fills the time in which the others wait. Each takes whole files that nobody has begun, until none is
left, and few files need to be told where they belong. Only the second one begins with Spark, the
first one comes to it last, and the others have no session of it.

They are forked from one that has collected all tests, which takes as long as many of them. Run as a
module this is the parent, which starts that one with the arguments given, prefixes the lines of all
and ends as the worst of them. It also starts the broker that they share, once one of them asks for
it: the more Java a machine compiles, the less it tests. Files that ask for a schema registry are
taken as one, so that it is started once. Loaded by pytest as a plugin it is what the others do.

A process that dies, or hangs so that no time limit of a test ends it, costs only itself: it says
where it stood, the others take what is left, and `pytest --last-failed` runs what it had taken.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TextIO
from unittest.mock import patch

import pytest

from ledgermq.embedded import EmbeddedBroker
from ledgermq.embedded.java import QUICK_START
from ledgermq.embedded.settings import SERVER_SETTINGS
from ledgermq.garbage import SELDOM

ROOT = Path(__file__).parents[2]
# Number of a process and the directory of what all have begun, as `NUMBER:DIRECTORY`; where all are
# collected, in place of the number where each of the others is to write what it says.
SIDE_VARIABLE = "LEDGERMQ_TEST_SIDE"
BYTECODE_VARIABLE = "PYTHONDONTWRITEBYTECODE"
# What a test starts of Java, itself or through commands, is over before compiling well would pay.
JAVA_OPTIONS = {"JDK_JAVA_OPTIONS": QUICK_START}
# Three quarters of a minute or more, with a broker: begun late, all others wait for one of them in
# the end.
LONGEST = {
    ROOT / "tests" / name
    for name in (
        "cli/options/test_quiet_spark.py",
        "client/link/test_networks.py",
        "client/test_group_examples.py",
        "faults/test_fail_over.py",
        "processor/checkpoints/test_cut_ledger.py",
        "processor/lanes/test_damaged_log.py",
        "processor/owner/test_stopped_queue_managers.py",
        "processor/owner/test_time.py",
        "processor/worker/test_broker_faults.py",
        "processor/worker/test_rebalance.py",
        "processor/worker/test_supervisor.py",
        "processor/worker/test_take_over.py",
        "relay/test_bridge_in.py",
        "relay/test_relay.py",
        "relay/test_told_to_stop.py",
        "security/test_no_effect_without_right.py",
        "security/test_rights_are_needed.py",
        "security/test_secured_life.py",
    )
}
# Spark runs in processes of their own: any takes them, as what shares a session takes longest.
SPARK_ELSEWHERE = {
    ROOT / "tests" / name
    for name in (
        "cli/options/test_quiet_spark.py",
        "cli/options/test_spark_interrupted.py",
        "infra/test_installation.py",
    )
}
# The logs that laws find nothing in: who has Spark asks for them, and to make them takes as long as
# to judge them.
LAWFUL_LOGS = "scripts"
OF_BROKERS, OF_SPARK, OF_THE_REST, OF_LAST_BROKERS, OF_MIDDLE_BROKERS = SIDES = (1, 2, 3, 4, 5)
# In the directory of what all have begun: made by who wants the broker, and by who started it.
WANTED, ADDRESS = "broker-wanted", "broker-address"
# In the same: how each of them ended, and what each one did, a line per step.
CODES, STEPS = "codes.json", "steps-{number}"
TAKES, PASSED, TOOK_ALL = "takes", "passed", "took all that was left"
# What is left where a test hangs: where a process says what it was doing, past all capturing.
LAST_WORDS = pytest.StashKey[int]()
# After the time limit of a test, or as long again: enough to tear down what it started.
TEAR_DOWN_SECONDS = 120.0
LOOK_SECONDS = 0.1
# A burst of work once kept its heartbeats back for so long that all partitions lost their leaders,
# and tests of all processes failed at once. Nobody waits for the end of its session.
PATIENT = {"broker.session.timeout.ms": "60000"}
BROKER_SECONDS = 120.0
PR_SET_PDEATHSIG = 1
BROKEN_OFF = (
    pytest.ExitCode.INTERRUPTED,
    pytest.ExitCode.INTERNAL_ERROR,
    pytest.ExitCode.USAGE_ERROR,
)


def main(arguments: list[str]) -> int:
    """Runs all; the exit code of pytest."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ledgermq-tests-") as directory:
        process, outputs = _start(Path(directory), arguments)
        signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        threads = [
            threading.Thread(target=_print_lines, args=(number, output))
            for number, output in outputs.items()
        ]
        for thread in threads:
            thread.start()
        with ExitStack() as broker:
            try:
                _wait_for(process, Path(directory), broker)
            except KeyboardInterrupt:
                # The terminal interrupted them as well; they tear down what they started.
                process.wait()
        for thread in threads:
            thread.join()
        codes = [process.returncode]
        if (Path(directory) / CODES).exists():
            codes = json.loads((Path(directory) / CODES).read_text(encoding="utf-8"))
        _remember_failures(Path(directory), codes)
    minutes, seconds = divmod(round(time.monotonic() - began), 60)
    ran = [code for code in codes if code != pytest.ExitCode.NO_TESTS_COLLECTED]
    code = max((abs(one) for one in ran), default=int(pytest.ExitCode.NO_TESTS_COLLECTED))
    print(f"all: {'passed' if code == 0 else 'not passed'}, {minutes} min {seconds} s", flush=True)
    return code


def _start(
    directory: Path, arguments: list[str]
) -> tuple[subprocess.Popen[str], dict[int, TextIO]]:
    """The process that collects and forks, and what it (0) and each of the others say."""
    pipes = {number: os.pipe() for number in SIDES}
    writing = {number: end for number, (_, end) in pipes.items()}
    command = [sys.executable, "-u", "-m", "pytest", "-p", "support.side_by_side"]
    command += ["-p", "no:cacheprovider", *arguments]
    path = [str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]
    # Kept bytecode: else every process that they start compiles all of us.
    environment = {name: os.environ[name] for name in os.environ if name != BYTECODE_VARIABLE}
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment
        | JAVA_OPTIONS
        | {
            "PYTHONPATH": os.pathsep.join(path),
            SIDE_VARIABLE: f"{json.dumps(writing)}:{directory}",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=list(writing.values()),
        text=True,
        errors="replace",
    )
    for end in writing.values():
        os.close(end)
    assert process.stdout is not None
    said = {number: os.fdopen(end, errors="replace") for number, (end, _) in pipes.items()}
    return process, {0: process.stdout, **said}


def _wait_for(process: subprocess.Popen[str], directory: Path, running: ExitStack) -> None:
    """Waits for all; starts the broker that they share once one of them wants it."""
    while process.poll() is None:
        if (directory / WANTED).exists() and not (directory / ADDRESS).exists():
            # Others than this one live briefly: here the optimising compiler pays.
            with patch.dict(SERVER_SETTINGS, PATIENT):
                broker = running.enter_context(EmbeddedBroker(directory / "broker"))
            told = directory / "broker-address-begun"
            told.write_text(f"{broker.bootstrap} {broker.pid}", encoding="utf-8")
            told.rename(directory / ADDRESS)
        time.sleep(LOOK_SECONDS)


def _print_lines(number: int, output: TextIO) -> None:
    with output:
        for line in output:
            sys.stdout.write(f"{number} | {line}")
            sys.stdout.flush()


def _remember_failures(directory: Path, codes: list[int]) -> None:
    """Lets `pytest --last-failed` run what was taken and did not pass; nothing if not all was."""
    steps = [line for found in directory.glob(STEPS.format(number="*")) for line in _lines(found)]
    taken, passed = (
        {test for step, _, test in (line.partition(" ") for line in steps) if step == wanted}
        for wanted in (TAKES, PASSED)
    )
    cache = Path(".pytest_cache/v/cache")
    shutil.rmtree(cache, ignore_errors=True)
    if taken - passed and TOOK_ALL in steps and not set(codes) & set(BROKEN_OFF):
        cache.mkdir(parents=True)
        failures = json.dumps(dict.fromkeys(sorted(taken - passed), True), indent=2)
        (cache / "lastfailed").write_text(failures, encoding="utf-8")


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")


# -- in each of them -------------------------------------------------------------------------------


def shared_broker() -> tuple[str, int] | None:
    """Address and process of the broker that all share; None in a process that runs alone."""
    _, _, named = os.environ.get(SIDE_VARIABLE, "").partition(":")
    if not named:
        return None
    (Path(named) / WANTED).touch()
    limit = time.monotonic() + BROKER_SECONDS
    while not (Path(named) / ADDRESS).exists():
        assert time.monotonic() < limit, "the broker that all share did not start"
        time.sleep(LOOK_SECONDS)
    bootstrap, pid = (Path(named) / ADDRESS).read_text(encoding="utf-8").split()
    return bootstrap, int(pid)


def pytest_configure(config: pytest.Config) -> None:
    """A process does not outlive the one that started all, and seldom looks for cycles."""
    _die_with_parent()
    # As workers have it: folds are most of what is computed here.
    gc.set_threshold(*SELDOM)


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Runs the files that this process takes, until none is left."""
    if session.testsfailed and not session.config.option.continue_on_collection_errors:
        raise session.Interrupted(f"{session.testsfailed} errors during collection")
    if session.config.option.collectonly:
        return True
    # What was collected stays to the end: looking through it for cycles, over and over, took as
    # long as some of the tests.
    gc.collect()
    gc.freeze()
    writing, _, directory = os.environ[SIDE_VARIABLE].rpartition(":")
    number = _forked(session.config, json.loads(writing), Path(directory))
    os.environ[SIDE_VARIABLE] = f"{number}:{directory}"
    steps = Path(directory) / STEPS.format(number=number)
    with steps.open("a", encoding="utf-8", buffering=1) as said:
        _run(session, _taken(session.items, number, Path(directory)), said)
    return True


def _run(session: pytest.Session, items: Iterator[pytest.Item], said: TextIO) -> None:
    item = next(items, None)
    while item is not None:
        # What an item leaves open is closed as far as the next one does not need it.
        following = next(items, None)
        failed_before = session.testsfailed
        _limit(item)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        faulthandler.cancel_dump_traceback_later()
        if session.testsfailed == failed_before:
            said.write(f"{PASSED} {item.nodeid}\n")
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        item = following
    said.write(f"{TOOK_ALL}\n")


@pytest.hookimpl(trylast=True)
def pytest_exception_interact(node: pytest.Item | pytest.Collector) -> None:
    """A test that failed may hang while it tears down; pytest forgets the limit at a failure."""
    if isinstance(node, pytest.Item):
        _limit(node)


def _limit(item: pytest.Item) -> None:
    """Ends this process, which says where it stood, if no time limit of the test's own does."""
    mark = item.get_closest_marker("timeout")
    seconds = float(mark.args[0] if mark else item.config.getini("timeout"))
    seconds += min(seconds, TEAR_DOWN_SECONDS)
    faulthandler.dump_traceback_later(seconds, exit=True, file=item.config.stash[LAST_WORDS])


def _forked(config: pytest.Config, writing: dict[str, int], directory: Path) -> int:
    """The number of this process, one of those that are forked here: all was collected once.

    The process that forks ends here, after them.
    """
    sys.stdout.flush()
    forked: list[int] = []
    for number, end in writing.items():
        pid = os.fork()
        if pid == 0:
            _die_with_parent()
            _say_to(end, config)
            for one in writing.values():
                os.close(one)
            return int(number)
        forked.append(pid)
    signal.signal(signal.SIGTERM, lambda *_: _terminate(forked))
    for end in writing.values():
        os.close(end)
    codes = [_exit_code(pid) for pid in forked]
    (directory / CODES).write_text(json.dumps(codes), encoding="utf-8")
    os._exit(0)


def _terminate(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


def _exit_code(pid: int) -> int:
    while True:
        # The terminal interrupts those who are waited for as well.
        with suppress(KeyboardInterrupt):
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _say_to(end: int, config: pytest.Config) -> None:
    """Has all that this process says go elsewhere, and where it stands when it is ended."""
    config.stash[LAST_WORDS] = os.dup(end)
    faulthandler.register(signal.SIGTERM, file=config.stash[LAST_WORDS], chain=True)
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    os.dup2(end, 1)
    os.dup2(end, 2)
    capture.start_global_capturing()
    capture.suspend_global_capture()


def _taken(items: list[pytest.Item], number: int, directory: Path) -> Iterator[pytest.Item]:
    """The tests of the files that nobody has begun, in the order of this process."""
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    ranks = {path: _rank(of_it) for path, of_it in files.items()}
    _join(files, sorted(path for path in files if ranks[path] < 2 and _asks_registry(files[path])))
    ordered = sorted(files, key=lambda path: (ranks[path], path not in LONGEST, path))
    if number == OF_SPARK:
        ordered.reverse()
    elif number != OF_BROKERS:
        # Of what needs a broker the last first: the first process comes from the other end.
        of_brokers = [path for path in reversed(ordered) if ranks[path] == 0]
        of_the_rest = [path for path in ordered if ranks[path] == 1]
        if number == OF_MIDDLE_BROKERS:
            half = len(of_brokers) // 2
            of_brokers = of_brokers[half:] + of_brokers[:half]
        of_brokers.sort(key=lambda path: path not in LONGEST)
        is_last = number == OF_THE_REST
        ordered = of_the_rest + of_brokers if is_last else of_brokers + of_the_rest
    for path in ordered:
        mark = directory / str(path.relative_to(ROOT)).replace("/", "+")
        try:
            mark.touch(exist_ok=False)
        except FileExistsError:
            continue
        with (directory / STEPS.format(number=number)).open("a", encoding="utf-8") as steps:
            steps.writelines(f"{TAKES} {item.nodeid}\n" for item in files[path])
        yield from files[path]


def _join(files: dict[Path, list[pytest.Item]], joined: list[Path]) -> None:
    """Has these files taken as one, where the first of them stands."""
    if joined:
        files[joined[0]] = [item for path in joined for item in files.pop(path)]


def _asks_registry(items: list[pytest.Item]) -> bool:
    """Each process that asks for the schema registry starts its own, which takes seconds."""
    return any("schema_registry" in getattr(item, "fixturenames", ()) for item in items)


def _rank(items: list[pytest.Item]) -> int:
    """Brokers first, Spark last, between them what needs neither."""
    asks_logs = any(LAWFUL_LOGS in getattr(item, "fixturenames", ()) for item in items)
    asks_spark = any(item.get_closest_marker("spark") for item in items)
    if asks_logs or (asks_spark and items[0].path not in SPARK_ELSEWHERE):
        return 2
    return 0 if any(item.get_closest_marker("kafka") for item in items) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
