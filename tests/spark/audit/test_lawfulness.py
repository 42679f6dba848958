"""What breaks a law is told with its place."""

import pytest

from ledgermq.protocol import operations as op
from ledgermq_spark.audit.findings.evidence import ANOMALY_KINDS
from ledgermq_spark.audit.lawfulness import breaches
from ledgermq_spark.laws.all_laws import LAWS
from ledgermq_spark.laws.law import Breach, Law
from support.audits.engines import duck_engine
from support.audits.testimonies import Logs
from support.brokers.log_writer import Script

BROKEN = """
SELECT queue_manager, -1 AS position, store, -1 AS sequence, -1 AS session, 'it is so' AS summary,
    0 AS expected, 1 AS found
FROM {stores}
"""


@pytest.mark.spark
def test_a_breach_of_a_whole_queue_names_it(spark):
    """Where no message is meant, it is the queue that must be looked at."""
    script = Script()
    made = script.session().send(op.CreateQueue, queue="orders")
    logs = Logs()
    logs.fold("QM1", script.entries)
    law = Law(letter="X", sentence="", breaches=(Breach("lost", BROKEN),))
    (found,), _ = breaches(logs.facts(duck_engine()), (law,))
    assert found.summary == f"it is so (queue:orders, made at {made})"


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.letter)
def test_what_breaks_a_law_is_of_a_kind_that_reports_list(law):
    """The audit puts findings in the order of their kinds; it has no place for another one."""
    assert {one.kind for one in law.breaches} <= {*ANOMALY_KINDS}
