"""Audits of logs that exist only in memory, with times of the test's choice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from ledgermq.core.queries.destination_status import (
    queue_statuses,
    subscription_statuses,
    topic_statuses,
)
from ledgermq.core.snapshot.state_records import blocks, root_of
from ledgermq.core.state.manager import QueueManager
from ledgermq.protocol.outcomes import Addressed
from ledgermq.wire.framing.checkpoint_chunks import encode_root
from ledgermq.wire.framing.codec import encode_record
from ledgermq_spark.audit.audit import AuditReport, Subject, audit
from ledgermq_spark.laws.engines.engine import Engine, Frame
from ledgermq_spark.rebuild.checkpoints import BLOCK
from ledgermq_spark.rebuild.fold import incomplete_groups
from ledgermq_spark.rebuild.rebuilt import Rebuilt
from ledgermq_spark.rebuild.stalls import stalls_of
from support.audits.frames import outcomes_frame
from support.audits.testimonies import Logs
from support.brokers.log_writer import LANES, Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuiltHere(Rebuilt):
    """A state that was rebuilt here, with its blocks, and with other messages if given."""

    encoded: list[bytes]
    others: pa.Table | None = None

    def block_bytes(self) -> list[bytes]:
        """From memory, not from files."""
        return self.encoded

    def messages(self) -> pa.Table:
        """Those of the blocks, unless there are others."""
        return Rebuilt.messages(self) if self.others is None else self.others


def rebuilt_as(state: QueueManager) -> Rebuilt:
    """What a rebuild tells of a state."""
    return RebuiltHere(
        queue_manager="QM1",
        position=state.position,
        time=state.time,
        digest="",
        chain=bytes(32),
        root_bytes=encode_root(root_of(state)),
        encoded=[encode_record(BLOCK, one) for one in blocks(state)],
        statuses=queue_statuses(state),
        topics=topic_statuses(state),
        subscriptions=subscription_statuses(state),
        groups=incomplete_groups(state),
        stalls=stalls_of(state),
        files=(),
        ends=(),
        seconds=0.0,
        operations=state.position + 1,
        stopped=None,
    )


def subject_of(
    engine: Engine, entries: list[Entry], recorded: list[list[Addressed]] | None = None
) -> Subject:
    """What an audit looks at: entries, the outcomes on the lanes (by default those of the fold)."""
    logs = Logs()
    state, outcomes = logs.fold("QM1", entries)
    facts = logs.facts(engine)
    return Subject(
        rebuilt=rebuilt_as(state),
        lanes=LANES,
        operations=Frame(engine, facts.frame("operations")),
        expected=Frame(engine, facts.frame("outcomes")),
        recorded=outcomes_frame(engine, recorded or outcomes),
        facts=facts,
    )


def audited(
    engine: Engine,
    entries: list[Entry],
    recorded: list[list[Addressed]] | None = None,
    **changes: Any,
) -> AuditReport:
    """The audit of a log in memory."""
    return audit(replace(subject_of(engine, entries, recorded), **changes))
