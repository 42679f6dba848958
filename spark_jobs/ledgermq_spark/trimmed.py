"""The audit of a log whose beginning was cut: from the oldest checkpoint that is left on.

What stood before can prove nothing, so the verdict is *unproven* at best (H25). What is left is
proven as far as it goes: the operations by the digest chain, the outcomes and the live state by a
fold that begins with the checkpoint, which is taken as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from ledgermq_spark.anchors import Anchor
from ledgermq_spark.audit import AuditReport, unreadable_chunks
from ledgermq_spark.auditing import checkpoint_at, lane_floors, nothing_to_prove, prove_chain
from ledgermq_spark.checkpoints import (
    Checkpoint,
    CheckpointBrokenError,
    Checkpoints,
    read_checkpoints,
)
from ledgermq_spark.classify import classify
from ledgermq_spark.compare import Differences, differences
from ledgermq_spark.conservation import CONSERVATION, check_counts
from ledgermq_spark.evidence import Evidence
from ledgermq_spark.rebuild import Rebuilt, fold_log
from ledgermq_spark.relocations import altered_copies
from ledgermq_spark.states import compare_live
from ledgermq_spark.work import STEPS, Work

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["audit_of_rest"]


def audit_of_rest(
    work: Work, position: int, live_position: int | None, anchors: Sequence[Anchor]
) -> AuditReport:
    """Audits what is left of a log, from the oldest whole checkpoint that covers its beginning."""
    with work.stage("reading checkpoints"):
        checkpoints = read_checkpoints(
            work.bootstrap,
            work.topics.checkpoints,
            work.claim.partition,
            work.claim.queue_manager,
        )
        base = _base(work, checkpoints, position)
    if base is None:
        return nothing_to_prove(work, position)
    findings: list[Evidence] = []
    reach = (
        f"the log begins at position {work.log.start}: what stood before can prove nothing. The "
        f"proof reaches from position {base.position + 1} on; the state up to {base.position} is "
        f"that of the checkpoint there, digest {base.manifest['digest']}"
    )
    unproven = [reach]
    live = checkpoint_at(checkpoints, position, live_position, findings)
    with work.stage("folding and reading the log", 1):
        rebuilt = _fold(work, base, position)
        recorded = work.outcomes(position)
    findings.extend(unreadable_chunks(recorded))
    recorded = recorded.where(f.col("position") >= 0)
    with work.stage("comparing the digest chain", 3):
        proof = prove_chain(
            work, rebuilt, recorded, checkpoints, anchors, findings, unproven, base=base
        )
    with work.stage("comparing", 5):
        rest = recorded.where(f.col("position").between(base.position + 1, rebuilt.position))
        found = _differences(work, rebuilt, rest, live)
        findings.extend(classify(found, set(), {}))
        findings.extend(altered_copies(work.operations(position), rebuilt.outcomes()))
        notes = _compare_states(rebuilt, live, findings)
    if rebuilt.stopped is not None:
        unproven.append(f"the fold stopped above position {rebuilt.position}")
    unproven += [
        f"{found.totals[missing]} outcomes are {missing}: they were not compared"
        for missing in ("expired", "unanswered")
        if found.totals.get(missing)
    ]
    work.tell("done", STEPS, STEPS)
    return replace(
        nothing_to_prove(work, position),
        time=rebuilt.time,
        position=rebuilt.position,
        verdict="anomalies" if findings else "unproven",
        anomalies=findings,
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
        seconds=work.seconds,
    )


def _fold(work: Work, base: Checkpoint, position: int) -> Rebuilt:
    return fold_log(
        work.spark,
        work.bootstrap,
        work.claim,
        work.log,
        position,
        checkpoint=base,
        with_outcomes=True,
        with_links=True,
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
        rebuilt.outcomes(),
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
        "the tables were not made: they need the log from position 0 on",
        f"{CONSERVATION}: that the counts of the rebuilt state add up was all there is to check",
    ]
    if live is None or live.position != rebuilt.position:
        return [*notes, "the live state was not compared: there is no checkpoint at this position"]
    findings.extend(compare_live(rebuilt.root_bytes, rebuilt.block_bytes(), live, rebuilt.position))
    return notes
