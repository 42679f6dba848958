"""The units of systemd: systemd takes them, and they run what users install."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest

from ledgermq.processor.worker.settings import WorkerSettings
from ledgermq.processor.worker.worker import LAST_RESORT_SECONDS
from support.checkout import ROOT

UNITS = sorted((ROOT / "infra" / "systemd").glob("*.service"))

with_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None,
    reason="there is no systemd-analyze (Debian: apt-get install systemd)",
)


def installed(unit: Path, directory: Path) -> Path:
    """A unit as an instance that runs a program which is there."""
    text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", unit.read_text(), flags=re.MULTILINE)
    copy = directory / unit.name.replace("@.", "@1.")
    copy.write_text(text)
    (directory / unit.name).write_text(text)
    return copy


@with_systemd
@pytest.mark.parametrize("unit", UNITS, ids=lambda one: one.name)
def test_systemd_takes_the_unit(unit, tmp_path):
    """`systemd-analyze verify` has nothing to say against it."""
    for one in UNITS:
        installed(one, tmp_path)
    copy = tmp_path / unit.name.replace("@.", "@1.")
    told = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(copy)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (told.returncode, told.stderr) == (0, "")


@with_systemd
@pytest.mark.parametrize("unit", UNITS, ids=lambda one: one.name)
def test_the_unit_has_few_rights(unit, tmp_path):
    """`systemd-analyze security` calls its exposure OK: below 2 of 10."""
    told = subprocess.run(
        [
            *("systemd-analyze", "security", "--offline=true", "--threshold=20"),
            str(installed(unit, tmp_path)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stdout[-300:]


def test_units_restart_what_failed_as_nobody_special_with_time_to_drain():
    """Non-root, Restart=on-failure for ever, and longer to stop than a worker ever takes."""
    for unit in UNITS:
        text = unit.read_text(encoding="utf-8")
        for line in ("User=ledgermq", "Restart=on-failure", "StartLimitIntervalSec=0"):
            assert f"\n{line}\n" in text, unit.name
        assert "\nEnvironmentFile=" in text
        found = re.search(r"^TimeoutStopSec=(\d+)$", text, re.MULTILINE)
        assert found is not None
        assert int(found[1]) > LAST_RESORT_SECONDS


def test_settings_in_units_and_their_example_are_settings():
    """Every LEDGERMQ_ variable is one that a worker reads."""
    known = {f"LEDGERMQ_{field.name.upper()}" for field in fields(WorkerSettings)}
    for file in [*UNITS, ROOT / "infra" / "systemd" / "worker.env"]:
        assert set(re.findall(r"(LEDGERMQ_\w+)=", file.read_text(encoding="utf-8"))) <= known
