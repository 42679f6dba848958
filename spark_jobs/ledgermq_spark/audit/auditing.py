"""An audit on its way: what is read, aligned, folded, held against anchors and compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Final

from ledgermq.protocol.administration import PositionsSkipped
from ledgermq_spark.audit.alignment import alignment
from ledgermq_spark.audit.anchors import CHECKPOINT, GIVEN, Anchor, ChainProof, anchor_findings
from ledgermq_spark.audit.audit import AuditReport, Subject, audit
from ledgermq_spark.audit.findings.evidence import Evidence, beyond_these, judge
from ledgermq_spark.audit.headers import check_operation_headers
from ledgermq_spark.audit.lane_ends import answered_until, lane_floors
from ledgermq_spark.audit.witnesses import Noted, Witnesses, hear
from ledgermq_spark.jobs.work import EVERYTHING, STEPS, Work, facts_of, fold, lanes_frame, read_all
from ledgermq_spark.laws.engines.engine import Frame
from ledgermq_spark.laws.facts import Facts
from ledgermq_spark.log.rows import BYTES, LONG
from ledgermq_spark.log.skipped import answered_before
from ledgermq_spark.rebuild.checkpoints import (
    Checkpoint,
    CheckpointBrokenError,
    Checkpoints,
    read_checkpoints,
)
from ledgermq_spark.rebuild.frames import links_frame
from ledgermq_spark.rebuild.rebuilt import Rebuilt, hole_told

NOTES_MAX = 50
DECLARED: Final = """
SELECT position, range_first, range_last, actor, why FROM {rows} WHERE kind = 'PositionsSkipped'
ORDER BY position
"""


def audit_of_all(
    work: Work,
    position: int,
    live_position: int | None,
    noted: Noted,
    with_facts: Callable[[Facts], None] | None,
) -> AuditReport:
    """Read, align, fold, ask the laws, compare: all of a log up to a position."""
    findings: list[Evidence] = []
    unproven: list[str] = []
    with work.stage("reading checkpoints"):
        checkpoints = checkpoints_of(work)
        live = checkpoint_at(checkpoints, position, live_position, findings)
    with work.stage("folding and reading the log", 1):
        rebuilt, read, lanes = read_all(work, position)
        engine = work.engine(rebuilt.files)
        operations = Frame.taken(engine, "operations_read", read)
        told = hear(work, Frame.taken(engine, "lanes", lanes), checkpoints, noted)
        of_headers = [*check_operation_headers(operations), *told.of_headers]
        if rebuilt.skipped:
            read = work.operations(position, skipped=rebuilt.skipped)
            operations = Frame.taken(engine, "operations_read", read)
    findings.extend(told.findings)
    answered = told.outcomes.where(f"NOT ({answered_before(rebuilt.skipped)})")
    recorded = answered.where(f"position <= {position}")
    with work.stage("comparing the digest chain", 2):
        proof = prove_chain(work, rebuilt, recorded, told, findings, unproven)
    with work.stage("aligning log and lanes", 3):
        aligned = alignment(operations, answered, position + 1)
    findings.extend(aligned.evidence)
    proof = tell_of_cut(told, proof, findings)
    end = _comparable_end(rebuilt, aligned.comparable_until, findings, unproven)
    notes = _declaration_notes(operations) if rebuilt.skipped else []
    if end < position:
        notes.append(f"nothing above position {end} was compared, up to {position}")
        live = None
        operations = operations.where(f"position <= {end}")
        recorded = recorded.where(f"position <= {end}")
        if end != rebuilt.position:
            with work.stage("folding again, up to the gap", 3):
                rebuilt = fold(work, end, tells=EVERYTHING)
    facts = facts_of(rebuilt, operations)
    if with_facts is not None:
        with_facts(facts)
    subject = Subject(
        rebuilt=rebuilt,
        lanes=work.claim.lanes,
        operations=operations,
        expected=Frame(engine, facts.frame("outcomes")),
        recorded=recorded,
        facts=facts,
        live=live,
        floors=lane_floors(work, recorded),
        answered_until=answered_until(recorded, live),
        first_findings=findings,
        of_headers=of_headers,
        unproven=unproven,
        notes=notes,
    )
    return report_on(work, subject, proof)


def audit_behind(
    work: Work, told: Witnesses, base: Checkpoint | None, subject: Subject
) -> AuditReport:
    """Compare what stands behind a state that is taken as it is; None: from the beginning on.

    Of what the subject has, `recorded` are all outcomes that there are.
    """
    rebuilt, findings, unproven = subject.rebuilt, subject.first_findings, subject.unproven
    answered = subject.recorded.where(f"NOT ({answered_before(rebuilt.skipped)})")
    recorded = answered.where(f"position <= {rebuilt.position}")
    with work.stage("comparing the digest chain", 3):
        proof = prove_chain(work, rebuilt, recorded, told, findings, unproven, base=base)
        proof = tell_of_cut(told, proof, findings)
    if rebuilt.stopped is not None:
        unproven.append(f"the fold stopped above position {rebuilt.position}")
    behind = recorded.where(f"position >= {subject.since}")
    until = answered_until(behind, subject.live)
    return report_on(work, replace(subject, recorded=behind, answered_until=until), proof)


def report_on(work: Work, subject: Subject, proof: ChainProof) -> AuditReport:
    """The report on all that was read, with what anchors prove of it."""
    with work.stage("comparing, and asking the laws", 4):
        report = audit(subject)
    work.tell("done", STEPS, STEPS)
    told = proof.as_dict() | {"told": proof.told()}
    return replace(report, chain_proof=told, seconds=work.seconds)


def checkpoints_of(work: Work) -> Checkpoints:
    """What stands on the queue manager's partition of the checkpoints topic."""
    return read_checkpoints(work.bootstrap, work.topics, work.claim)


