"""The audit of FIFO modes, and of units of work and sessions that administration ends (§18)."""

import random
from copy import deepcopy
from dataclasses import replace

import pytest

from ledgermq.protocol import operations as op
from ledgermq.protocol.outcomes import Delivered, Refused
from ledgermq_spark.audit.audit import audit
from ledgermq_spark.audit.claims import check_numbers
from support.audits.audits import subject_of
from support.brokers.log_writer import Script
from support.random_logs.random_endings import RandomEndings

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MODES = ("PROTECTED", "SERIALIZED", "CONCURRENT", "PROTECTED")


def ends_a_unit_of_work(script):
    """Appends a story; the outcomes with a delivery that the ended unit of work was not to get."""
    putter, taker = script.session(), script.session("TRANSACTED")
    taker.consumer("z", credit=1)
    putter.put("z", "a")
    given = next(one for one in script.outcomes[-1] if isinstance(one.outcome, Delivered))
    ended = putter.send(op.RollbackTransaction, target_session=taker.handle, actor="a", reason="r")
    recorded = deepcopy(script.outcomes)
    again = replace(given.outcome, position=ended, index=1, first_delivery=2)
    recorded[ended].append(given._replace(outcome=again))
    return recorded, given.outcome.messages[0]["message_id"].hex()


@pytest.mark.parametrize(
    ("seed", "place", "more"),
    [
        (6, "topic:t", {"delays_ms": (50, 150, 400), "segmented": True}),
        pytest.param(3, "topic:t", {}, marks=pytest.mark.long),
        pytest.param(3, "queue:b", {}, marks=pytest.mark.long),
    ],
    ids=["segments and births", "topic", "queues"],
)
def test_a_random_log_of_fifo_modes_agrees_but_for_what_is_planted(
    spark, tmp_path, seed, place, more
):
    """Tables refuse what the fold refuses, and no delivery is out of order (DB-22, SES-20).

    Messages wait for their redelivery; there are segments of logical messages that are got
    complete, and messages that are born late. At its end a session whose unit of work was ended
    is given something before it rolled back.
    """
    script = Script(random=random.Random(seed))
    log = RandomEndings(
        script, fifo_modes=MODES, places=("queue:a", place), redelivery_ms=(0, 300), **more
    )
    log.grow(170)
    told = [one.outcome for found in script.outcomes for one in found]
    reasons = {one.reason for one in told if isinstance(one, Refused)}
    assert {"out-of-turn", "unit-of-work-ended", "target-unknown", "reason-invalid"} <= reasons
    recorded, planted = ends_a_unit_of_work(script)
    subject = subject_of(spark, tmp_path, script.entries, recorded)
    report = audit(subject)
    assert [(one.kind, one.message_id) for one in report.anomalies] == [("duplicated", planted)]
    assert subject.tables.facts.walk.where("what = 'delayed'").count() > 5
    # Were the fold itself wrong, outcomes and rebuild would agree; the operations would not.
    (stray,) = check_numbers(subject.tables)
    assert stray.kind == "unexpected"
    assert "whose unit of work was ended" in stray.summary
