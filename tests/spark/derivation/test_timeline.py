"""Tests of state time as the tables compute it (PROTOCOL.md §6)."""

import random

import pytest

from ledgermq.core.apply import new_state
from ledgermq.core.clock import agrees
from ledgermq.protocol.operations import TimeAgreed
from ledgermq.wire.framing.codec import decode_operation
from ledgermq_spark.derivation.timeline import clocks
from support.audits.audits import audited
from support.brokers.log_writer import LOG_APPEND_TIME, Script, fold_one
from support.random_logs.random_log import RandomLog

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
    assert [time for time, _ in clocks((-1, -1), entries)] == expected


def stamps_of(script):
    """Append time of each entry, whether it is trusted, and whether it agrees."""
    for entry in script.entries:
        operation = decode_operation(entry.value)
        agreed = isinstance(operation, TimeAgreed) and agrees(operation, entry.time_us)
        yield entry.time_us, entry.stamp == LOG_APPEND_TIME, agreed


@pytest.mark.parametrize("seed", range(8))
def test_state_time_is_that_of_the_fold_whatever_the_clock_does(seed):
    """Time and reference after every entry, with a clock that leaps and is set back (H6)."""
    script = Script(random=random.Random(seed))
    RandomLog(script, ends=True, clock=True).grow(300)
    state, expected, contents = new_state(), [], {}
    for position, entry in enumerate(script.entries):
        fold_one(state, contents, position, entry)
        expected.append((state.time, state.time_reference))
    assert list(clocks((-1, -1), stamps_of(script))) == expected
    assert len({reference for _, reference in expected}) > 3


@pytest.mark.long
def test_an_audit_of_a_log_whose_clock_was_set_back_agrees(spark, tmp_path):
    """Expiries, births, redeliveries, lost sessions and time-outs raise no alarm (H6)."""
    script = Script(random=random.Random(1))
    RandomLog(script, topics=True, ends=True, redelivery=True, quotas=True, clock=True).grow(160)
    ahead = [reference >= 0 for _, reference in clocks((-1, -1), stamps_of(script))]
    assert sum(ahead) > len(ahead) // 3
    report = audited(spark, tmp_path, script.entries)
    assert report.anomalies == []
    assert report.verdict == "agrees"
