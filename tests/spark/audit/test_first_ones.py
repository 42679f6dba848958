"""Tests that notes and findings of which a report has the first ones say how many others are."""

import pytest

from ledgermq.protocol.administration import PositionsSkipped
from ledgermq_spark.audit.auditing import NOTES_MAX, _declaration_notes
from ledgermq_spark.audit.findings.evidence import Evidence
from ledgermq_spark.audit.witnesses import _unreadable_chunks
from ledgermq_spark.jobs import audit as job
from ledgermq_spark.log.read_log import RECORDED_COLUMNS
from ledgermq_spark.tables.traffic import LISTED_MAX
from support.audits.audits import subject_of
from support.audits.engines import duck_engine
from support.audits.frames import frame
from support.brokers.log_writer import Script
from support.pages.reports import report_of

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("more", [0, 3])
def test_declarations_beyond_the_first_are_counted(more):
    """Not those that count for nothing."""
    script = Script()
    script.session()
    for _ in range(NOTES_MAX + more):
        script.add(PositionsSkipped(first=0, last=0, actor="ops", reason="x"))
    script.add(PositionsSkipped(first=9, last=0, actor="ops", reason="x"))
    notes = _declaration_notes(subject_of(duck_engine(), script.entries).operations)
    others = [f"positions were declared skipped {more} times more"] if more else []
    assert notes[NOTES_MAX:] == others


@pytest.mark.parametrize("more", [0, 3])
def test_unreadable_records_of_the_lanes_beyond_the_first_are_counted(more):
    """The last one that is told says how many others there are."""
    names = [name for name, _ in RECORDED_COLUMNS]
    blank = {"kind": "Unreadable", "position": -1, "index": -1, "lane_partition": 0}
    rows = [
        tuple((blank | {"lane_offset": at}).get(name) for name in names)
        for at in range(LISTED_MAX + more)
    ]
    found = _unreadable_chunks(frame(duck_engine(), RECORDED_COLUMNS, rows))
    assert len(found) == LISTED_MAX
    last = f"record {LISTED_MAX - 1} of outcomes partition 0 cannot be read"
    assert found[-1].summary == last + (f", nor can {more} more records" if more else "")
    assert found[0].summary.endswith("cannot be read")


@pytest.mark.parametrize("more", [0, 3])
def test_the_job_says_of_how_many_it_prints_the_first(more, monkeypatch, capsys, tmp_path):
    """The report has all of them."""
    found = [Evidence(kind="lost", source="outcomes", summary="x")] * (job.SHOWN_MAX + more)
    report = report_of(verdict="anomalies", anomalies=found)
    monkeypatch.setattr(job, "run_audit", lambda **_: report)
    given = ["--bootstrap", "nowhere:1", "--queue-manager", "QM1", "--output", str(tmp_path)]
    assert job.main(given) == 1
    told = "the first 20 of 23 anomalies; the report has all"
    assert (told in capsys.readouterr().out) == bool(more)
