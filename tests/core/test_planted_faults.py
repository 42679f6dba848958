"""What plants faults in the fold counts only what a check finds, not a fault that fails itself."""

from __future__ import annotations

import pytest

from support.planted.all_faults import FAMILIES
from support.planted.planted_faults import Fault, expect_found


class Counter:
    """Something to plant a fault in."""

    limit = 3

    def add(self, count: int) -> int:
        """One more than that."""
        return count + 1


def fault(make, name="add") -> Fault:
    """A fault of the counter."""
    return Fault("a fault", Counter, name, make)


def check() -> None:
    """A property of the counter."""
    assert Counter().add(1) == 2


def test_a_fault_that_a_check_finds_is_found():
    """The check's own assertion fails."""
    expect_found(fault(lambda original: lambda self, count: count), check)


def test_a_fault_that_no_check_finds_is_not_found():
    """A fault without effect proves that nothing looks."""
    with pytest.raises(pytest.fail.Exception):
        expect_found(fault(lambda original: original), check)


@pytest.mark.parametrize(
    "make",
    [
        lambda original: lambda self: 7,
        lambda original: lambda self, count: original(self),
        lambda original: lambda self, count: count.missing,
    ],
    ids=["another signature", "calls the original wrongly", "fails in its own line"],
)
def test_a_fault_that_no_longer_fits_is_not_found(make):
    """Its own error stops the check, and even an assertion then counts for nothing."""

    def wrapped() -> None:
        try:
            check()
        except (TypeError, AttributeError) as error:
            raise AssertionError("the fold stopped") from error

    with pytest.raises(AssertionError, match="no longer fits add"):
        expect_found(fault(make), wrapped)


def test_a_fault_of_another_kind_than_what_it_replaces_is_refused():
    """A function in place of a value, or a value in place of a function."""
    for name, make in (("limit", lambda original: lambda: 3), ("add", lambda original: 3)):
        with pytest.raises(AssertionError, match="function"):
            expect_found(fault(make, name), check)


def test_each_fault_has_a_title_of_its_own():
    """Reports name faults by their titles."""
    faults = {fault for family in FAMILIES for fault in family.faults}
    assert len({fault.title for fault in faults}) == len(faults) >= 89
