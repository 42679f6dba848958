"""What all tests share: one real broker for the whole session."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from hypothesis import settings

from ledgermq import LedgerMQError
from ledgermq.embedded import EmbeddedBroker
from ledgermq.testing import MemoryBroker
from support.brokers.storage_once import storage_prepared_once
from support.side_by_side import shared_broker

if TYPE_CHECKING:
    from pathlib import Path

    from support.brokers.apicurio import Apicurio
    from support.brokers.container import ContainerBroker
    from support.brokers.worker_process import Place

# From so many on Java's optimising compiler pays for the broker that all of them share.
MANY_TESTS = 1_000
# How long one example takes says how busy the machine is, and no more.
settings.register_profile("shared", deadline=None)
settings.load_profile("shared")


@dataclass(frozen=True, kw_only=True)
class GivenBroker:
    """A broker that somebody else runs: named by LEDGERMQ_TEST_BOOTSTRAP, or of all processes."""

    bootstrap: str
    pid: int | None = None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what asks for a broker or for Spark, so that no test need say so of itself.

    A test that is long by intent may take what it takes.
    """
    for item in items:
        asked = set(getattr(item, "fixturenames", ()))
        if asked & {"broker", "installation"}:
            item.add_marker(pytest.mark.kafka)
        if "spark" in asked:
            item.add_marker(pytest.mark.spark)
        if "schema_registry" in asked:
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.timeout(0))


@pytest.fixture(autouse=True)
def no_connection_in_memory_outlives_its_test() -> Iterator[None]:
    """Ends what a test leaves open: hundreds of idle threads starve all that comes after it."""
    made: list[MemoryBroker] = []
    begin = MemoryBroker.__init__

    def noting(self: MemoryBroker, *given: Any, **named: Any) -> None:
        begin(self, *given, **named)
        made.append(self)

    with patch.object(MemoryBroker, "__init__", noting):
        yield
    for connection in [one for broker in made for one in broker._connections]:
        with suppress(LedgerMQError):
            connection.close(timeout=1)


@pytest.fixture(autouse=True, scope="session")
def storage_of_brokers_is_prepared_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Of those that a process starts; what prepares it is tested in tests/embedded."""
    with storage_prepared_once(tmp_path_factory.mktemp("storage")):
        yield


@pytest.fixture(scope="session")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmbeddedBroker | ContainerBroker | GivenBroker]:
    """A running broker; use its `bootstrap`, and topic names that no other test uses.

    LEDGERMQ_TEST_KAFKA=container takes the image of docker-compose.yml for it.
    """
    given = os.environ.get("LEDGERMQ_TEST_BOOTSTRAP")
    if given:
        yield GivenBroker(bootstrap=given)
        return
    if os.environ.get("LEDGERMQ_TEST_KAFKA") == "container":
        from support.brokers.container import ContainerBroker

        with ContainerBroker() as container:
            yield container
        return
    shared = shared_broker()
    if shared is not None:
        yield GivenBroker(bootstrap=shared[0], pid=shared[1])
        return
    brief = len(request.session.items) < MANY_TESTS
    with EmbeddedBroker(tmp_path_factory.mktemp("broker"), brief=brief) as embedded:
        yield embedded


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """A broker of this test alone, which it may kill, and whose files it may touch."""
    with EmbeddedBroker(tmp_path / "broker", brief=True) as started:
        yield started


@pytest.fixture
def place(broker: EmbeddedBroker, tmp_path: Path) -> Iterator[Place]:
    """One queue manager on topics of its own; workers and clients end with the test."""
    from support.brokers.worker_process import new_place

    found = new_place(broker.bootstrap, tmp_path)
    yield found
    found.close()


@pytest.fixture
def live_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Lets this process live in another time zone until the test ends."""
    with monkeypatch.context() as there:

        def live(zone: str) -> None:
            there.setenv("TZ", zone)
            time.tzset()

        yield live
    time.tzset()


@pytest.fixture(scope="session")
def schema_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apicurio]:
    """A running schema registry; what one test registers, others see."""
    from support.brokers.apicurio import Apicurio

    running = Apicurio(tmp_path_factory.mktemp("apicurio")).start()
    yield running
    running.stop()
