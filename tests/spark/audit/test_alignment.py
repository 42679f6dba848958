"""Tests that a log that lost its end is told from one with odd outcomes, however many these are."""

import pytest

from ledgermq_spark.audit.alignment import alignment
from support.audits.audits import subject_of
from support.audits.engines import duck_engine, spark_engine
from support.brokers.log_writer import Script

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def engine(request):
    """Both that answer."""
    if request.param == "duckdb":
        return duck_engine()
    return spark_engine(request.getfixturevalue("spark"))


def test_many_odd_outcomes_do_not_hide_that_the_end_was_cut(engine):
    """It once looked for what lies beyond the end among the first fifty that nobody asked for."""
    script = Script()
    session = script.session()
    for _ in range(70):
        session.put("q", "a")
    end = script.state.position
    whole = subject_of(engine, script.entries)
    odd = whole.operations.where(f"position NOT BETWEEN 2 AND 61 AND position < {end}")
    found = alignment(odd, whole.recorded, end)
    assert found.comparable_until == end - 1
    assert [(one.kind, one.position) for one in found.evidence] == [("gap", end)]
    fitting = whole.operations.where("position NOT BETWEEN 2 AND 61")
    assert alignment(fitting, whole.recorded, end + 1).evidence == []


@pytest.mark.parametrize("put", [True, False])
def test_a_missing_operation_says_how_many_messages_it_meant(engine, put):
    """Five are named of ten that it put, or that its session held and settles nowhere."""
    script = Script()
    session = script.session()
    session.consumer("q", credit=20)
    at = session.put("q", *"abcdefghij")
    if not put:
        at = session.acknowledge((1, 10))
    whole = subject_of(engine, script.entries)
    (found,) = alignment(whole.operations.where(f"position < {at}"), whole.recorded, at).evidence
    assert len(found.message_id.split(", ")) == 5
    assert found.summary.endswith(" (and 5 messages more)")
