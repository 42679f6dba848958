"""Which backups of the journal are refused, told by the tables and by the fold, each by itself."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgermq.protocol import operations as op
from ledgermq.protocol.administration import BackUpJournal
from ledgermq.protocol.outcomes import Refused
from ledgermq_spark.derivation.administration import read_directory
from ledgermq_spark.derivation.directory import AdministrationRow
from ledgermq_spark.log.headers import settings_columns
from support.audits.audits import audited
from support.brokers.log_writer import Script

LIFETIMES = (None, None, 0, -1, 100 * 366 * 86_400_000, 100 * 366 * 86_400_000 + 1)
ALTERED = st.tuples(st.sampled_from((True, True, False, None)), st.sampled_from(LIFETIMES))
# Beside the entry itself, or beside the last backup that was applied.
BACKED = st.tuples(*[st.integers(-2, 1)] * 3, st.booleans(), st.sampled_from(("", "r", "r" * 1025)))
STEPS = st.lists(ALTERED | BACKED, max_size=12)


def rows_of(script):
    """What the tables see of a script's administration."""
    told = []
    for position, kind, operation in script:
        text, lifetime_ms = settings_columns(operation)
        told.append(
            AdministrationRow(
                position, kind, "", settings=text, maximum_lifetime_ms=lifetime_ms, flag=None
            )
        )
    return told


@settings(max_examples=200, deadline=None, derandomize=True)
@given(STEPS)
def test_tables_and_fold_refuse_the_same_backups(steps):
    """Where journaling was on, and what backups before left, decides it (DB-17, DB-19)."""
    script = Script()
    session = script.session()
    asked = []
    before = 0
    for step in steps:
        here = len(script.entries)
        if len(step) == 2:
            kind, fields = (
                op.AlterQueueManager,
                dict(zip(("journaling", "journal_lifetime_ms"), step, strict=True)),
            )
        else:
            base = before if step[3] else here
            names = ("needed_from", "kept_from", "through")
            places = {name: base + by for name, by in zip(names, step[:3], strict=True)}
            kind, fields = BackUpJournal, {**places, "actor": "a", "reason": step[4]}
        position = session.send(kind, **fields)
        common = {"session": 0, "session_sequence": 1, "answered_through": 0}
        asked.append((position, kind.__name__, kind(**common, **fields)))
        if script.state.journal.backup is not None:
            before = script.state.journal.backup.through
    refused = {
        position: one.outcome.reason
        for position, found in enumerate(script.outcomes)
        for one in found
        if isinstance(one.outcome, Refused)
    }
    assert read_directory(rows_of(asked), {}).refusals == refused


@pytest.mark.spark
@pytest.mark.long
def test_an_audit_agrees_on_a_log_with_backups_that_were_refused(spark, tmp_path):
    """The tables know why: journal-empty, backup-invalid, a lifetime that cannot be (DB-19)."""
    script = Script()
    session = script.session()
    told = {"actor": "a", "reason": "r"}
    session.send(BackUpJournal, **told, through=1, kept_from=1, needed_from=1)
    session.send(op.AlterQueueManager, journaling=True, journal_lifetime_ms=-1)
    session.send(op.AlterQueueManager, journaling=True, journal_lifetime_ms=5)
    session.put("q", "journaled")
    session.send(BackUpJournal, **told, through=9, kept_from=1, needed_from=1)
    session.send(BackUpJournal, **told, through=5, kept_from=5, needed_from=4)
    session.close()
    report = audited(spark, tmp_path, script.entries)
    assert (report.anomalies, report.verdict) == ([], "agrees")
