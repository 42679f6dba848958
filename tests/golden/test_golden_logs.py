"""Golden logs: recorded histories fold to the recorded outcomes and digests, for ever (H4).

`histories/*.txt` are the scripts they were made from; `make golden-update` records them again.
A failure found in the field becomes a log here with date and cause in its name.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.checks.golden_logs import record, replay
from support.scripts.script import scripts_of

HERE = Path(__file__).parent
LOGS = HERE / "logs"


def update() -> None:
    """Records the histories again."""
    LOGS.mkdir(exist_ok=True)
    for script in scripts_of(HERE / "histories"):
        lines = [json.dumps(row, ensure_ascii=False) for row in record(script)]
        name = Path(script.title).stem
        (LOGS / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


if os.environ.get("LEDGERMQ_GOLDEN_UPDATE"):
    update()

PATHS = sorted(LOGS.glob("*.jsonl"))


def rows_of(path: Path) -> list[dict]:
    """The lines of a golden log."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_golden_log_folds_to_its_recorded_outcomes(path):
    """Every entry has the outcomes that it had when the log was recorded."""
    rows = rows_of(path)
    for recorded, found in zip(rows, replay(rows), strict=True):
        assert found == recorded


def test_every_history_has_its_golden_log():
    """A history that was never recorded protects nothing."""
    names = {path.stem for path in PATHS}
    assert {path.stem for path in (HERE / "histories").glob("*.txt")} <= names


def digest_under(hash_seed: str) -> str:
    """The digest of all golden logs in a process with a hash seed of its own."""
    roots = os.pathsep.join((str(HERE.parent), str(HERE.parents[1] / "services")))
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": roots}
    command = [sys.executable, "-m", "support.checks.golden_logs", *map(str, PATHS)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


@pytest.mark.slow
def test_same_log_has_the_same_digest_under_any_hash_seed():
    """Nothing in the fold depends on the order of a set or on Python's hashes."""
    digests = {digest_under(seed) for seed in ("0", "1", "4242")}
    assert len(digests) == 1
    assert len(digests.pop()) == 64


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_changed_entry_changes_the_digest(path):
    """A golden log is not blind: leaving out one accepted entry is found."""
    rows = rows_of(path)
    kinds = [[one["kind"] for one in row.get("outcomes", ())] for row in rows]
    at = kinds.index(["Accepted"])
    assert replay(rows[:at] + rows[at + 1 :])[-1] != rows[-1]
