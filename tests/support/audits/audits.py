"""Audits of logs that exist only in memory, with times of the test's choice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ledgermq.core.queries.destination_status import subscription_statuses, topic_statuses
from ledgermq.core.queries.questions import queue_statuses
from ledgermq.core.snapshot.state_records import blocks, root_of
from ledgermq.protocol.outcomes import Addressed
from ledgermq.wire.framing.codec import encode_record
from ledgermq_spark.audit.audit import AuditReport, Subject, audit
from ledgermq_spark.laws.engines.engine import Engine
from ledgermq_spark.laws.engines.frame import Frame
from ledgermq_spark.rebuild.checkpoints import BLOCK, encode_root
from ledgermq_spark.rebuild.fold import incomplete_groups
from ledgermq_spark.rebuild.stalls import stalls_of
from support.audits.frames import outcomes_frame, stored_messages
from support.audits.testimonies import Logs
from support.brokers.log_writer import LANES, Entry


def subject_of(
    engine: Engine, entries: list[Entry], recorded: list[list[Addressed]] | None = None
) -> Subject:
    """What an audit looks at: entries, the outcomes on the lanes (by default those of the fold)."""
    logs = Logs()
    state, outcomes = logs.fold("QM1", entries)
    facts = logs.facts(engine)
    root = encode_root(root_of(state))
    return Subject(
        queue_manager="QM1",
        position=state.position,
        time=state.time,
        lanes=LANES,
        operations=Frame(engine, facts.frame("operations")),
        recorded=outcomes_frame(engine, recorded or outcomes),
        expected=Frame(engine, facts.frame("outcomes")),
        facts=facts,
        root_bytes=root,
        blocks=lambda: [encode_record(BLOCK, one) for one in blocks(state)],
        rebuilt_messages=lambda: stored_messages(list(blocks(state))),
        statuses=queue_statuses(state),
        topics=topic_statuses(state),
        subscriptions=subscription_statuses(state),
        groups=incomplete_groups(state),
        stalls=stalls_of(state),
        digest="",
        chain=bytes(32),
        live=None,
        floors={},
        answered_until=None,
    )


def audited(
    engine: Engine,
    entries: list[Entry],
    recorded: list[list[Addressed]] | None = None,
    **changes: Any,
) -> AuditReport:
    """The audit of a log in memory."""
    return audit(replace(subject_of(engine, entries, recorded), **changes))
