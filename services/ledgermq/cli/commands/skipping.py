"""`ledgermq log skip` declares positions skipped at which every worker stops."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Final

import click

from ledgermq.cli.options.consent import confirm, who_and_why
from ledgermq.cli.options.once import OnceCommand
from ledgermq.cli.options.target import Target, resting_target_options
from ledgermq.cli.options.together import LONG
from ledgermq.cli.printing.output import Output
from ledgermq.errors import LedgerMQError
from ledgermq.protocol.administration import PositionsSkipped, VersionOffered
from ledgermq.protocol.operations import Upgrade
from ledgermq.wire.framing.codec import decode_operation, encode_operation, full_name_of
from ledgermq.wire.framing.schema_registry import framing_of
from ledgermq.wire.topics.appending import NotAppendedError, append_record
from ledgermq.wire.topics.reading import PartitionReader
from ledgermq.wire.topics.registry import Claim

POSITIONS_MAX: Final = 100_000
WORKER_SECONDS: Final = 5.0


class SkipRefusedError(LedgerMQError):
    """What was to be skipped holds what can be folded, or is not on the log."""

    code = "skip-refused"


@click.command(cls=OnceCommand)
@click.argument("position", type=LONG)
@click.option(
    "--through", type=LONG, help="Last position to skip, if there are several.  [default: POSITION]"
)
@who_and_why
@resting_target_options
def skip(
    target: Target,
    output: Output,
    position: int,
    through: int | None,
    reason: str,
    actor: str,
    yes: bool,
) -> None:
    """Let workers skip log positions that stop every one of them; the worker's log names them.

    These are positions without a record, as the end of a Kafka transaction leaves them, and an
    Upgrade to a version that no worker ever ran with. Others are refused. The declaration is
    recorded on the log.
    """
    claim = target.claim()
    last = position if through is None else through
    if last < position:
        raise click.UsageError(f"--through {last} lies before {position}")
    with target.reader() as reader:
        what = _what_is_skipped(target, claim, reader, position, last)
    told = f"positions {position} to {last} of {claim.queue_manager} ({what})"
    if not yes:
        confirm(f"this would declare {told} skipped for ever")
    skipped = PositionsSkipped(first=position, last=last, actor=actor, reason=reason)
    at = _append(target, claim, skipped)
    named = {"queue_manager": claim.queue_manager, "first": position, "last": last}
    output.done(
        f"{told} are skipped, by the entry at {target.named(at)}; a worker that waits goes on, one "
        "that stopped is to be started again",
        {**named, "position": at},
    )


def _what_is_skipped(
    target: Target, claim: Claim, reader: PartitionReader, first: int, last: int
) -> str:
    """What is at the positions, in words; SkipRefusedError if it can be folded or is not there."""
    topic, partition = target.topics.operations, claim.partition
    begins, end = reader.ends(topic, partition)
    where = f"the log of {claim.queue_manager}"
    if first < begins or last >= end:
        raise SkipRefusedError(f"{where} holds positions {begins} to {end - 1} only")
    if last - first >= POSITIONS_MAX:
        raise SkipRefusedError(f"{last - first + 1} positions are more than {POSITIONS_MAX:,}")
    entries = 0
    for record in reader.records(topic, partition, first, last + 1):
        operation = decode_operation(record.value())
        if not isinstance(operation, Upgrade | VersionOffered):
            raise SkipRefusedError(
                f"at position {record.offset()} of {where} is an entry ("
                f"{type(operation).__name__}), which every worker can fold or refuse: only "
                "positions without a record, an Upgrade and a VersionOffered can be skipped"
            )
        entries += 1
        if isinstance(operation, Upgrade):
            _refuse_if_folded(target, operation, record.offset() or 0)
    holes = last - first + 1 - entries
    return f"{holes} without a record, {entries} with an entry that brings a version"


def _refuse_if_folded(target: Target, operation: Any, position: int) -> None:
    """Raises SkipRefusedError for an Upgrade that a worker took and goes on from."""
    quick = replace(target, timeout_seconds=min(target.timeout_seconds, WORKER_SECONDS))
    try:
        with quick.connect() as connection:
            status = connection.admin.queue_manager_status()
    except LedgerMQError:
        return
    if status.version >= operation.version and status.position > position:
        raise SkipRefusedError(
            f"a worker of {target.queue_manager} runs with protocol version {status.version} since "
            f"position {position}: what it did since could not be told any more"
        )


def _append(target: Target, claim: Claim, operation: PositionsSkipped) -> int:
    """The position of the declaration; SkipRefusedError if Kafka did not take it."""
    try:
        return append_record(
            target.bootstrap,
            target.topics.operations,
            claim.partition,
            claim.queue_manager,
            encode_operation(operation),
            [("content-type", b"avro/binary"), ("ce_type", full_name_of(operation).encode())],
            timeout_seconds=target.timeout_seconds,
            framing=framing_of(os.environ.get("LEDGERMQ_SCHEMA_REGISTRY")),
        )
    except NotAppendedError as error:
        raise SkipRefusedError(f"the log did not take the declaration: {error}") from error
