"""The audit in Spark of a place, run as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from support.checkout import ROOT, SERVICES


def audit_agrees(place: Any, say: Callable[[str], None]) -> None:
    """The audit of everything agrees; a worker must be at rest."""
    started = time.monotonic()
    command = [sys.executable, "-m", "ledgermq", "audit", "--json"]
    command += ["--bootstrap", place.bootstrap, "--topic-prefix", place.topics.prefix]
    roots = [str(SERVICES), str(ROOT / "spark_jobs")]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(roots)},
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    say(f"the audit agrees, {time.monotonic() - started:.0f} s")
