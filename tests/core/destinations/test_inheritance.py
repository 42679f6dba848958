"""What queues and topics take from the queue manager: faults planted in it are found (INF-16)."""

import pytest

from support.planted.inheritance_faults import INHERITANCE
from support.planted.planted_faults import expect_found_by, named


@pytest.mark.parametrize("planted", named(INHERITANCE))
def test_fault_planted_in_inheritance_is_found(planted):
    """By the scripts of it."""
    expect_found_by(INHERITANCE, planted)
