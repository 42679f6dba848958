"""What the tests of services share."""

import pytest

from ledgermq import aio


@pytest.fixture
def service(place):
    """A service that has no consumers yet, in memory and on the real broker."""
    return aio.Service(place.connect, stop_timeout_seconds=20.0)
