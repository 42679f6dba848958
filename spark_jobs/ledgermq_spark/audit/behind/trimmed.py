"""The audit of a log whose beginning was cut: from the oldest checkpoint that is left on.

What stood before can prove nothing, so the verdict is *unproven* at best (H25). What is left is
proven as far as it goes: the operations by the digest chain, the outcomes and the live state by a
fold that begins with the checkpoint, which is taken as it is.
"""

from __future__ import annotations

from ledgermq_spark.audit.audit import AuditReport, Subject
from ledgermq_spark.audit.auditing import audit_behind, checkpoint_at, checkpoints_of, witnessed
from ledgermq_spark.audit.headers import check_operation_headers
from ledgermq_spark.audit.lane_ends import lane_floors
from ledgermq_spark.audit.witnesses import Noted, hear
from ledgermq_spark.jobs.work import Work, fold, lanes_frame, told_outcomes
from ledgermq_spark.laws.engines.engine import Frame


def audit_of_rest(
    work: Work, position: int, live_position: int | None, noted: Noted
) -> AuditReport:
    """Audits what is left of a log, from the oldest whole checkpoint that covers its beginning."""
    with work.stage("reading checkpoints"):
        checkpoints = checkpoints_of(work)
        # The lowest from which all that is left can be folded.
        base = checkpoints.oldest_between(work.log.start - 1, position)
    with work.stage("reading the log", 1):
        lanes = lanes_frame(work, position)
        told = hear(work, lanes, checkpoints, noted)
        operations = Frame.taken(lanes.engine, "operations_read", work.operations(position))
        of_headers = [*check_operation_headers(operations), *told.of_headers]
    if base is None:
        return witnessed(work, position, told, of_headers)
    findings = [*told.findings]
    reach = (
        f"the log begins at position {work.log.start}: what stood before can prove nothing. The "
        f"proof reaches from position {base.position + 1} on; the state up to {base.position} is "
        f"that of the checkpoint there, digest {base.manifest['digest']}"
    )
    live = checkpoint_at(checkpoints, position, live_position, findings)
    with work.stage("folding", 2):
        rebuilt = fold(work, position, base, tells=("outcome", "links"))
    subject = Subject(
        rebuilt=rebuilt,
        lanes=work.claim.lanes,
        operations=operations,
        expected=told_outcomes(rebuilt, lanes.engine),
        recorded=told.outcomes,
        facts=None,
        is_whole=False,
        since=base.position + 1,
        start=f"the checkpoint at position {base.position}, taken as it is",
        live=live,
        floors=lane_floors(work, told.outcomes),
        first_findings=findings,
        of_headers=of_headers,
        unproven=[reach],
        notes=["no law was asked: laws need the log from position 0 on, or an archive of it"],
    )
    return audit_behind(work, told, base, subject)
