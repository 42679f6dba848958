"""Tests of tables and audit on logs whose messages are redelivered late, or too often."""

import random

import pytest

from support.audits.audits import audited
from support.brokers.log_writer import Script
from support.random_logs.random_log import RandomLog

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize(
    ("seed", "parts"),
    [
        pytest.param(1, (), marks=pytest.mark.long),
        pytest.param(2, ("ends", "topics"), marks=pytest.mark.long),
        pytest.param(3, ("ends", "topics", "moves"), marks=pytest.mark.long),
        pytest.param(37, ("ordered", "ends", "topics", "moves"), marks=pytest.mark.long),
        # Messages come to the subscription of a topic and are delivered from there at once.
        pytest.param(17, ("ordered", "moves"), marks=pytest.mark.long),
    ],
)
def test_a_random_log_with_redelivery_agrees(spark, tmp_path, seed, parts):
    """Delays, limits, error destinations and drops are what the rebuild makes of them (§15).

    With moves also whatever else sends messages elsewhere, and ends them (§14, INF-19); ordered,
    also what follows parked messages of its group.
    """
    script = Script(random=random.Random(seed))
    RandomLog(script, redelivery=True, **dict.fromkeys(parts, True)).grow(160)
    report = audited(spark, tmp_path, script.entries)
    assert report.anomalies == []
    assert report.verdict == "agrees"
    assert report.conservation["holds"]
    # Messages that come back too often go elsewhere, and with moves those that expire.
    came = sum(one["came"] for one in report.totals)
    assert came > (20 if parts == ("ends", "topics", "moves") else 0)
