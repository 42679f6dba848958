"""Audits of logs that exist only in memory, with times of the test's choice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ledgermq.core.queries.destination_status import subscription_statuses, topic_statuses
from ledgermq.core.queries.questions import queue_statuses
from ledgermq.core.snapshot.state_records import blocks, root_of
from ledgermq.protocol.outcomes import Addressed
from ledgermq.wire.framing.codec import decode_record, encode_record
from ledgermq_spark.audit.audit import AuditReport, Subject, audit
from ledgermq_spark.derivation.derive import Store
from ledgermq_spark.derivation.tables import build_tables
from ledgermq_spark.derivation.totals import queue_totals, subscription_totals
from ledgermq_spark.rebuild.checkpoints import BLOCK, encode_root
from support.audits.frames import operations_frame, outcomes_frame, stored_frame
from support.brokers.log_writer import LANES, Entry, fold


def subject_of(
    spark: Any, directory: Path, entries: list[Entry], recorded: list[list[Addressed]] | None = None
) -> Subject:
    """What an audit looks at: entries, the outcomes on the lanes (by default those of the fold)."""
    state, outcomes = fold(entries)
    store = Store(spark, directory)
    operations = store.keep("operations", operations_frame(spark, entries))
    lanes = store.keep("outcomes", outcomes_frame(spark, recorded or outcomes))
    expected = store.keep("expected", outcomes_frame(spark, outcomes, as_folded=True))
    tables = build_tables(store, operations, lanes, expected)
    root = encode_root(root_of(state))
    return Subject(
        queue_manager="QM1",
        position=state.position,
        time=state.time,
        lanes=LANES,
        operations=operations,
        recorded=lanes,
        expected=expected,
        tables=tables,
        root=decode_record(root)[1],
        root_bytes=root,
        blocks=lambda: [encode_record(BLOCK, one) for one in blocks(state)],
        rebuilt_messages=stored_frame(spark, list(blocks(state))),
        statuses=queue_statuses(state),
        topics=topic_statuses(state),
        subscriptions=subscription_statuses(state),
        totals=queue_totals(tables),
        subscription_totals=subscription_totals(tables),
        digest="",
        chain=bytes(32),
        live=None,
        floors={},
        answered_until=None,
    )


def audited(
    spark: Any,
    directory: Path,
    entries: list[Entry],
    recorded: list[list[Addressed]] | None = None,
    **changes: Any,
) -> AuditReport:
    """The audit of a log in memory."""
    return audit(replace(subject_of(spark, directory, entries, recorded), **changes))
