"""Ctrl-C while Spark works for a command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

# A job that takes hours, in a command that does what `ledgermq.cli.main` does at Ctrl-C.
COMMAND = """
from ledgermq.cli.options.spark import quiet_spark
try:
    with quiet_spark(1) as engine:
        session = engine.session
        print("ready", flush=True)
        session.range(10**13).selectExpr("sum(id % 7)").collect()
except KeyboardInterrupt:
    print("interrupted")
"""


def _begun(directory: Path, **options: Any) -> subprocess.Popen[str]:
    """The command, as it has just been started."""
    command, pipe = [sys.executable, "-c", COMMAND], subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=directory, **options)


@pytest.mark.spark
@pytest.mark.slow
def test_ctrl_c_ends_a_job_as_ctrl_c_and_not_as_a_failure_of_spark(tmp_path):
    """Nor does it write down what Python and Java had to say to each other."""
    process = _begun(tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(2.0)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (out, err) == ("interrupted\n", "")


def _java_of(process: subprocess.Popen[str]) -> str:
    """The ids of the Javas that the process has started, which may have outlived it."""
    asked = ["pgrep", "--session", str(process.pid), "java"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout


@pytest.mark.spark
@pytest.mark.slow
def test_ctrl_c_while_spark_starts_leaves_no_java_behind(tmp_path):
    """One that finds nobody to tell where it listens would run for ever."""
    process = _begun(tmp_path, start_new_session=True)
    deadline = time.monotonic() + 60
    while not _java_of(process):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (out.removeprefix("ready\n"), err) == ("interrupted\n", "")
    while _java_of(process):
        assert time.monotonic() < deadline, "Java runs on"
        time.sleep(0.1)


@pytest.mark.slow
def test_ctrl_c_while_java_is_asked_for_its_version_does_not_advise_to_install_java(tmp_path):
    """A terminal tells all of them, so that the Java that was asked says nothing any more."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    java.chmod(0o755)
    environment = {**os.environ, "JAVA_HOME": str(tmp_path), "PATH": str(tmp_path / "none")}
    process = _begun(tmp_path, env=environment, start_new_session=True)
    asked = ["pgrep", "--session", str(process.pid), "sleep"]
    deadline = time.monotonic() + 60
    while subprocess.run(asked, capture_output=True, check=False).returncode:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate(timeout=60) == ("interrupted\n", "")
