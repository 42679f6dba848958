"""How long clients wait while a queue manager changes hands: `python -m support.faults.take_over`.

A client sends one message after another; a worker is killed, frozen or told to stop, or killed as
all connections of workers die without a word, as if a broker had lost its power with it. The
longest send from then on is what the client waited, its end is the first outcome of the new worker.
Every message that was confirmed must be there once, and the lanes must hold the fold of the log.
"""

from __future__ import annotations

import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from support.checks.history import check_history
from support.faults.stage import WORKERS, Stage
from support.frame import arguments_with_seed, say

QUIET_SECONDS = 2.0
PATIENCE_SECONDS = 180.0
SIGNALS = {
    "killed": signal.SIGKILL,
    "frozen": signal.SIGSTOP,
    "told to stop": signal.SIGTERM,
    "cut off": signal.SIGKILL,
}


class Sender(threading.Thread):
    """Sends one message after another; notes when each send began and ended."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(daemon=True)
        self._stage = stage
        self._stopping = threading.Event()
        self.sends: list[tuple[float, float]] = []

    def run(self) -> None:
        """Sends until told to stop."""
        with self._stage.place.connect(timeout=120.0) as connection, connection.session() as one:
            producer = one.producer("queue:probe")
            while not self._stopping.wait(0.005):
                began = time.monotonic()
                producer.send(str(len(self.sends)))
                self.sends.append((began, time.monotonic()))

    def stop(self) -> None:
        """Waits for the last send."""
        self._stopping.set()
        self.join()


def one_round(stage: Stage, sender: Sender, how: str) -> tuple[float, float]:
    """Seconds from the fault to the new worker's first outcome, and the longest send."""
    name = stage.owner()
    mark, began = len(sender.sends), time.monotonic()
    if how == "cut off":
        stage.networks[WORKERS].kill_in_silence()
    stage.workers[name].signal(SIGNALS[how])
    limit = time.monotonic() + PATIENCE_SECONDS
    time.sleep(QUIET_SECONDS)
    while len(sender.sends) == mark or time.monotonic() - sender.sends[-1][1] > 0.5:
        assert time.monotonic() < limit, stage.workers[name].log
        time.sleep(0.05)
    if how == "frozen":
        stage.workers[name].signal(signal.SIGCONT)
    else:
        stage.workers[name].wait(PATIENCE_SECONDS)
        stage.start_worker(name).wait_for_log(f"worker {name} s", PATIENCE_SECONDS)
    time.sleep(QUIET_SECONDS)
    first, last = max(sender.sends[mark:], key=lambda send: send[1] - send[0])
    return last - began, last - first


def measure(seed: int, rounds: int, workers: int, say: Callable[[str], None]) -> None:
    """So many rounds of each kind; AssertionError if anything was lost or differs."""
    with tempfile.TemporaryDirectory(prefix="ledgermq-take-over-") as name:
        (Path(name) / "disk").mkdir()
        stage = Stage(Path(name), seed, workers)
        try:
            sender = Sender(stage)
            sender.start()
            for how in SIGNALS:
                found = [one_round(stage, sender, how) for _ in range(rounds)]
                for what, seconds in zip(
                    ("first outcome after", "longest send"), zip(*found, strict=True), strict=True
                ):
                    middle = statistics.median(seconds)
                    say(
                        f"{how}, {rounds} rounds, {workers} workers: {what} min "
                        f"{min(seconds):.2f} median {middle:.2f} max {max(seconds):.2f} s"
                    )
            sender.stop()
            with stage.place.connect() as connection:
                count = connection.admin.queue_status("probe").message_count
            assert count == len(sender.sends), f"{count} are there, {len(sender.sends)} were sent"
            fold, recorded = check_history(stage.place)
            say(
                f"{count:,} messages, each there once; {len(fold.outcomes):,} outcomes as the fold "
                f"has them, {recorded.repeats:,} of them repeated"
            )
        finally:
            stage.close()


def _main() -> None:
    parser = arguments_with_seed(__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="of each kind")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    measure(given.seed, given.rounds, given.workers, say)


if __name__ == "__main__":
    _main()
