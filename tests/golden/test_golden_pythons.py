"""Every supported Python folds the same logs to the same digests (H26).

`digests.json` holds those of the golden logs and of histories that versions could fold otherwise,
so that the suite compares with them on whatever Python it runs; `make golden-update` writes it.
The same logs, and others, are folded by every other version that this machine has, and by this one
under another hash seed. What comes to something else fails the test; no version is left out in
silence.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
from functools import cache
from pathlib import Path

import pytest

from support.brokers.log_writer import START_US, Script
from support.checkout import SCRIPTS
from support.checks.fold_digests import Log, Logs, digests
from support.checks.interpreters import interpreters, link_libraries, run
from support.generators.group_generators import SeededGroupWriter
from support.generators.version_histories import log_of, version_histories
from support.random_logs.random_log import RandomLog
from support.scripts.play import play
from support.scripts.script import scripts_of

HERE = Path(__file__).parent
GOLDEN = HERE / "digests.json"
# For this Python, whose process of the tests has a seed of its own, and for the others.
OWN_HASH_SEED, OTHER_HASH_SEED = "0", "4242"
DAMAGED_ENTRIES = 2_000
DAMAGE = (0x00, 0x01, 0x02, 0x7F, 0x80, 0xC3, 0xFF)
# An integer of more than 64 bits: fastavro's compiled reader cuts it, the one in Python does not.
OVERLONG = re.compile(rb"[\x80-\xff]{9}[\x02-\xff]")
# Scripts that put by the thousand take long and show no more than the others.
SCRIPT_DIGITS_MAX = 200_000


@cache
def golden_logs() -> Logs:
    """The golden logs as they were recorded, and the histories that versions could disagree on."""
    found: Logs = {}
    for path in sorted((HERE / "logs").glob("*.jsonl")):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        found[f"logs/{path.stem}"] = [
            (row["value"], row["time"]) for row in rows if "position" in row
        ]
    return found | version_histories()


def script_logs() -> Logs:
    """What the scripts of the fold's tests append."""
    found: Logs = {}
    for script in scripts_of(SCRIPTS):
        played = play(script, checked=False)
        log = [(None if value is None else value.hex(), time) for value, time in played.log]
        if sum(len(value or "") for value, _ in log) <= SCRIPT_DIGITS_MAX:
            found[f"scripts/{script.source}"] = log
    return found


def random_logs() -> Logs:
    """Logs of every kind of operation, legal or not."""
    found: Logs = {}
    for seed in range(2):
        script = Script(random=random.Random(seed))
        RandomLog(script, topics=True).grow(400)
        found[f"random/{seed}"] = log_of(script)
        history = SeededGroupWriter(seed).grow(150)
        found[f"groups/{seed}"] = [
            (None if one.value is None else one.value.hex(), one.time) for one in history
        ]
    return found


def damaged_log() -> Log:
    """Entries of the other logs with bytes changed, left out and put in: most are refused."""
    chosen = random.Random(26)
    values = [
        bytes.fromhex(value)
        for name, log in golden_logs().items()
        for value, _ in log
        if name.startswith("logs/") and value is not None and len(value) > 20
    ]
    found: Log = []
    for number in range(DAMAGED_ENTRIES):
        value = bytearray(chosen.choice(values))
        at = chosen.randrange(10, len(value))
        if number % 3 == 0:
            value[at] = chosen.choice(DAMAGE)
        elif number % 3 == 1:
            del value[at]
        else:
            value[at:at] = bytes([chosen.choice(DAMAGE)]) * chosen.randrange(1, 4)
        if not OVERLONG.search(value):
            found.append((value.hex(), START_US + number * 1_000))
    return found


@cache
def all_logs() -> Logs:
    """All logs that are folded by every version."""
    return {**golden_logs(), **script_logs(), **random_logs(), "damaged": damaged_log()}


@cache
def expected() -> dict[str, dict[str, int | str]]:
    """What this process makes of all logs."""
    return digests(all_logs())


def update() -> None:
    """Records the digests of this Python."""
    text = json.dumps(digests(golden_logs()), indent=1)
    GOLDEN.write_text(text + "\n", encoding="utf-8")


if os.environ.get("LEDGERMQ_GOLDEN_UPDATE"):
    update()


@pytest.fixture(scope="module")
def logs_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with all logs, as the program reads it."""
    path = tmp_path_factory.mktemp("logs") / "logs.json"
    path.write_text(json.dumps(all_logs()), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the libraries of the fold and its codec."""
    return link_libraries(tmp_path_factory.mktemp("libraries"))


@pytest.mark.slow
def test_this_python_folds_to_the_recorded_digests():
    """Whatever Python runs the tests comes to what the recording one came to (H26)."""
    recorded = json.loads(GOLDEN.read_text(encoding="utf-8"))
    found = {name: one for name, one in expected().items() if name in golden_logs()}
    assert found == recorded, "run make golden-update if the change of the fold is meant"


@pytest.mark.slow
@pytest.mark.parametrize("interpreter", interpreters(), ids=str)
def test_every_python_folds_to_the_same_digests(interpreter, logs_path, libraries):
    """Another version, and another hash seed, make the same of every log (H26)."""
    hash_seed = OWN_HASH_SEED if interpreter == interpreters()[0] else OTHER_HASH_SEED
    told = run(interpreter, libraries, hash_seed, "support.checks.fold_digests", str(logs_path))
    found = json.loads(told)
    assert list(found) == list(expected())
    other = {name: one for name, one in found.items() if one != expected()[name]}
    assert other == {}, (
        f"{interpreter} comes to other digests than this Python; to find the entry, compare what "
        f"`python -m support.checks.fold_digests {logs_path} NAME` prints under both"
    )


def test_an_interpreter_that_fails_is_no_reason_to_skip(tmp_path, libraries):
    """A version that is found and cannot fold a log fails the test, with what it printed (H26)."""
    path = tmp_path / "logs.json"
    path.write_text(json.dumps({"broken": [["no hexadecimal", 0]]}), encoding="utf-8")
    with pytest.raises(AssertionError, match="comes to no end"):
        run(interpreters()[0], libraries, "0", "support.checks.fold_digests", str(path))


def test_only_what_starts_and_is_supported_is_an_interpreter(tmp_path, monkeypatch):
    """A shim without its version and a version too old are left out; no other is (H26)."""
    told = {"3.12": "", "3.13": "cpython|3|10|9|old", "3.14": "cpython|3|14|0|new"}
    for version, answer in told.items():
        path = tmp_path / f"python{version}"
        path.write_text(f"#!/bin/sh\n[ -n '{answer}' ] && echo '{answer}'\n", encoding="ascii")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "none"))
    found = interpreters.__wrapped__()
    assert [one.version for one in found] == [sys.version_info[:3], (3, 14, 0)]


def test_the_logs_hold_what_versions_could_disagree_on():
    """The proof is not empty: many entries of every history, accepted and refused (H26)."""
    lengths = {name: len(log) for name, log in all_logs().items()}
    assert min(lengths[name] for name in version_histories()) >= 30
    assert sum(lengths.values()) > 4_000
    assert len(lengths) > 100
    states = [one["state"] for one in expected().values()]
    assert len(set(states)) > len(states) * 0.9
