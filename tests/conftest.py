"""What all tests share: one real broker for the whole session."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from ledgermq.embedded import EmbeddedBroker


@dataclass(frozen=True, kw_only=True)
class GivenBroker:
    """A broker that somebody else runs, named by LEDGERMQ_TEST_BOOTSTRAP."""

    bootstrap: str


@pytest.fixture(scope="session")
def broker(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[EmbeddedBroker | GivenBroker]:
    """A running broker; use its `bootstrap`, and topic names that no other test uses."""
    given = os.environ.get("LEDGERMQ_TEST_BOOTSTRAP")
    if given:
        yield GivenBroker(bootstrap=given)
        return
    with EmbeddedBroker(tmp_path_factory.mktemp("broker")) as embedded:
        yield embedded
