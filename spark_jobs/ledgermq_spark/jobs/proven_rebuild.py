"""A rebuild that others bear witness of, so that a checkpoint may be made of it.

Theory of operation. The digest chain of the fold must agree with the anchors on the lanes, and the
lanes may tell of nothing above the end of the log: else the log is not the one that was answered,
and nothing is made of it. The outcomes of the fold are compared with those on the lanes. Where one
is missing nobody answered yet, and a worker that starts above it never would (H1): the state is
taken below. Where one differs a client was told what the log does not say; the log is right, so
that is only told. Digests of the state on the way show which checkpoints are wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

from ledgermq.errors import LedgerMQError
from ledgermq_spark.audit.anchors import ChainProof
from ledgermq_spark.audit.auditing import prove_chain
from ledgermq_spark.audit.compare import Differences, differences
from ledgermq_spark.audit.findings.evidence import Evidence
from ledgermq_spark.audit.lane_ends import lane_floors
from ledgermq_spark.audit.witnesses import Witnesses, recorded_above
from ledgermq_spark.jobs.work import STEPS, Work, begin, fold, lanes_frame, told_outcomes
from ledgermq_spark.laws.engines.engine import Frame
from ledgermq_spark.log.skipped import answered_before
from ledgermq_spark.rebuild.checkpoints import Checkpoint
from ledgermq_spark.rebuild.rebuilt import Digests, FoldStoppedError, Rebuilt, why_stopped
from ledgermq_spark.rebuild.running import LogJobOptions

LOOK = "see what `ledgermq audit` says"


class RebuildUnprovenError(LedgerMQError):
    """What others wrote down speaks against the log, or nothing of it was answered yet."""

    code = "rebuild-unproven"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvenRebuild:
    """A state that may be restored, and what speaks for it.

    `rebuilt` may stand below the position that was asked for; `notes` say why, and what else a
    person should know. `digests` are those that checkpoints must have, by position; `compared` is
    how many outcomes of the fold were held against the lanes.
    """

    rebuilt: Rebuilt
    digests: dict[int, Digests]
    chain_proof: ChainProof
    compared: int
    notes: list[str]


def proven_rebuild(
    bootstrap: str,
    queue_manager: str,
    position: int,
    *,
    base: Checkpoint | None = None,
    digests_at: frozenset[int] = frozenset(),
    **options: Unpack[LogJobOptions],
) -> ProvenRebuild:
    """Rebuild a state at or below a position, from zero or from a checkpoint taken as it is.

    Args:
        bootstrap: Address of the Kafka cluster.
        queue_manager: Its name.
        position: The highest position wanted, one that the log has.
        base: The checkpoint to begin with; without one the fold begins with position 0.
        digests_at: Positions of checkpoints; of those on the log the digests are told.
        **options: How it runs, as `LogJobOptions` says.

    Raises:
        RebuildUnprovenError: Witnesses speak against the log, or nothing of it was answered.
        FoldStoppedError: The log has a hole, or an entry of an unknown protocol version.
        LogTrimmedError: The start of the log is gone and no base was given.
        LogUnreachableError: The cluster does not answer, or lacks the topics.
    """
    work = begin(bootstrap, queue_manager, **options)
    with work.stage("folding", 1):
        rebuilt = fold(work, position, base, tells=("outcome", "links"), digests_at=digests_at)
    if rebuilt.stopped is not None:
        raise FoldStoppedError(why_stopped(queue_manager, rebuilt.stopped))
    digests = dict(rebuilt.digests)
    with work.stage("hearing the lanes", 2):
        lanes = lanes_frame(work, position)
        recorded = lanes.where(
            f"position BETWEEN 0 AND {position} AND NOT ({answered_before(rebuilt.skipped)})"
        )
        proof, notes = _prove(work, rebuilt, lanes, recorded, base)
    with work.stage("comparing outcomes", 3):
        found = _compare(work, rebuilt, recorded, base)
    notes += _contradictions(found)
    highest = max((one for one in digests_at if one < work.log.end), default=-1)
    if highest > position:
        with work.stage("judging checkpoints above", 4):
            above = fold(work, highest, _as_base(rebuilt), digests_at=digests_at)
        digests |= above.digests
    allowed = _allowed(rebuilt, found, base)
    if allowed < position:
        notes.append(_why_lower(position, allowed, found))
        with work.stage("folding again, to what was answered", 4):
            rebuilt = fold(work, allowed, base)
    if base is not None:
        notes.append(
            f"the state up to position {base.position} is that of the checkpoint there, which was "
            "taken as it is"
        )
        digests[base.position] = Digests(base.manifest["digest"], base.manifest["chain"])
    work.tell("done", STEPS, STEPS)
    compared = found.compared - found.totals.get("expired", 0)
    return ProvenRebuild(
        rebuilt=rebuilt, digests=digests, chain_proof=proof, compared=compared, notes=notes
    )


def _as_base(rebuilt: Rebuilt) -> Checkpoint:
    """A rebuilt state as one to fold on from."""
    manifest = {"position": rebuilt.position, "chain": rebuilt.chain}
    return Checkpoint(manifest=manifest, root=rebuilt.root_bytes, blocks=rebuilt.block_bytes())


def _prove(
    work: Work,
    rebuilt: Rebuilt,
    lanes: Frame,
    recorded: Frame,
    base: Checkpoint | None,
) -> tuple[ChainProof, list[str]]:
    """Holds the chain against the lanes; RebuildUnprovenError if the log is not what they saw."""
    name = rebuilt.queue_manager
    above = recorded_above(lanes, work.log.end, [])
    if above is not None:
        raise RebuildUnprovenError(
            f"{name}: {above.evidence().summary}. Restore the log; what was answered must be there"
        )
    evidence: list[Evidence] = []
    told = Witnesses(outcomes=recorded, anchors=[], above=None)
    proof = prove_chain(work, rebuilt, recorded, told, evidence, [], base=base)
    if proof.differs_from is not None:
        raise RebuildUnprovenError(
            f"{name}: {evidence[0].summary}. Nothing is restored from it: {LOOK}, and restore the "
            "log. If it is right as it is, declare so with `ledgermq checkpoint discard`: a worker "
            "folds all of it"
        )
    return proof, [one.summary for one in evidence]


def _compare(work: Work, rebuilt: Rebuilt, recorded: Frame, base: Checkpoint | None) -> Differences:
    start = -1 if base is None else base.position
    return differences(
        told_outcomes(rebuilt, recorded.engine),
        recorded.where(f"position > {start}"),
        work.claim.lanes,
        floors=lane_floors(work, recorded),
    )


def _contradictions(found: Differences) -> list[str]:
    """What lanes tell otherwise than the log, and what they tell no more, each in a sentence."""
    notes = []
    count = sum(found.totals.get(one, 0) for one in ("extra", "differing", "chain"))
    if count:
        first = min([*found.extra, *found.differing, *found.chains])
        notes.append(
            f"{count:,} outcomes on the lanes are not those of the log, the first at position "
            f"{first[0]}: clients were told otherwise; {LOOK}"
        )
    expired = found.totals.get("expired", 0)
    if expired:
        notes.append(f"{expired:,} outcomes have expired on the lanes: they were not compared")
    return notes


def _first_missing(found: Differences) -> int | None:
    """The lowest position with an outcome that no lane has, or a lower one; None: all are there."""
    if not found.totals.get("missing"):
        return None
    # Only the lowest outcomes that differ in any way come to the driver.
    return min(found.missing or [max([*found.extra, *found.differing, *found.chains])])[0]


def _allowed(rebuilt: Rebuilt, found: Differences, base: Checkpoint | None) -> int:
    """The highest position at which a checkpoint may stand; RebuildUnprovenError if there is none.

    That is one with a record (§8), at and below which all is answered (H1).
    """
    missing = _first_missing(found)
    allowed = rebuilt.position if missing is None else missing - 1
    for one in reversed(rebuilt.skipped):
        if one.hole and one.first <= allowed <= one.last:
            allowed = one.first - 1
    if allowed < (0 if base is None else base.position):
        raise RebuildUnprovenError(
            f"{rebuilt.queue_manager}: no position of the log can be restored: the lanes lack the "
            f"outcome of position {missing}. Start a worker: it folds the log and answers anew"
        )
    return allowed


def _why_lower(asked: int, allowed: int, found: Differences) -> str:
    if _first_missing(found) == allowed + 1:
        return (
            f"the lanes lack the outcome of position {allowed + 1}, which a worker has yet to "
            f"write: {allowed} is restored, not {asked}"
        )
    return f"there is no record at position {asked}: {allowed} is restored"
