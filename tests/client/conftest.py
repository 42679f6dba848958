"""What the client's tests share: topics of their own, the real worker, and a plain one to break."""

import asyncio
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

import ledgermq
from ledgermq import aio
from ledgermq.client.link import heartbeats as keeper
from ledgermq.testing import MemoryBroker
from support.brokers.hand_made import Desk
from support.brokers.hand_route import HandRoute
from support.brokers.lent_connection import LentConnection
from support.brokers.plain_worker import PlainWorker
from support.brokers.worker_process import Place, new_place


@pytest.fixture
def empty_place(broker, tmp_path) -> Place:
    """An installation without a worker."""
    return new_place(broker.bootstrap, tmp_path)


@dataclass(frozen=True, kw_only=True)
class MemoryPlace:
    """The queue manager in memory, which must behave as an installation does."""

    broker: MemoryBroker

    def connect(self, **settings: object) -> ledgermq.Connection:
        """A connection with a time-out that lets a failing test end soon."""
        return self.broker.connect(**{"timeout": 20.0, **settings})


@pytest.fixture(scope="session")
def installation(broker, tmp_path_factory) -> Iterator[Place]:
    """An installation with the real worker; tests use queue names of their own."""
    found = new_place(broker.bootstrap, tmp_path_factory.mktemp("worker"))
    found.worker("client-tests")
    yield found
    found.close()


@pytest.fixture(scope="session", params=["memory", pytest.param("kafka", marks=pytest.mark.kafka)])
def place(request) -> Place | MemoryPlace:
    """Where behaviour is tested: in memory, and on the real broker with the real worker."""
    if request.param == "memory":
        return MemoryPlace(broker=MemoryBroker(now=datetime.now(UTC)))
    return request.getfixturevalue("installation")


@pytest.fixture(scope="session")
def lent_connection(place) -> Iterator[LentConnection]:
    """What `connection` takes its connection from."""
    lent = LentConnection(place.connect)
    yield lent
    lent.close()


@pytest.fixture
def own_connection(place) -> Iterator[ledgermq.Connection]:
    """A connection that only this test uses."""
    with place.connect() as opened:
        yield opened


@pytest.fixture
def connection(lent_connection) -> Iterator[ledgermq.Connection]:
    """A connection to it, in which no session is open."""
    yield lent_connection.take()
    lent_connection.give_back()


@pytest.fixture
def run(place):
    """Runs a coroutine that is given a connection, with a limit."""

    def with_connection(work, **settings):
        async def main():
            async with aio.Connection(place.connect(**settings)) as connection:
                return await work(connection)

        return asyncio.run(asyncio.wait_for(main(), 60))

    return with_connection


@pytest.fixture
def route() -> HandRoute:
    """A queue manager by hand, which opens and ends sessions and accepts everything else."""
    return HandRoute()


@pytest.fixture
def by_hand(route) -> Iterator[ledgermq.Connection]:
    """A connection to `route`, which is dropped at the end without a word."""
    with route.connected() as opened:
        yield opened


@pytest.fixture
def desk() -> Desk:
    """A router with a log that only notes."""
    return Desk()


@pytest.fixture
def memory() -> MemoryBroker:
    """A queue manager in memory that only this test uses."""
    return MemoryBroker()


@pytest.fixture
def in_memory() -> Iterator[ledgermq.Connection]:
    """A connection to a queue manager in memory that only this test uses."""
    with MemoryBroker().connect(timeout=20.0) as opened:
        yield opened


@pytest.fixture
def queue(request) -> str:
    """A destination that only this test uses."""
    name = "".join(one if one.isalnum() else "." for one in request.node.name)
    return f"queue:{name[:120]}"


@pytest.fixture
def named(queue) -> str:
    """The name of a queue or topic that only this test uses."""
    return queue.removeprefix("queue:")


@pytest.fixture
def topic(queue) -> str:
    """A topic that only this test uses."""
    return "topic:" + queue.partition(":")[2]


@pytest.fixture
def client_id() -> str:
    """A client id that only this test uses."""
    return f"client-{uuid.uuid4().hex}"


@pytest.fixture
def pass_time(place) -> Callable[[float], None]:
    """Lets log time pass: the clock in memory is moved, that of a real broker is waited for."""
    return getattr(getattr(place, "broker", None), "advance", time.sleep)


@pytest.fixture
def dead(connection, named) -> str:
    """The error destination of the queue of a test; both are there, and empty."""
    name = f"{named[:110]}.dead"
    connection.admin.create_queue(name)
    connection.admin.create_queue(named, error_destination=f"queue:{name}")
    return f"queue:{name}"


@dataclass(frozen=True, kw_only=True)
class Breakable:
    """An installation whose worker the test can tamper with."""

    place: Place
    worker: PlainWorker

    def connect(self, **settings: object) -> ledgermq.Connection:
        """A connection to it."""
        return self.place.connect(**settings)


@pytest.fixture
def breakable(broker, tmp_path) -> Iterator[Breakable]:
    """An installation of this test alone, with a worker that loses and repeats when told to."""
    found = new_place(broker.bootstrap, tmp_path)
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


@pytest.fixture
def warnings_are_faults():
    """A warning of ours that no test asks for is a fault."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ledgermq.LedgerMQWarning)
        yield
