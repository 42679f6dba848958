"""Tests of state time as the tables compute it (PROTOCOL.md §6)."""

import pytest

from ledgermq_spark.timeline import state_times

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param([(5, True, False), (9, True, False)], [5, 9], id="it follows the log"),
        pytest.param([(9, True, False), (5, True, False)], [9, 9], id="it never falls"),
        pytest.param(
            [(0, True, False), (60 * SECOND, True, False)], [0, 60 * SECOND], id="60 s count"
        ),
        pytest.param(
            [(0, True, False), (60 * SECOND + 1, True, False)], [0, 0], id="a leap does not count"
        ),
        pytest.param(
            [(0, True, False), (90 * SECOND, True, True), (91 * SECOND, True, False)],
            [0, 90 * SECOND, 91 * SECOND],
            id="a leap that is agreed counts",
        ),
        pytest.param(
            [(0, True, False), (SECOND, False, False)],
            [0, 0],
            id="an untrusted stamp moves nothing",
        ),
        pytest.param(
            [(7, False, False), (9, True, False)], [-1, 9], id="time starts with the first trusted"
        ),
    ],
)
def test_state_time_follows_the_rules_of_the_protocol(entries, expected):
    """Append times make state time only as far as the protocol lets them."""
    assert list(state_times(-1, entries)) == expected
