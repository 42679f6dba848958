"""`ledgermq binding`: has topics hand what is put to them on to queues and other topics."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any, Final

import click

from ledgermq.cli.options.destinations import DESTINATION, bare_name
from ledgermq.cli.options.once import OnceGroup
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.options.together import Read
from ledgermq.cli.printing.output import Column, Output, headed

TOPICS: Final = Read("TOPICS", partial(bare_name, "topic"))
COLUMNS: Final = (
    *headed("topics", "destination"),
    Column(key="selector", heading="SELECTOR", cut=True),
    Column(key="created_position", heading="CREATED", number=True, detail=True),
)


@click.group(cls=OnceGroup)
def binding() -> None:
    """Hand what is put to topics on to queues and other topics.

    TOPICS is the name of a topic or a pattern of names: of its words, which are between dots and
    slashes, * is any one, and one # any number.
    """


@binding.command()
@click.argument("topics", type=TOPICS)
@click.argument("destination", type=DESTINATION)
@click.option("--selector", metavar="TEXT", default="", help="Hand on only what it selects.")
@target_options
def create(target: Target, output: Output, topics: str, destination: str, selector: str) -> None:
    """Hand what is put to TOPICS on to DESTINATION.

    One that is there already gets the new selector.
    """
    with target.connect() as connection:
        position = connection.admin.bind(topics, destination, selector=selector)
    _done(output, topics, destination, "is bound to", position, selector=selector)


@binding.command()
@click.argument("topics", type=TOPICS)
@click.argument("destination", type=DESTINATION)
@target_options
def delete(target: Target, output: Output, topics: str, destination: str) -> None:
    """End the binding of TOPICS to DESTINATION; what it handed on stays where it is."""
    with target.connect() as connection:
        position = connection.admin.unbind(topics, destination)
    _done(output, topics, destination, "is no longer bound to", position)


def _done(
    output: Output, topics: str, destination: str, what: str, position: int, **more: Any
) -> None:
    document = {"topics": topics, "destination": destination, **more, "position": position}
    output.done(f"topic {topics} {what} {destination}", document)


@binding.command("list")
@click.option("--topic", metavar="NAME", help="Only those that take in this topic.")
@target_options
def list_bindings(target: Target, output: Output, topic: str | None) -> None:
    """List the bindings in the order in which they were made."""
    with target.connect() as connection:
        found = [asdict(one) for one in connection.admin.bindings(topic)]
    caption = f"at {target.named(found[0]['position'])}" if found else "no bindings"
    output.table(COLUMNS, found, caption=caption)
