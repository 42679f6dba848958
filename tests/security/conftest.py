"""One secured installation for the tests of a file."""

import pytest

from support.brokers.secured_installation import secured_installation


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    """A secured broker with a user of each role, and a worker that runs as user `worker`."""
    with secured_installation(tmp_path_factory.mktemp("secured")) as installation:
        yield installation
