"""Tests of the table from reason codes to exceptions: no reason of the fold is forgotten."""

import pytest

import ledgermq
from ledgermq.client.reasons import REASON_ERRORS, error_of_reason
from ledgermq.protocol.reasons import Reason

# Records that no client of ours writes, and what client and worker settle between them.
NEVER_RAISED = {
    "answer-expired",
    "position-skipped",
    "record-empty",
    "record-unreadable",
    "schema-unknown",
    "session-sequence-gap",
    "session-window-full",
    "time-disagrees",
    "timestamp-untrusted",
}


@pytest.mark.parametrize("reason", list(Reason))
def test_each_reason_becomes_an_error_with_that_code(reason):
    """The error keeps reason, place and destination, and says them to people."""
    error = error_of_reason(
        reason, "it is so", queue_manager="QM1", position=7, destination="topic:t"
    )
    assert (error.code, error.position, error.destination) == (reason, 7, "topic:t")
    assert str(error) == f"refused by QM1@7 for topic:t: it is so [{reason}]"
    assert (type(error) is ledgermq.RefusedError) is (
        reason in NEVER_RAISED or REASON_ERRORS[reason] is ledgermq.RefusedError
    )


def test_table_of_reasons_is_complete():
    """Every reason that can reach an application has its line, and no line is left over."""
    assert set(REASON_ERRORS) == set(Reason) - NEVER_RAISED


def test_class_with_a_code_of_its_own_is_raised_for_that_reason():
    """A class whose code is a reason is what this reason raises."""
    for kind in {getattr(ledgermq.errors, name) for name in ledgermq.errors.__all__}:
        if kind.code in REASON_ERRORS:
            assert REASON_ERRORS[kind.code] is kind
