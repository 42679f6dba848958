"""Places for tests of the processor: topics of their own on the real broker."""

import pytest

from support.brokers.brief_brokers import brief_brokers
from support.brokers.worker_process import new_place


@pytest.fixture(autouse=True, scope="session")
def supervisors_are_brief():
    """Those of tests live for seconds."""
    with brief_brokers():
        yield


@pytest.fixture
def wide_place(broker, tmp_path):
    """Room for two queue managers; QM1 is claimed."""
    found = new_place(broker.bootstrap, tmp_path, partitions=2)
    yield found
    found.close()
