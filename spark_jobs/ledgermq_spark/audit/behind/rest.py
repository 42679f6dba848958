"""The audit of a log behind a state that is taken as it is: what comes after it is compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ledgermq_spark.audit.audit import AuditReport, proof_of
from ledgermq_spark.audit.auditing import prove_chain, tell_of_cut
from ledgermq_spark.audit.compare import differences
from ledgermq_spark.audit.conservation import CONSERVATION, check_counts
from ledgermq_spark.audit.findings.classify import classify
from ledgermq_spark.audit.findings.evidence import Evidence
from ledgermq_spark.audit.findings.judging import judge
from ledgermq_spark.audit.lane_ends import answered_until, lane_floors
from ledgermq_spark.audit.relocations import altered_copies
from ledgermq_spark.audit.states import compare_live
from ledgermq_spark.jobs.reading import told_outcomes
from ledgermq_spark.jobs.work import STEPS, Work
from ledgermq_spark.laws.engines.frame import Frame
from ledgermq_spark.pages.page import counted

if TYPE_CHECKING:
    from ledgermq_spark.audit.witnesses import Witnesses
    from ledgermq_spark.rebuild.checkpoints import Checkpoint
    from ledgermq_spark.rebuild.rebuilt import Rebuilt


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """What is audited, and what was found of it before anything is compared.

    `base` is the state before it, None at the beginning of the log, `start` the same in words;
    `laws` are those that were asked, as `lawfulness.breaches` tells, `corrections` and `by_hand` as
    `by_hand.done_by_hand` does. Reading of each lane began at `lanes_from`, None: at the first
    record there is. `unproven` says what cannot be proven of what stood before, `notes` what else
    people should know.
    """

    base: Checkpoint | None
    rebuilt: Rebuilt
    operations: Frame
    told: Witnesses
    live: Checkpoint | None
    start: str
    laws: Sequence[dict[str, Any]] = ()
    corrections: list[dict[str, Any]] = field(default_factory=list)
    by_hand: list[dict[str, Any]] = field(default_factory=list)
    lanes_from: Sequence[int] | None = None
    findings: list[Evidence] = field(default_factory=list)
    of_headers: list[Evidence] = field(default_factory=list)
    of_laws: list[Evidence] = field(default_factory=list)
    unproven: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def audit_rest(work: Work, rest: Rest) -> AuditReport:
    """Compare digest chain, outcomes, copies and states from the base on."""
    rebuilt, told = rest.rebuilt, rest.told
    findings, unproven = [*rest.findings], [*rest.unproven]
    first = 0 if rest.base is None else rest.base.position + 1
    recorded = told.outcomes.where(f"position <= {rebuilt.position}")
    expected = told_outcomes(rebuilt, recorded.engine)
    with work.stage("comparing the digest chain", 3):
        proof = prove_chain(work, rebuilt, recorded, told, findings, unproven, base=rest.base)
        proof = tell_of_cut(told, proof, findings)
    with work.stage("comparing", 5):
        behind = recorded.where(f"position >= {first}")
        found = differences(
            expected,
            behind,
            work.claim.lanes,
            floors=lane_floors(work, behind, rest.lanes_from),
            answered_until=answered_until(behind, rest.live),
        )
        findings.extend(classify(found, set(), {}))
        findings.extend(altered_copies(rest.operations, expected))
        notes = [*rest.notes, *_compare_states(rest, findings)]
    if rebuilt.stopped is not None:
        unproven.append(f"the fold stopped above position {rebuilt.position}")
    unproven += [
        f"{missing}, so that nothing was compared: {counted(found.totals[missing], 'outcomes')}"
        for missing in ("expired", "unanswered")
        if found.totals.get(missing)
    ]
    anomalies, consequences = judge(findings, [*rest.of_headers, *rest.of_laws])
    work.tell("done", STEPS, STEPS)
    return AuditReport(
        queue_manager=rebuilt.queue_manager,
        time=rebuilt.time,
        position=rebuilt.position,
        verdict="anomalies" if anomalies else "unproven" if unproven else "agrees",
        anomalies=anomalies,
        consequences=consequences,
        unproven=unproven,
        notes=notes,
        corrections=rest.corrections,
        by_hand=rest.by_hand,
        compared={
            "operations": rebuilt.operations,
            "outcomes": found.compared,
            "recorded outcomes": found.recorded,
        },
        digest=rebuilt.digest,
        chain=rebuilt.chain.hex(),
        chain_proof=proof.as_dict() | {"told": proof.told()},
        proven=proof_of(rebuilt.position, since=first, start=rest.start, laws=rest.laws),
        seconds=work.seconds,
    )


def _compare_states(rest: Rest, findings: list[Evidence]) -> list[str]:
    """Adds what the states show to the findings; tells what there was nothing to compare with."""
    rebuilt, live = rest.rebuilt, rest.live
    states = (rebuilt.statuses, rebuilt.topics, rebuilt.subscriptions)
    findings.extend(check_counts(*states, rebuilt.position))
    told = "only the counts of the rebuilt state were added up; an audit of the whole log does more"
    notes = [f"{CONSERVATION}: {told}"]
    if live is None or live.position != rebuilt.position:
        return [*notes, "the live state was not compared: there is no checkpoint at this position"]
    findings.extend(compare_live(rebuilt.root_bytes, rebuilt.block_bytes(), live, rebuilt.position))
    return notes
