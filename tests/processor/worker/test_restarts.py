"""Restarts of a worker by its supervisor, without a broker."""

import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from ledgermq.processor.worker.supervisor import Supervisor


@pytest.mark.parametrize(("number", "told"), [(9, "SIGKILL"), (40, "signal 40")])
def test_a_worker_that_any_signal_killed_is_started_again(monkeypatch, tmp_path, number, told):
    """Real-time signals have no name; they are told by number."""
    said: list[str] = []
    again = threading.Event()

    def tell(text: str) -> None:
        said.append(text)
        again.set()

    broker = SimpleNamespace(bootstrap="", stop=lambda: None)
    supervisor = Supervisor(tmp_path, broker=broker, tell=tell)
    command = [sys.executable, "-S", "-c", f"import os; os.kill(os.getpid(), {number})"]
    monkeypatch.setattr(supervisor, "_spawn", lambda: subprocess.Popen(command))
    watch = threading.Thread(target=supervisor._keep_running, daemon=True)
    watch.start()
    came = again.wait(10.0)
    supervisor.stop()
    watch.join()
    assert came
    assert said[0].startswith(f"the worker was killed by {told}; starting it again in")