def prove_chain(
    work: Work,
    rebuilt: Rebuilt,
    recorded: Frame,
    told: Witnesses,
    findings: list[Evidence],
    unproven: list[str],
    *,
    base: Checkpoint | None = None,
) -> ChainProof:
    """Holds the digest chain against every anchor there is; adds to findings and to what is open.

    With a checkpoint as its base the chain begins there: that is then no anchor of its own.
    """
    start, of_base = 0, None
    links = Frame.taken(recorded.engine, "links", links_frame(rebuilt.files))
    if base is not None:
        start = base.position
        of_base = Anchor(start, bytes(base.manifest["chain"]), CHECKPOINT)
        columns = (("position", LONG), ("payload", BYTES))
        first = links.beside("first_link", columns, [(start, of_base.digest)])
        links = links.ask("SELECT * FROM {rows} UNION ALL SELECT * FROM {first}", first=first)
    proof, evidence, open_ends = anchor_findings(
        links,
        recorded.where(f"position >= {start}"),
        [one for one in told.anchors if one.position >= start and one != of_base],
        rebuilt.position,
        start=start,
        log_ends=rebuilt.stopped is None and rebuilt.position == work.log.end - 1,
    )
    findings.extend(evidence)
    unproven.extend(open_ends)
    unproven.extend(
        f"the anchor at position {one.position} was not compared: what stood there is gone"
        for one in told.anchors
        if one.source == GIVEN and one.position < start
    )
    return proof


def tell_of_cut(told: Witnesses, proof: ChainProof, findings: list[Evidence]) -> ChainProof:
    """Adds to the findings that the log lost its tail, and to the proof where it differs.

    A log that differs further down is another one, so that its end proves nothing more. Operations
    that are missing above the end are told of with it, and not again.
    """
    if told.above is None or proof.differs_from is not None:
        return proof
    end = told.above.end
    gaps = [one for one in findings if one.kind == "gap" and one.position >= end]
    findings[:] = [one for one in findings if one not in gaps]
    findings.append(told.above.evidence(gaps[0] if gaps else None))
    return replace(proof, differs_from=end, differs_to=told.above.lowest)


def checkpoint_at(
    checkpoints: Checkpoints, position: int, asked: int | None, findings: list[Evidence]
) -> Checkpoint | None:
    """The checkpoint at the position: the live state as its worker knows it."""
    if position not in checkpoints.manifests and asked is None:
        return None
    try:
        return checkpoints.load(position)
    except CheckpointBrokenError as problem:
        findings.append(
            Evidence(
                kind="digest mismatch",
                source="live state",
                summary=str(problem),
                position=position,
            )
        )
        return None


def _comparable_end(
    rebuilt: Rebuilt,
    aligned_until: int | None,
    findings: list[Evidence],
    unproven: list[str],
) -> int:
    """Up to where everything can be compared: holes and unknown versions end it earlier."""
    end = rebuilt.position if aligned_until is None else min(rebuilt.position, aligned_until)
    stopped = rebuilt.stopped
    if stopped is not None and stopped["why"] == "hole":
        findings.append(
            Evidence(
                kind="gap",
                source="operations",
                summary="the log has a hole: positions are missing from it",
                position=stopped["position"],
                expected=f"a record at position {stopped['position']}",
                found=hole_told(stopped),
            )
        )
    elif stopped is not None:
        unproven.append(
            f"entries from position {stopped['position']} on need protocol version "
            f"{stopped['version']}, which this program does not know"
        )
    return end


def audit_of_nothing(work: Work, noted: Noted) -> AuditReport:
    """The audit of a log that holds nothing: then nobody may tell of a record on it."""
    with work.stage("reading checkpoints"):
        told = hear(work, lanes_frame(work, -1), checkpoints_of(work), noted)
    report = witnessed(work, -1, told, told.of_headers)
    return replace(report, seconds=work.seconds)


def witnessed(
    work: Work, position: int, told: Witnesses, of_headers: list[Evidence]
) -> AuditReport:
    """The report on a log that is empty, or that has lost its beginning: what witnesses tell."""
    findings = [*told.findings]
    if told.above is not None:
        findings.append(told.above.evidence())
    anomalies, consequences = judge(findings, of_headers)
    empty = position < 0
    why = (
        "the log is empty: there was nothing to audit"
        if empty
        else f"the log begins at position {work.log.start}: what stood before can prove nothing"
    )
    return AuditReport(
        queue_manager=work.claim.queue_manager,
        position=position,
        time=-1,
        verdict="anomalies" if anomalies else "agrees" if empty else "unproven",
        anomalies=anomalies,
        consequences=consequences,
        beyond=beyond_these({"headers": of_headers}),
        unproven=[] if empty else [why],
        notes=[why],
    )


def _declaration_notes(operations: Frame) -> list[str]:
    """Who declared what skipped, in the order of the log; of declarations that count, the first."""
    declared = _declarations(operations)
    notes = [
        f"positions {one.first} to {one.last} were declared skipped at position {position} by "
        f"{one.actor}: {one.reason}"
        for position, one in islice(declared, NOTES_MAX)
    ]
    more = sum(1 for _ in declared)
    return [*notes, f"positions were declared skipped {more:,} times more"] if more else notes


def _declarations(operations: Frame) -> Iterator[tuple[int, PositionsSkipped]]:
    """Declarations that count, with where they stand."""
    for row in operations.rows(DECLARED):
        (first,), (last,) = row["range_first"], row["range_last"]
        one = PositionsSkipped(first=first, last=last, actor=row["actor"], reason=row["why"])
        if one.counts_at(row["position"]):
            yield row["position"], one
