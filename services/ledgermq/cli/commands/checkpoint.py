"""`ledgermq checkpoint discard` makes the next worker fold the log from its beginning."""

from __future__ import annotations

import click

from ledgermq.cli.options.consent import confirm, yes_option
from ledgermq.cli.options.once import OnceGroup
from ledgermq.cli.options.target import Target, resting_target_options
from ledgermq.cli.printing.output import Output, count_of


@click.group(cls=OnceGroup)
def checkpoint() -> None:
    """Discard checkpoints of the state, from which workers start."""


@checkpoint.command()
@yes_option
@click.option(
    "--outcomes",
    is_flag=True,
    help="Discard the outcomes alone, and no checkpoint: where the log is trimmed, these are "
    "needed.",
)
@resting_target_options
def discard(target: Target, output: Output, yes: bool, outcomes: bool) -> None:
    """Discard all checkpoints of the queue manager, so that its worker starts from the log.

    Use it when a worker refuses to run because checkpoints or outcomes do not belong to this log,
    and the log is right as it is: outcomes are discarded too. Stop the workers first: it is refused
    while one runs, as the next checkpoints of that would lack what is gone. Nothing is lost: the
    next worker folds all operations again, and writes all outcomes again. Where the log is trimmed,
    checkpoints that belong to it stay, and the next worker starts from the newest of them.
    """
    from ledgermq.processor.checkpoints.discarding import (
        DiscardRefusedError,
        discard_checkpoints,
        discard_outcomes,
    )

    ledger = target.ledger_of(target.claim())
    if not yes:
        what = "outcomes" if outcomes else "checkpoints and all outcomes"
        then = "" if outcomes else "; the next worker folds the log again, and writes them again"
        where = f"{target.queue_manager} at {target.bootstrap}"
        confirm(f"this would discard all {what} of {where}{then}")
    target.refuse_if_served(DiscardRefusedError)
    count = None
    if outcomes:
        discard_outcomes(ledger)
    else:
        count = discard_checkpoints(ledger)
    told = "all outcomes" if count is None else count_of(count, "checkpoint")
    also = "" if count is None else ", and all outcomes"
    output.done(
        f"{told} of {target.queue_manager} discarded{also}",
        {"queue_manager": target.queue_manager, "discarded": count or 0},
    )
