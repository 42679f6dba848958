"""`make faults`: clients of every kind at work while the nemesis hurts broker, workers and clients.

A run is seeded: `ARGS='--seed 7'` is the same order of the same faults again, though not the same
interleaving. `--seconds` says how long faults go on (600), `--rounds` how many of them at most.
Then all is healed, clients end, what is left is drained, and everything is held against everything:
histories of clients by `checker` (H), lanes and log by a fold of the log (L), state (S), and the
audit in Spark (A).
"""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from support.checks.audited import audit_agrees
from support.checks.history import check_history
from support.faults import nemesis
from support.faults.checker import Facts, facts_of, judge, witness
from support.faults.history import read
from support.faults.stage import ROLES, Stage
from support.frame import arguments_with_seed, say
from support.invariants import whole_state

CALM_SECONDS = (2.0, 6.0)
STOP_SECONDS = 150.0
DRAIN_SECONDS = 240.0

Say = Callable[[str], None]


class Suite:
    """A run on a stage: clients of all roles, faults, and what is looked at in the end."""

    def __init__(self, stage: Stage, faults: tuple[nemesis.Fault, ...], say: Say) -> None:
        self.stage = stage
        self.done: Counter[str] = Counter()
        self._deck = nemesis.deck(stage, faults)
        self._say = say
        for role in ROLES:
            stage.start_client(role)
        self._wait_until_all_work()

    def _wait_until_all_work(self) -> None:
        """Faults before anybody has done anything would prove nothing."""
        limit = time.monotonic() + STOP_SECONDS
        while True:
            done = {line["client"] for line in read(self.stage.histories) if line["step"] == "ok"}
            if done >= set(self.stage.clients):
                return
            assert time.monotonic() < limit, f"only {sorted(done)} are at work"
            time.sleep(0.2)

    def round(self) -> None:
        """One fault, and a while in which all can go on."""
        fault = next(self._deck)
        started = time.monotonic()
        fault(self.stage)
        self.done[fault.__name__] += 1
        self._say(f"{fault.__name__}: {time.monotonic() - started:.1f} s")
        time.sleep(self.stage.random.uniform(*CALM_SECONDS))
        for client in self.stage.clients.values():
            code = client.process.poll()
            assert code is None, f"{client.name} ended with {code}: {client.said}"

    def end(self) -> Facts:
        """Heals, drains and looks; AssertionError with a witness if a law is broken."""
        stage = self.stage
        stage.mend_workers()
        stage.place.wait_for_worker(STOP_SECONDS)
        self._say(f"workers at the end: {stage.resources()}")
        stage.stop_clients(STOP_SECONDS)
        stage.drain(DRAIN_SECONDS)
        facts = facts_of(read(stage.histories))
        self._say(", ".join(f"{name}: {count:,}" for name, count in sorted(facts.counts.items())))
        violations = judge(facts)
        for violation in violations[:10]:
            self._say(f"{violation.law} {violation.text}")
            for line in witness(facts, violation):
                self._say(f"    {line}")
        assert not violations, f"{len(violations)} violations"
        fold, recorded = check_history(stage.place)
        whole_state.check(fold.state)
        self._say(
            f"{len(fold.operations):,} operations; {len(fold.outcomes):,} outcomes are on the "
            f"lanes as the fold has them, {recorded.repeats:,} of them repeated"
        )
        return facts


@contextmanager
def a_disk(directory: Path) -> Iterator[bool]:
    """A small disk for the broker, where that may be; whether it is one."""
    has_disk = nemesis.small_disk(directory)
    try:
        yield has_disk
    finally:
        if has_disk:
            nemesis.take_disk_away(directory)


def run(seed: int, seconds: float, rounds: int, workers: int, say: Say) -> None:
    """A whole run; AssertionError if anything is not as it must be."""
    with tempfile.TemporaryDirectory(prefix="ledgermq-faults-") as name:
        directory = Path(name)
        with a_disk(directory / "disk") as has_disk:
            faults = nemesis.FAULTS
            if has_disk:
                faults += (nemesis.fill_disk,)
            else:
                say("no disk can be mounted here (only root may): it is not filled")
            stage = Stage(directory, seed, workers)
            try:
                suite = Suite(stage, faults, say)
                limit = time.monotonic() + seconds
                while time.monotonic() < limit and sum(suite.done.values()) < rounds:
                    suite.round()
                suite.end()
                audit_agrees(stage.place, say)
                say(f"done: {sum(suite.done.values())} faults, 0 violations: {dict(suite.done)}")
            except AssertionError:
                kept = Path(tempfile.mkdtemp(prefix="ledgermq-faults-failed-"))
                for path in [*directory.glob("*.log"), *stage.histories.iterdir()]:
                    (kept / path.name).write_bytes(path.read_bytes())
                say(f"histories and logs are kept in {kept}")
                raise
            finally:
                stage.close()


def _main() -> None:
    parser = arguments_with_seed(__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="how long faults go on")
    parser.add_argument("--rounds", type=int, default=sys.maxsize, help="faults at most")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    # So that the small disk is let go of.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    say(f"seed {given.seed}")
    run(given.seed, given.seconds, given.rounds, given.workers, say)


if __name__ == "__main__":
    _main()
