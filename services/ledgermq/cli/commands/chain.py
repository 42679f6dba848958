"""`ledgermq chain show`: a position and the digest of all operations up to it, to keep."""

from __future__ import annotations

from typing import Any

import click

from ledgermq.cli.options.moments import at_option
from ledgermq.cli.options.once import OnceGroup
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.printing.output import Output


@click.group(cls=OnceGroup)
def chain() -> None:
    """Print anchors: digests over the operations on the log, by which a change of it is noticed."""


@chain.command()
@at_option
@target_options
def show(target: Target, output: Output, at: Any) -> None:
    """Print an anchor, POSITION:DIGEST: the digest over all operations up to that position.

    It is computed from the log as it is now. Write it down where nobody who can write to the log
    can change it. Later `ledgermq audit --anchor POSITION:DIGEST` proves that no operation up to
    that position was changed since, or reports that one was.
    """
    from ledgermq.processor.log.chain import read_chain
    from ledgermq_spark.log.positions import PositionOutOfRangeError, resolve_at

    claim, log = target.located()
    position = resolve_at(target.bootstrap, log, at)
    if position < log.start:
        raise PositionOutOfRangeError(
            f"the log of {target.queue_manager} holds no records: there is no anchor yet"
        )
    link = read_chain(target.ledger_of(claim), position)
    anchor = f"{link.position}:{link.digest.hex()}"
    document = {
        "queue_manager": target.queue_manager,
        "position": link.position,
        "digest": link.digest.hex(),
        "anchor": anchor,
        "computed_from": link.computed_from,
    }
    if link.computed_from and not output.as_json:
        output.remark(
            f"what lies before position {link.computed_from} is gone: for that, the digest of a "
            "checkpoint was taken"
        )
    output.done(anchor, document)
