"""The audit of a log whose beginning was cut: from the oldest checkpoint that is left on.

What stood before can prove nothing, so the verdict is *unproven* at best (H25). What is left is
proven as far as it goes: the operations by the digest chain, the outcomes and the live state by a
fold that begins with the checkpoint, which is taken as it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from ledgermq_spark.audit.audit import AuditReport, proof_of
from ledgermq_spark.audit.auditing import (
    checkpoint_at,
    checkpoints_of,
    lane_floors,
    nothing_to_prove,
    prove_chain,
    tell_of_cut,
)
from ledgermq_spark.audit.classify import classify
from ledgermq_spark.audit.compare import Differences, differences
from ledgermq_spark.audit.conservation import CONSERVATION, check_counts
from ledgermq_spark.audit.evidence import Evidence
from ledgermq_spark.audit.judging import judge
from ledgermq_spark.audit.relocations import altered_copies
from ledgermq_spark.audit.states import compare_live
from ledgermq_spark.audit.witnesses import Noted, hear
from ledgermq_spark.jobs.work import STEPS, Work
from ledgermq_spark.log.record_headers import check_operation_headers
from ledgermq_spark.rebuild.checkpoints import Checkpoint, CheckpointBrokenError, Checkpoints
from ledgermq_spark.rebuild.rebuild import Rebuilt, fold_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def audit_of_rest(
    work: Work, position: int, live_position: int | None, noted: Noted
) -> AuditReport:
    """Audits what is left of a log, from the oldest whole checkpoint that covers its beginning."""
    with work.stage("reading checkpoints"):
        checkpoints = checkpoints_of(work)
        base = _base(work, checkpoints, position)
    with work.stage("reading the log", 1):
        told = hear(work, work.outcomes(position), checkpoints, noted)
        operations = work.operations(position)
        of_headers = [*check_operation_headers(operations), *told.of_headers]
    findings = [*told.findings]
    if base is None:
        if told.above is not None:
            findings.append(told.above.evidence())
        anomalies, consequences = judge(findings, of_headers)
        report = nothing_to_prove(work, position)
        verdict = "anomalies" if anomalies else report.verdict
        return replace(report, verdict=verdict, anomalies=anomalies, consequences=consequences)
    reach = (
        f"the log begins at position {work.log.start}: what stood before can prove nothing. The "
        f"proof reaches from position {base.position + 1} on; the state up to {base.position} is "
        f"that of the checkpoint there, digest {base.manifest['digest']}"
    )
    unproven = [reach]
    live = checkpoint_at(checkpoints, position, live_position, findings)
    with work.stage("folding", 2):
        rebuilt = _fold(work, base, position)
    recorded = told.outcomes.where(f.col("position") <= position)
    with work.stage("comparing the digest chain", 3):
        proof = prove_chain(work, rebuilt, recorded, told, findings, unproven, base=base)
        proof = tell_of_cut(told, proof, findings)
    with work.stage("comparing", 5):
        rest = recorded.where(f.col("position").between(base.position + 1, rebuilt.position))
        found = _differences(work, rebuilt, rest, live)
        findings.extend(classify(found, set(), {}))
        findings.extend(altered_copies(operations, rebuilt.told("outcome")))
        notes = _compare_states(rebuilt, live, findings)
    if rebuilt.stopped is not None:
        unproven.append(f"the fold stopped above position {rebuilt.position}")
    unproven += [
        f"{found.totals[missing]} outcomes are {missing}: they were not compared"
        for missing in ("expired", "unanswered")
        if found.totals.get(missing)
    ]
    anomalies, consequences = judge(findings, of_headers)
    work.tell("done", STEPS, STEPS)
    return replace(
        nothing_to_prove(work, position),
        time=rebuilt.time,
        position=rebuilt.position,
        verdict="anomalies" if anomalies else "unproven",
        anomalies=anomalies,
        consequences=consequences,
        unproven=unproven,
        notes=notes,
        compared={
            "operations": rebuilt.operations,
            "outcomes": found.compared,
            "recorded outcomes": found.recorded,
        },
        digest=rebuilt.digest,
        chain=rebuilt.chain.hex(),
        chain_proof=proof.as_dict() | {"told": proof.told()},
        proven=_proven(base, rebuilt),
        seconds=work.seconds,
    )


def _proven(base: Checkpoint, rebuilt: Rebuilt) -> dict[str, Any]:
    start = f"the checkpoint at position {base.position}, taken as it is"
    return proof_of(rebuilt.position, since=base.position + 1, start=start)


def _fold(work: Work, base: Checkpoint, position: int) -> Rebuilt:
    return fold_log(
        work.spark,
        work.bootstrap,
        work.claim,
        work.log,
        position,
        checkpoint=base,
        tells=("outcome", "links"),
        directory=work.store.path / f"to-{position}",
    )


def _base(work: Work, checkpoints: Checkpoints, position: int) -> Checkpoint | None:
    """The lowest whole checkpoint from which all that is left can be folded."""
    for candidate in sorted(checkpoints.manifests):
        if work.log.start - 1 <= candidate <= position:
            try:
                return checkpoints.load(candidate)
            except CheckpointBrokenError:
                continue
    return None


def _differences(
    work: Work, rebuilt: Rebuilt, recorded: DataFrame, live: Checkpoint | None
) -> Differences:
    answered = None
    if live is None:
        highest = recorded.agg(f.max("position")).collect()[0][0]
        answered = -1 if highest is None else highest
    return differences(
        rebuilt.told("outcome"),
        recorded,
        work.claim.lanes,
        floors=lane_floors(work, recorded),
        answered_until=answered,
    )


def _compare_states(
    rebuilt: Rebuilt, live: Checkpoint | None, findings: list[Evidence]
) -> list[str]:
    """Adds what the states show to the findings; tells what there was nothing to compare with."""
    states = (rebuilt.statuses, rebuilt.topics, rebuilt.subscriptions)
    findings.extend(check_counts(*states, rebuilt.position))
    notes = [
        "no law was asked: laws need the log from position 0 on",
        f"{CONSERVATION}: that the counts of the rebuilt state add up was all there is to check",
    ]
    if live is None or live.position != rebuilt.position:
        return [*notes, "the live state was not compared: there is no checkpoint at this position"]
    findings.extend(compare_live(rebuilt.root_bytes, rebuilt.block_bytes(), live, rebuilt.position))
    return notes
