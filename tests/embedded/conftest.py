"""Brokers whose storage is prepared as anybody's is."""

from collections.abc import Iterator
from unittest.mock import patch

import pytest

from ledgermq.embedded import EmbeddedBroker
from support.brokers.storage_once import PREPARE


@pytest.fixture(autouse=True, scope="module")
def storage_is_prepared_by_kafka() -> Iterator[None]:
    """Of each broker anew, unlike that of all other tests."""
    with patch.object(EmbeddedBroker, "_format", PREPARE):
        yield
