"""`ledgermq log trim` cuts the beginning of the ledger that nothing needs any more.

`ledgermq log relocate` writes again what old live messages need of it, `ledgermq log skip` declares
positions skipped at which every worker stops, and `ledgermq log tail` prints entries.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click
from confluent_kafka import KafkaException

from ledgermq.cli.commands.skipping import skip
from ledgermq.cli.commands.tail import tail
from ledgermq.cli.options.consent import actor_option, confirm, reason_option, yes_option
from ledgermq.cli.options.moments import MOMENT
from ledgermq.cli.options.once import OnceGroup
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.printing.exits import OK, REFUSED
from ledgermq.cli.printing.output import Column, Output, count_of, headed
from ledgermq.client.admin.relocation import Relocated
from ledgermq.client.connection import Connection
from ledgermq.errors import LedgerMQError
from ledgermq.protocol.documents.pins import LogPins
from ledgermq.protocol.instants import iso_time
from ledgermq.wire.topics.registry import Claim

if TYPE_CHECKING:
    from ledgermq_spark.log.positions import PartitionRange
    from ledgermq_spark.rebuild.checkpoints import Checkpoints


PINS_SHOWN: Final = 20
COLUMNS: Final = (
    Column(key="needed_position", heading="POSITION", number=True),
    Column(key="what", heading="NEEDED BY", whole=True),
    *headed("state", "since"),
)


class TrimRefusedError(LedgerMQError):
    """What was to be cut is needed, or without a whole checkpoint the state would be lost."""

    code = "trim-refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimPlan:
    """What a trim would cut, and what forbids it.

    `pins` are what needs records below `before`, oldest first, of messages the first so many;
    `more`: there may be others. `furthest` is the highest position that nothing below is needed of.
    """

    queue_manager: str
    start: int
    end: int
    before: int
    furthest: int
    pins: list[dict[str, Any]]
    more: bool

    @property
    def records(self) -> int:
        return max(0, self.before - self.start)

    def why_not(self) -> str:
        """What forbids the trim, in one sentence; empty if nothing does."""
        if not self.pins:
            return ""
        first = self.pins[0]
        least = "at least " if self.more else ""
        more = f" and {least}{len(self.pins) - 1} others need" if self.pins[1:] else " needs"
        far = (
            "nothing of it can be cut"
            if self.furthest <= self.start
            else f"the furthest is --before {self.furthest}"
        )
        # Kafka deleted it: nothing that is written again, or waited for, would help.
        gone = (
            f". What that one needs is gone already, as the log begins at {self.start}: get the "
            "message or delete it, and call the command again"
            if first["needed_position"] < self.start and first["state"] != "journal"
            else ""
        )
        return (
            f"the log of {self.queue_manager} cannot be cut before position {self.before}: "
            f"{first['what']}{more} what lies below; {far}{gone}"
        )


@click.group(cls=OnceGroup)
def log() -> None:
    """Look at the operations log, and manage it."""


@log.command()
@click.option(
    "--before",
    type=MOMENT,
    required=True,
    help="Cut what lies below this position, or was appended up to this time.",
)
@click.option(
    "--dry-run", is_flag=True, help="Only show what would be cut, and what still needs it."
)
@yes_option
@target_options
def trim(target: Target, output: Output, before: Any, dry_run: bool, yes: bool) -> int:
    """Cut off the beginning of the log, if no live message, checkpoint or journal needs it.

    State and messages stay. What was cut can be audited and traced no more: audit first, and note
    the digest (`ledgermq chain show`), or add the log to an archive (`ledgermq archive update`).
    """
    claim = target.claim()
    plan = _plan(target, claim, before)
    refused = plan.why_not()
    document = {**asdict(plan), "records": plan.records, "trimmed": False}
    if dry_run:
        if plan.pins and not output.as_json:
            rows = [{**one, "since": iso_time(one["enqueued_at"])} for one in plan.pins]
            output.table(COLUMNS, rows)
        output.done(refused or _told(plan, "would go"), document)
        return REFUSED if refused else OK
    if refused:
        raise TrimRefusedError(refused)
    if plan.records and not yes:
        count = count_of(plan.records, "record")
        confirm(f"this would take {count} of {plan.queue_manager} away for ever (see --dry-run)")
    if plan.records:
        _cut(target, claim, plan.before)
    output.done(_told(plan, "are gone"), {**document, "trimmed": plan.records > 0})
    return OK


@log.command()
@click.option(
    "--before",
    type=MOMENT,
    help="Write again what live messages need below this position, or up to this time.",
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Write again what all live messages need, instead of --before.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be written again.")
@reason_option
@actor_option
@target_options
def relocate(
    target: Target,
    output: Output,
    before: Any,
    everything: bool,
    dry_run: bool,
    reason: str,
    actor: str | None,
) -> int:
    """Write old live messages again at the end of the log, so that it can be trimmed.

    The messages stay what and where they are. Uncommitted and blocked puts are not written again,
    nor is a message whose content is lost: it is named, and the exit code is 1.
    Checkpoints that still refer to the old positions are replaced: three new ones are made.
    """
    from ledgermq.processor.lanes.bodies import LogReader

    if (before is None) is not everything:
        raise click.UsageError("say up to where: --before POSITION, or --all")
    if not dry_run and not reason:
        raise click.UsageError("say why you write messages again: --reason TEXT")
    claim, place = target.located()
    upto = place.end if before is None else _position(target, place, before)
    values = LogReader(target.ledger_of(claim))
    with target.connect() as connection, closing(values):
        done = connection.admin.relocate_messages(
            values.value_at, before=upto, reason=reason, actor=actor, dry_run=dry_run
        )
        if not dry_run:
            _renew_checkpoints(connection)
    document = {**asdict(done), "queue_manager": claim.queue_manager, "before": upto}
    document["staying"] = [{**asdict(one), "what": one.named} for one in done.staying]
    document["lost"] = [
        {**asdict(one.pin), "what": one.pin.named, "why": one.why} for one in done.lost
    ]
    _tell_of_lost(output, done)
    _tell_of_staying(output, done)
    output.done(_relocated(done, claim.queue_manager, upto), document)
    return REFUSED if done.lost else OK


def _tell_of_lost(output: Output, done: Relocated) -> None:
    """Names what cannot be written again, and what is to be done with it."""
    for one in done.lost[:PINS_SHOWN]:
        output.remark(
            f"the content of {one.pin.named} is lost: {one.why}. Get the message or delete it: "
            "until then the log is needed there"
        )
    if others := done.lost[PINS_SHOWN:]:
        output.remark(f"the content of {count_of(len(others), 'other')} is lost as well")


def _tell_of_staying(output: Output, done: Relocated) -> None:
    """Names what was not written again, and says if others were not even looked at."""
    for one in done.staying[:PINS_SHOWN]:
        output.remark(f"{one.named} stays there: end its unit of work, or wait for it")
    if others := done.staying[PINS_SHOWN:]:
        stay = "stays" if len(others) == 1 else "stay"
        output.remark(f"{count_of(len(others), 'other')} {stay} there for the same reason")
    if done.more and not done.dry_run:
        output.remark(
            "what stands behind these was not looked at: run this again once they are gone"
        )


def _relocated(done: Relocated, queue_manager: str, before: int) -> str:
    what = f"{count_of(done.messages, 'message')} of {queue_manager} below position {before}"
    size = f"{done.bytes:,} bytes"
    if done.dry_run:
        least = "at least " if done.more else ""
        return f"{least}{what} would be written again: {size}"
    return f"{what} written again: {size} in {count_of(done.entries, 'record')}"


def _renew_checkpoints(connection: Connection) -> None:
    """Makes as many checkpoints as are kept, each with an entry of its own below it."""
    from ledgermq.processor.checkpoints.writing import KEPT_MANIFESTS

    for _ in range(KEPT_MANIFESTS):
        with connection.session():
            pass
        connection.admin.checkpoint()


def _told(plan: TrimPlan, what: str) -> str:
    if not plan.records:
        return f"the log of {plan.queue_manager} begins at position {plan.start}: nothing to cut"
    return (
        f"positions {plan.start} to {plan.before - 1} of {plan.queue_manager} {what}: "
        f"{plan.records:,} of {plan.end - plan.start:,} records"
    )


def _plan(target: Target, claim: Claim, moment: int | datetime) -> TrimPlan:
    """Finds what would go and who needs it; the worker is asked first, the rest is younger."""
    with target.connect() as connection:
        live = connection.admin.log_pins(PINS_SHOWN)
    _, place = target.located()
    before = _position(target, place, moment)
    found = _checkpoints(target, claim)
    needs = [
        {**asdict(one), "needed_position": one.body_position, "what": one.named}
        for one in live.pins
    ]
    kept = _checkpoint_pins(found, live)
    more = any(
        len(oldest) == PINS_SHOWN and oldest[-1]["needed_position"] < before
        for oldest in (needs, kept)
    )
    if live.journal_position is not None:
        # What is not archived, or has not expired (DB-19).
        what = f"the journal from position {live.journal_position} on (`ledgermq journal backup`)"
        kept.append(_pin(live.journal_position, what, "journal"))
    needs += kept
    needs += [
        _pin(position, f"the checkpoint at position {position}", "kept")
        for position in sorted(found.manifests)
    ]
    needs.sort(key=lambda one: one["needed_position"])
    return TrimPlan(
        queue_manager=target.queue_manager,
        start=place.start,
        end=place.end,
        before=before,
        furthest=needs[0]["needed_position"],
        pins=[one for one in needs if one["needed_position"] < before],
        more=more,
    )


def _pin(needed_position: int, what: str, state: str) -> dict[str, Any]:
    return {
        "needed_position": needed_position,
        "what": what,
        "state": state,
        "enqueued_at": None,
    }


def _position(target: Target, place: PartitionRange, moment: int | datetime) -> int:
    """The first position that is to stay."""
    from ledgermq_spark.log.positions import PositionOutOfRangeError, resolve_at

    if isinstance(moment, datetime):
        return resolve_at(target.bootstrap, place, moment) + 1
    if moment > place.end:
        raise PositionOutOfRangeError(
            f"position {moment} lies after the end of the log of {target.queue_manager}: its last "
            f"record is {place.end - 1}"
        )
    return moment


def _checkpoint_pins(found: Checkpoints, live: LogPins) -> list[dict[str, Any]]:
    """What a worker that starts from the oldest whole checkpoint needs, and later ones do not."""
    from ledgermq_spark.rebuild.checkpoints import CheckpointBrokenError
    from ledgermq_spark.rebuild.needed import bodies_needed

    for position in sorted(found.manifests):
        try:
            bodies = bodies_needed(found.load(position), PINS_SHOWN)
        except CheckpointBrokenError:
            continue
        return [
            _pin(
                one.position,
                f"message {one.sequence} of {one.destination}, live in the checkpoint at "
                f"position {position}, with its body at position {one.position},",
                "kept",
            )
            for one in bodies
            if live.needed_position is None or one.position < live.needed_position
        ]
    return []


def _checkpoints(target: Target, claim: Claim) -> Checkpoints:
    """The kept checkpoints; TrimRefusedError if there is none or the newest is not whole."""
    from ledgermq_spark.rebuild.checkpoints import CheckpointBrokenError, read_checkpoints

    found = read_checkpoints(target.bootstrap, target.topics, claim)
    if not found.manifests:
        raise TrimRefusedError(
            f"{claim.queue_manager} has no checkpoint: without one its state is folded from the "
            "beginning of the log. Its worker writes one every few seconds while something changes"
        )
    try:
        found.load(max(found.manifests))
    except CheckpointBrokenError as error:
        raise TrimRefusedError(
            f"the state of {claim.queue_manager} could not be loaded without what is cut: {error}"
        ) from error
    return found


def _cut(target: Target, claim: Claim, before: int) -> None:
    try:
        target.ledger_of(claim).delete_before(target.topics.operations, {claim.partition: before})
    except KafkaException as error:
        raise TrimRefusedError(
            f"Kafka did not cut the log of {claim.queue_manager}: {error.args[0].str()}"
        ) from error


log.add_command(skip)
log.add_command(tail)
