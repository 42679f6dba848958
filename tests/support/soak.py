"""Rounds in which the worker is killed at a named point, with a queue at depth; what is looked at
after each.

`make soak` runs 200 rounds at a depth of 1,000,000 (`ARGS='--rounds 20 --depth 100000'` fewer). A
round: a worker that will kill itself at a crash point comes up on what the last one left, traffic
goes on until it dies, in every third round its data directory is deleted; then a follower looks at
ledger, lanes and checkpoints. Now and then, and at the end, a worker that is left alone brings all
to rest, nothing may be missing, and the Spark audit must agree.
"""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable
from typing import Any

from ledgermq.processor.worker.crash_points import CRASH_POINTS
from ledgermq.processor.worker.readiness import wait_for_worker
from support.brokers.traffic import Traffic
from support.brokers.worker_process import Place, WorkerProcess
from support.checks.audited import audit_agrees
from support.checks.follower import Follower
from support.frame import arguments_with_seed, place_of_a_run, say

DEEP = "queue:deep"
BODY_BYTES = 200
CHECKPOINT_SECONDS = 0.3
START_SECONDS = 120.0
DEATH_SECONDS = 30.0
# Between steps: a log that grows as fast as it can makes all that follows slow, and finds no more.
STEP_SECONDS = 0.02
# Steps without a worker: few, so that no session has more unanswered operations than it may.
STEPS_ALONE = 5
# A connection keeps all that it has read; after so many rounds new ones take its place.
TRAFFIC_ROUNDS = 10
SIGKILLED = -9


class Soak:
    """Rounds on one place.

    Args:
        place: Where; it has no worker.
        depth: How many messages wait in the deep queue.
        seed: Of the traffic and of the moments of death.
        say: Gets a line for people after each round.
    """

    def __init__(
        self, place: Place, depth: int, seed: int = 1, say: Callable[[str], None] = lambda _: None
    ) -> None:
        self.place = place
        self.random = random.Random(seed)
        self.follower = Follower(place)
        self.deaths: dict[str, int] = dict.fromkeys(CRASH_POINTS, 0)
        self.rounds = 0
        self._say = say
        self._traffic: Traffic | None = None
        worker = place.worker("soaking")
        self._fill(depth)
        worker.kill()
        self.follower.look()

    def _fill(self, depth: int) -> None:
        started = time.monotonic()
        with self.place.connect(timeout=120.0) as connection, connection.session() as session:
            producer = session.producer(DEEP)
            for number in range(depth):
                producer.send_async(f"{number}:".encode().ljust(BODY_BYTES, b"."))
            session.flush()
        self._say(f"filled to {depth:,} in {time.monotonic() - started:.0f} s")

    def round(self) -> None:
        """One round; AssertionError if anything is not as it must be."""
        started = time.monotonic()
        if self._traffic is None or self.rounds % TRAFFIC_ROUNDS == 0:
            self._begin_traffic()
        assert self._traffic is not None
        point = CRASH_POINTS[self.rounds % len(CRASH_POINTS)]
        folding = point in ("after-fold", "after-produce")
        count = self.random.randint(2, 30) if folding else self.random.randint(1, 2)
        worker = self._start(CRASH_AT=f"{point}:{count}", CHECKPOINT_SECONDS=CHECKPOINT_SECONDS)
        limit = time.monotonic() + DEATH_SECONDS
        while worker.code is None:
            assert time.monotonic() < limit, f"{point}:{count} was not reached:\n{worker.log}"
            self._traffic.step()
            time.sleep(STEP_SECONDS)
        assert worker.wait() == SIGKILLED, worker.log
        self._traffic.run(STEPS_ALONE)
        if self.rounds % 3 == 2:
            shutil.rmtree(self.place.directory / worker.name, ignore_errors=True)
        self.follower.look()
        self.deaths[point] += 1
        self.rounds += 1
        seen = self.follower
        self._say(
            f"round {self.rounds}: killed {point}:{count}, position {seen.state.position}, "
            f"{seen.repeats} repeats, {seen.manifests_seen} checkpoints, "
            f"{time.monotonic() - started:.1f} s"
        )

    def _start(self, **environment: Any) -> WorkerProcess:
        """Starts a worker and waits until it answers or is dead already."""
        worker = self.place.worker("soaking", ready=False, **environment)
        prefix = self.place.topics.prefix
        wait_for_worker(
            self.place.bootstrap, prefix, START_SECONDS, lambda: worker.code is not None
        )
        return worker

    def _begin_traffic(self) -> None:
        """New connections in place of the old, which are lost; its worker dies at any moment."""
        worker = self._start()
        for client in self.place.clients:
            client.close()
        self.place.clients.clear()
        producer, consumer = self.place.client(0), self.place.client(1)
        self._traffic = Traffic(producer, consumer, seed=self.random.randrange(2**32), deep=DEEP)
        self._traffic.run(self.random.randint(1, 20))
        worker.kill()

    def rest(self) -> None:
        """A worker that is left alone brings all to rest; then nothing may be missing."""
        worker = self._start()
        assert worker.code is None, worker.log
        if self._traffic is not None:
            self._traffic.run(10)
            self._traffic.settle()
            answer = self._traffic.producer.client.ask("CHECKPOINT", wait_seconds=60.0)
            assert answer["reason"] == "", answer
        self.follower.look(whole=True)

    def audit(self) -> None:
        """The Spark audit of everything agrees; a worker must be at rest."""
        audit_agrees(self.place, self._say)

    def stop_workers(self) -> None:
        """Kills what is left alone."""
        for worker in self.place.workers:
            worker.kill()
        self.place.workers.clear()

    def close(self) -> None:
        """Lets go of what it reads with."""
        self.follower.close()


def _main() -> None:
    parser = arguments_with_seed(__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--depth", type=int, default=1_000_000)
    parser.add_argument("--audit-every", type=int, default=50, help="rounds between audits")
    given = parser.parse_args()
    say(f"seed {given.seed}, {given.rounds} rounds at a depth of {given.depth:,}")
    with place_of_a_run() as place:
        soak = Soak(place, given.depth, given.seed, say)
        for number in range(1, given.rounds + 1):
            soak.round()
            if number % given.audit_every == 0 or number == given.rounds:
                soak.rest()
                soak.audit()
                soak.stop_workers()
        say(f"done: {soak.deaths}")
        soak.close()


if __name__ == "__main__":
    _main()
