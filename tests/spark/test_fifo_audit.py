"""The audit of FIFO modes, and of units of work and sessions that administration ends (§18)."""

import random
from copy import deepcopy
from dataclasses import replace

import pytest

from ledgermq.core import operations as op
from ledgermq.core.outcomes import Delivered, Refused
from support.audits import audited
from support.log_writer import Script
from support.random_endings import RandomEndings

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MODES = ("PROTECTED", "SERIALIZED", "CONCURRENT", "PROTECTED")


@pytest.mark.parametrize("place", ["queue:b", "topic:t"])
def test_a_random_log_of_fifo_modes_agrees(spark, tmp_path, place):
    """Tables refuse what the fold refuses, and no delivery is out of order (DB-22, SES-20)."""
    script = Script(random=random.Random(3))
    RandomEndings(script, fifo_modes=MODES, places=("queue:a", place)).grow(250)
    told = [one.outcome for found in script.outcomes for one in found]
    reasons = {one.reason for one in told if isinstance(one, Refused)}
    assert {"out-of-turn", "unit-of-work-ended", "target-unknown", "reason-invalid"} <= reasons
    report = audited(spark, tmp_path, script.entries)
    assert report.anomalies == []
    assert report.verdict == "agrees"


def test_segments_and_births_in_fifo_modes_agree(spark, tmp_path):
    """Logical messages that are got complete, and messages that are born late."""
    script = Script(random=random.Random(6))
    log = RandomEndings(script, fifo_modes=MODES, delays_ms=(50, 150, 400), segmented=True)
    log.grow(250)
    assert audited(spark, tmp_path, script.entries).anomalies == []


def test_a_delivery_to_an_ended_unit_of_work_is_unexpected(spark, tmp_path):
    """The session was to be given nothing before it rolled back."""
    script = Script()
    putter, taker = script.session(), script.session("TRANSACTED")
    taker.consumer("q", credit=1)
    putter.put("q", "a")
    given = next(one for one in script.outcomes[-1] if isinstance(one.outcome, Delivered))
    ended = putter.send(op.RollbackTransaction, target_session=taker.handle, actor="a", reason="r")
    recorded = deepcopy(script.outcomes)
    again = replace(given.outcome, position=ended, index=1, first_delivery=2)
    recorded[ended].append(given._replace(outcome=again))
    report = audited(spark, tmp_path, script.entries, recorded)
    told = [one for one in report.anomalies if "unit of work was ended" in one.summary]
    assert [one.kind for one in told] == ["unexpected"]
