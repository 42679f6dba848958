"""`ledgermq restore`: a checkpoint from a rebuild, for when checkpoints are lost or wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click

from ledgermq.cli.options.consent import confirm, expect_answer, yes_option
from ledgermq.cli.options.moments import at_option
from ledgermq.cli.options.once import OnceCommand
from ledgermq.cli.options.spark import spark_job
from ledgermq.cli.options.target import Target, resting_target_options
from ledgermq.cli.printing.output import Column, Output, count_of, headed, size_text
from ledgermq.errors import LedgerMQError
from ledgermq.protocol.instants import iso_time
from ledgermq.wire.topics.registry import Claim

if TYPE_CHECKING:
    from ledgermq.processor.checkpoints.loading import FoundCheckpoint
    from ledgermq.processor.checkpoints.restoring import RebuiltState, Verdict
    from ledgermq_spark.jobs.proven_rebuild import ProvenRebuild
    from ledgermq_spark.log.positions import PartitionRange
    from ledgermq_spark.rebuild.checkpoints import Checkpoint

COLUMNS: Final = (
    Column(key="position", heading="CHECKPOINT", number=True),
    *headed("verdict", "fate"),
    Column(key="why", heading="WHY", whole=True),
)


class RestoreRefusedError(LedgerMQError):
    """A worker runs, or checkpoints contradict each other and the log cannot say which is right."""

    code = "restore-refused"


@click.command(cls=OnceCommand)
@at_option
@click.option(
    "--from-checkpoint",
    is_flag=True,
    help="Fold the log from the oldest usable checkpoint instead of its beginning; done in any "
    "case if the log is trimmed.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be written and taken away.")
@yes_option
@resting_target_options
def restore(
    target: Target, output: Output, at: Any, from_checkpoint: bool, dry_run: bool, yes: bool
) -> None:
    """Make a checkpoint from a rebuild, so that the next worker starts from it.

    Use it when checkpoints are lost or wrong, and stop the workers first. The state is rebuilt from
    the log and compared with the outcomes on the lanes; checkpoints that differ are deleted. The
    log is only read.
    """
    from ledgermq.processor.checkpoints.restoring import (
        RebuiltState,
        find_checkpoints,
        judge,
        write_restored,
    )
    from ledgermq_spark.jobs.proven_rebuild import proven_rebuild

    ask = f"this writes a checkpoint of {target.queue_manager}"
    if not (dry_run or yes):
        expect_answer(ask)
    claim, position, log = _position(target, at)
    target.refuse_if_served(RestoreRefusedError)
    ledger = target.ledger_of(claim)
    found = find_checkpoints(ledger)
    trimmed = log.start > 0
    base = _base(target, claim, found, log, position) if from_checkpoint or trimmed else None
    with spark_job(target, output, "restore") as job:
        proven = proven_rebuild(
            position=position,
            base=base,
            digests_at=frozenset(one.position for one in found if not one.problem),
            **job,
        )
        # Taken out of Spark while that runs.
        rebuilt = proven.rebuilt
        state = RebuiltState(
            position=rebuilt.position,
            digest=rebuilt.digest,
            chain=rebuilt.chain,
            root=rebuilt.root_bytes,
            blocks=rebuilt.named_blocks(),
        )
    verdicts = judge(found, proven.digests)
    _refuse_contradiction(target, base, verdicts, trimmed)
    document = _document(target, base, proven, state, verdicts) | {"dry_run": dry_run}
    if not output.as_json:
        _show(output, target, proven, verdicts)
    retired = [one.position for one in verdicts if one.is_retired]
    if not (dry_run or yes):
        also = f" and takes away those at {', '.join(map(str, retired))}" if retired else ""
        confirm(ask + also)
    if not dry_run:
        # The rebuild may have taken minutes.
        target.refuse_if_served(RestoreRefusedError)
        written = write_restored(ledger, state, retired)
        document |= {"restored": True, **asdict(written)}
    output.done(_told(document), document)


def _position(target: Target, at: Any) -> tuple[Claim, int, PartitionRange]:
    """The queue manager, the position that is asked for, and what there is of the log.

    Raises:
        PositionOutOfRangeError: The log does not have it, or is empty.
    """
    from ledgermq_spark.log.positions import PositionOutOfRangeError, resolve_at

    claim, log = target.located()
    position = resolve_at(target.bootstrap, log, at)
    if log.end == log.start:
        raise PositionOutOfRangeError(
            f"the log of {target.queue_manager} holds no records, so there is no state to restore"
        )
    return claim, position, log


def _base(
    target: Target,
    claim: Claim,
    found: Sequence[FoundCheckpoint],
    log: PartitionRange,
    position: int,
) -> Checkpoint | None:
    """The oldest checkpoint that what is left can be folded from: by it others are judged."""
    from ledgermq_spark.rebuild.checkpoints import read_checkpoints

    usable = [
        one.position
        for one in found
        if not one.problem and log.start - 1 <= one.position <= position
    ]
    if not usable:
        return None
    stored = read_checkpoints(target.bootstrap, target.topics, claim)
    return stored.load(usable[0])


def _refuse_contradiction(
    target: Target, base: Checkpoint | None, verdicts: Sequence[Verdict], trimmed: bool
) -> None:
    """Raises RestoreRefusedError if a checkpoint differs from the one that the fold began with."""
    from ledgermq.processor.checkpoints.restoring import WRONG

    wrong = [str(one.position) for one in verdicts if one.verdict == WRONG]
    if base is None or not wrong:
        return
    help_for = (
        "the log before them is gone, so that none can be proven: nothing was changed"
        if trimmed
        else "leave out --from-checkpoint, and the beginning of the log says which is right"
    )
    raise RestoreRefusedError(
        f"checkpoints of {target.queue_manager} contradict each other: from the one at position "
        f"{base.position} on, the log does not come to what is at {', '.join(wrong)}; {help_for}"
    )


def _document(
    target: Target,
    base: Checkpoint | None,
    proven: ProvenRebuild,
    state: RebuiltState,
    verdicts: Sequence[Verdict],
) -> dict[str, Any]:
    return {
        "queue_manager": target.queue_manager,
        "position": state.position,
        "time": iso_time(proven.rebuilt.time),
        "digest": state.digest,
        "chain": state.chain.hex(),
        "size_bytes": len(state.root) + sum(len(value) for _, _, value in state.blocks),
        "folded_from": 0 if base is None else base.position + 1,
        "starts_from": _starts_from(proven, verdicts),
        "checkpoints": [{**asdict(one), "retired": one.is_retired} for one in verdicts],
        "outcomes_compared": proven.compared,
        "chain_proof": proven.chain_proof.told(),
        "notes": proven.notes,
        "restored": False,
    }


def _starts_from(proven: ProvenRebuild, verdicts: Sequence[Verdict]) -> int:
    """The position that the next worker starts from."""
    return max([proven.rebuilt.position, *(one.position for one in verdicts if not one.is_retired)])


def _show(
    output: Output, target: Target, proven: ProvenRebuild, verdicts: Sequence[Verdict]
) -> None:
    """Tells what is there and what speaks for the rebuilt state."""
    position = proven.rebuilt.position
    if verdicts:
        fates = {True: "taken away", False: "stays"}
        output.table(COLUMNS, [{**asdict(one), "fate": fates[one.is_retired]} for one in verdicts])
    else:
        output.remark(f"{target.queue_manager} has no checkpoint")
    output.remark(f"{proven.chain_proof.told()}; {count_of(proven.compared, 'outcome')} compared")
    for note in proven.notes:
        output.remark(note)
    starts_from = _starts_from(proven, verdicts)
    if starts_from > position:
        output.remark(
            f"the next worker starts from the checkpoint at position {starts_from}, which is higher"
        )


def _told(document: dict[str, Any]) -> str:
    where = f"{document['queue_manager']}@{document['position']}"
    size = size_text(document["size_bytes"])
    if not document["restored"]:
        there = any(
            one["position"] == document["position"] and not one["retired"]
            for one in document["checkpoints"]
        )
        told = "stands already, and is right," if there else "would be written"
        return f"a checkpoint {told} at {where}: {size}, digest {document['digest']}"
    chunks = f"{count_of(document['chunks'], 'chunk')} ({document['present']} were there)"
    return (
        f"a checkpoint stands at {where}: {size} in {chunks}, loaded again with the same digest "
        f"{document['digest']}"
    )
