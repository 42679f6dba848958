"""What plants faults in the fold counts only what a check finds, not a fault that fails itself."""

from __future__ import annotations

import pytest

from support.planted.planted_faults import expect_found


class Counter:
    """Something to plant a fault in."""

    limit = 3

    def add(self, count: int) -> int:
        """One more than that."""
        return count + 1


def check() -> None:
    """A property of the counter."""
    assert Counter().add(1) == 2


def test_a_fault_that_a_check_finds_is_found(monkeypatch):
    """The check's own assertion fails."""
    expect_found(monkeypatch, (Counter, "add", lambda original: lambda self, count: count), check)


def test_a_fault_that_no_check_finds_is_not_found(monkeypatch):
    """A fault without effect proves that nothing looks."""
    with pytest.raises(pytest.fail.Exception):
        expect_found(monkeypatch, (Counter, "add", lambda original: original), check)


@pytest.mark.parametrize(
    "fault",
    [
        lambda original: lambda self: 7,
        lambda original: lambda self, count: original(self),
        lambda original: lambda self, count: count.missing,
    ],
    ids=["another signature", "calls the original wrongly", "fails in its own line"],
)
def test_a_fault_that_no_longer_fits_is_not_found(monkeypatch, fault):
    """Its own error stops the check, and even an assertion then counts for nothing."""

    def wrapped() -> None:
        try:
            check()
        except (TypeError, AttributeError) as error:
            raise AssertionError("the fold stopped") from error

    with pytest.raises(AssertionError, match="no longer fits add"):
        expect_found(monkeypatch, (Counter, "add", fault), wrapped)


def test_a_fault_of_another_kind_than_what_it_replaces_is_refused(monkeypatch):
    """A function in place of a value, or a value in place of a function."""
    for name, fault in (("limit", lambda original: lambda: 3), ("add", lambda original: 3)):
        with pytest.raises(AssertionError, match="function"):
            expect_found(monkeypatch, (Counter, name, fault), check)
