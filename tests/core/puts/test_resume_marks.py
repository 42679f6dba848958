"""Resume marks: faults planted in them are found by their scripts (§16)."""

import pytest

from support.planted.planted_faults import expect_found_by, named
from support.planted.put_faults import BELIEVED, RESUME_MARKS


@pytest.mark.parametrize("planted", named(RESUME_MARKS))
def test_fault_planted_in_resume_marks_is_found(planted):
    """Random histories have marks too; what must happen at one moment is scripted."""
    expect_found_by(RESUME_MARKS, planted)


@pytest.mark.parametrize("planted", named(BELIEVED))
def test_a_quota_that_holds_up_for_ever_is_found(planted):
    """Of what is refused for a quota."""
    expect_found_by(BELIEVED, planted)
