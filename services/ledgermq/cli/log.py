"""`ledgermq log trim`: cuts the beginning of the ledger that nothing needs any more."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click

from ledgermq.cli.exits import OK, REFUSED
from ledgermq.cli.history import Moment
from ledgermq.cli.output import Column, Output, iso_time
from ledgermq.cli.target import Target, target_options
from ledgermq.errors import LedgerMQError

if TYPE_CHECKING:
    from ledgermq.client.pins import LogPins
    from ledgermq.wire.registry import Claim
    from ledgermq_spark.positions import PartitionRange

__all__ = ["TrimPlan", "log"]

PINS_SHOWN: Final = 20
COLUMNS: Final = (
    Column(key="needed_position", heading="POSITION", number=True),
    Column(key="what", heading="NEEDED BY", whole=True),
    Column(key="state", heading="STATE"),
    Column(key="since", heading="SINCE"),
)


class TrimRefusedError(LedgerMQError):
    """What was to be cut is needed, or without a whole checkpoint the state would be lost."""

    code = "trim-refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimPlan:
    """What a trim would cut, and what stands against it.

    `pins` are what needs records below `before`, oldest first; `furthest` is the highest position
    that nothing below is needed of.
    """

    queue_manager: str
    start: int
    end: int
    before: int
    furthest: int
    pins: list[dict[str, Any]]

    @property
    def records(self) -> int:
        """How many records would go."""
        return max(0, self.before - self.start)

    def why_not(self) -> str:
        """What stands against it, in one sentence; empty if nothing does."""
        if not self.pins:
            return ""
        first = self.pins[0]
        more = f" and {len(self.pins) - 1} others need" if self.pins[1:] else " needs"
        far = (
            "nothing of it can be cut"
            if self.furthest <= self.start
            else f"the furthest is --before {self.furthest}"
        )
        return (
            f"the log of {self.queue_manager} cannot be cut before position {self.before}: "
            f"{first['what']}{more} what lies below; {far}"
        )


@click.group()
def log() -> None:
    """Manage the operations log."""


@log.command()
@click.option(
    "--before",
    type=Moment(),
    required=True,
    help="Cut what lies below this position (1234), or was appended up to this time.",
)
@click.option("--dry-run", is_flag=True, help="Only tell what would go, and what needs it.")
@click.option("--yes", is_flag=True, help="Do it: what is cut cannot be brought back.")
@target_options
def trim(target: Target, output: Output, before: Any, dry_run: bool, yes: bool) -> int:
    """Cut the beginning of the log, if no live message, checkpoint or journal needs it.

    State and messages stay. What happened before can be audited and traced no more: audit first,
    and note the digest (`ledgermq chain show`).
    """
    claim = target.claim()
    plan = _plan(target, claim, before)
    refused = plan.why_not()
    document = {**asdict(plan), "records": plan.records, "trimmed": False}
    if dry_run:
        if output.as_json:
            output.document(document)
        else:
            rows = [{**one, "since": iso_time(one["enqueued_at"])} for one in plan.pins]
            output.table(COLUMNS, rows, caption=_told(plan, "would go"))
            if refused:
                output.remark(refused)
        return REFUSED if refused else OK
    if refused:
        raise TrimRefusedError(refused)
    if plan.records and not yes:
        raise click.UsageError(
            f"this takes {plan.records:,} records of {plan.queue_manager} away for ever; look with "
            "--dry-run, and add --yes to do it"
        )
    if plan.records:
        _cut(target, claim, plan.before)
    output.done(_told(plan, "are gone"), {**document, "trimmed": plan.records > 0})
    return OK


def _told(plan: TrimPlan, what: str) -> str:
    if not plan.records:
        return f"the log of {plan.queue_manager} begins at position {plan.start}: nothing to cut"
    return (
        f"positions {plan.start} to {plan.before - 1} of {plan.queue_manager} {what}: "
        f"{plan.records:,} of {plan.end - plan.start:,} records"
    )


def _plan(target: Target, claim: Claim, moment: int | datetime) -> TrimPlan:
    """Finds what would go and who needs it; the worker is asked first, the rest is younger."""
    from ledgermq_spark.positions import partition_ranges

    with target.connect() as connection:
        live = connection.admin.log_pins(PINS_SHOWN)
    (place,) = partition_ranges(target.bootstrap, target.topics.operations, [claim.partition])
    before = _position(target, place, moment)
    checkpoints = _checkpoints(target, claim)
    needs = [*_message_pins(live), *_journal_pins(live)]
    pins = [one for one in needs if one["needed_position"] < before]
    pins += [
        {
            "needed_position": position,
            "what": f"the checkpoint at position {position}",
            "state": "kept",
            "enqueued_at": None,
        }
        for position in checkpoints
        if position < before
    ]
    needed = [*checkpoints, *(one["needed_position"] for one in needs)]
    return TrimPlan(
        queue_manager=target.queue_manager,
        start=place.start,
        end=place.end,
        before=before,
        furthest=min(needed),
        pins=sorted(pins, key=lambda one: one["needed_position"]),
    )


def _position(target: Target, place: PartitionRange, moment: int | datetime) -> int:
    """The first position that is to stay."""
    from ledgermq_spark.positions import PositionOutOfRangeError, resolve_at

    if isinstance(moment, datetime):
        return resolve_at(target.bootstrap, place, moment) + 1
    if moment > place.end:
        raise PositionOutOfRangeError(
            f"position {moment} lies after the end of the log of {target.queue_manager}: its last "
            f"record is {place.end - 1}"
        )
    return moment


def _checkpoints(target: Target, claim: Claim) -> list[int]:
    """The positions of the checkpoints that are kept.

    Raises:
        TrimRefusedError: The newest is not whole, or there is none.
    """
    from ledgermq_spark.checkpoints import CheckpointBrokenError, read_checkpoints

    found = read_checkpoints(
        target.bootstrap, target.topics.checkpoints, claim.partition, claim.queue_manager
    )
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
    return sorted(found.manifests)


def _message_pins(live: LogPins) -> list[dict[str, Any]]:
    return [
        {**asdict(one), "needed_position": one.put_position, "what": one.named} for one in live.pins
    ]


def _journal_pins(live: LogPins) -> list[dict[str, Any]]:
    """The journal, if there is any: what is not archived, or has not expired (DB-19)."""
    if live.journal_position is None:
        return []
    what = f"the journal from position {live.journal_position} on (`ledgermq journal backup`)"
    pin = {"needed_position": live.journal_position, "what": what}
    return [{**pin, "state": "journal", "enqueued_at": None}]


def _cut(target: Target, claim: Claim, before: int) -> None:
    from confluent_kafka import KafkaException, TopicPartition
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": target.bootstrap, "log_level": 0})
    place = TopicPartition(target.topics.operations, claim.partition, before)
    try:
        for future in admin.delete_records(
            [place], request_timeout=target.timeout_seconds
        ).values():
            future.result()
    except KafkaException as error:
        raise TrimRefusedError(
            f"Kafka did not cut the log of {claim.queue_manager}: {error.args[0].str()}"
        ) from error
