"""What the client's tests share: topics of their own, the real worker, and a plain one to break."""

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import ledgermq
from ledgermq.client import keeper
from ledgermq.processor.parent import PARENT_VARIABLE
from ledgermq.wire.registry import Claim, claim_queue_manager
from ledgermq.wire.topics import Topics, ensure_topics
from support.plain_worker import PlainWorker

PREFIXES = itertools.count()
WORKER_START_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Place:
    """An installation of its own on the shared broker."""

    bootstrap: str
    topics: Topics
    claim: Claim

    @property
    def address(self) -> str:
        """What `connect` is given."""
        return f"kafka://{self.bootstrap}/{self.claim.queue_manager}"

    def connect(self, **settings: object) -> ledgermq.Connection:
        """A connection with a time-out that lets a failing test end soon."""
        return ledgermq.connect(
            self.address, **{"timeout": 20.0, "topic_prefix": self.topics.prefix, **settings}
        )


def new_place(bootstrap: str) -> Place:
    """Topics that no other test uses, with one queue manager."""
    topics = Topics(f"client-{os.getpid()}-{next(PREFIXES)}")
    ensure_topics(bootstrap, topics, partitions=1, lanes=2)
    return Place(
        bootstrap=bootstrap,
        topics=topics,
        claim=claim_queue_manager(bootstrap, topics, "QM1", lanes=2),
    )


@pytest.fixture
def place_on() -> Callable[[str], Place]:
    """Makes an installation on a broker given by its bootstrap address."""
    return new_place


@pytest.fixture
def empty_place(broker) -> Place:
    """An installation without a worker."""
    return new_place(broker.bootstrap)


@pytest.fixture(scope="session")
def place(broker, tmp_path_factory) -> Iterator[Place]:
    """An installation with the real worker; tests use queue names of their own."""
    found = new_place(broker.bootstrap)
    directory = tmp_path_factory.mktemp("worker")
    with (directory / "worker.log").open("wb") as log:
        worker = subprocess.Popen(
            [
                *(sys.executable, "-m", "ledgermq.processor"),
                *("--bootstrap", found.bootstrap, "--topic-prefix", found.topics.prefix),
                *("--data-dir", str(directory), "--name", "client-tests"),
                *("--partitions", "1", "--lanes", "2", "--web-port", "-1"),
            ],
            env={
                **os.environ,
                "PYTHONPATH": str(Path(__file__).parents[2] / "services"),
                PARENT_VARIABLE: str(os.getpid()),
            },
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            wait_for_worker(found, worker, directory)
            yield found
        finally:
            worker.terminate()
            worker.wait(30)


def wait_for_worker(place: Place, worker: subprocess.Popen, directory: Path) -> None:
    """Returns when the worker answers; fails with its log if it ends first."""
    deadline = time.monotonic() + WORKER_START_SECONDS
    while True:
        try:
            place.connect(timeout=5.0).close()
            return
        except ledgermq.WorkerUnavailableError:
            text = (directory / "worker.log").read_text(errors="replace")
            assert worker.poll() is None, f"the worker ended:\n{text}"
            assert time.monotonic() < deadline, f"the worker does not answer:\n{text}"


@pytest.fixture
def connection(place) -> Iterator[ledgermq.Connection]:
    """A connection to the real worker."""
    with place.connect() as opened:
        yield opened


@pytest.fixture
def queue(request) -> str:
    """A destination that only this test uses."""
    name = "".join(one if one.isalnum() else "." for one in request.node.name)
    return f"queue:{name[:120]}"


@dataclass(frozen=True, kw_only=True)
class Breakable:
    """An installation whose worker the test can tamper with."""

    place: Place
    worker: PlainWorker

    def connect(self, **settings: object) -> ledgermq.Connection:
        """A connection to it."""
        return self.place.connect(**settings)


@pytest.fixture
def breakable(broker) -> Iterator[Breakable]:
    """An installation of this test alone, with a worker that loses and repeats when told to."""
    found = new_place(broker.bootstrap)
    worker = PlainWorker(found.bootstrap, found.topics, found.claim)
    yield Breakable(place=found, worker=worker)
    worker.stop()


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], None]:
    """Waits until something holds; fails after a time that is ample even on a busy machine."""

    def wait(holds: Callable[[], bool], seconds: float = 30.0) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, "did not come to hold"
            time.sleep(0.02)

    return wait


@pytest.fixture
def impatient(monkeypatch):
    """Repeats and questions come soon, so that the tests need not wait for them."""
    monkeypatch.setattr(keeper, "ROUND_SECONDS", 0.05)
    monkeypatch.setattr(keeper, "RESYNC_AFTER_SECONDS", 0.2)
    monkeypatch.setattr(keeper, "RESYNC_PAUSE_MAX_SECONDS", 0.4)
    monkeypatch.setattr(keeper, "REPEAT_AFTER_SECONDS", 0.3)
