"""Ctrl-C while Spark works for a command."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

# A job that takes hours, in a command that does what `ledgermq.cli.main` does at Ctrl-C.
COMMAND = """
from ledgermq.cli.options.spark import quiet_spark
try:
    with quiet_spark(1) as engine:
        print("ready", flush=True)
        engine.session.range(10**13).selectExpr("sum(id % 7)").collect()
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.spark
@pytest.mark.slow
def test_ctrl_c_ends_a_job_as_ctrl_c_and_not_as_a_failure_of_spark(tmp_path):
    """Nor does it write down what Python and Java had to say to each other."""
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(2.0)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (out, err) == ("interrupted\n", "")
