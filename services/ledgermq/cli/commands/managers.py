"""`ledgermq manager`: show the queue manager as a whole, and alter its settings."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

import click

from ledgermq.cli.options.once import OnceGroup
from ledgermq.cli.options.setting_options import (
    NONE,
    Duration,
    duration_text,
    given_options,
    redelivery_options,
    shown_settings,
)
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.options.together import LONG, LONG_MAX
from ledgermq.cli.printing.output import Output, cell_text

AT_LEAST_ONE: Final = click.IntRange(1, LONG_MAX)
ANY_NUMBER: Final = LONG


@click.group(cls=OnceGroup)
def manager() -> None:
    """Show and alter the queue manager itself."""


@manager.command()
@target_options
def show(target: Target, output: Output) -> None:
    """Show the queue manager, and the log position it is true at."""
    with target.connect() as connection:
        status = asdict(connection.admin.queue_manager_status())
    labels: dict[str, Any] = {}
    for key, value in status.items():
        if key.endswith(("_lifetime_ms", "_limit_ms")):
            label = key.removesuffix("_ms").replace("_", " ")
            labels[label] = duration_text(value) if value else NONE
        elif key == "time_reference":
            ahead = None if value is None else status["time"] - value
            labels["ahead of the clock"] = NONE if ahead is None else str(ahead)
        elif key == "redelivery":
            labels |= shown_settings(value)
        elif key == "journal_backup":
            labels["journal backup"] = _backup_text(target, value)
        else:
            labels[key.replace("_", " ")] = value
    labels["position"] = target.named(status["position"])
    output.fields(labels, document=status)


def _backup_text(target: Target, backup: dict[str, Any] | None) -> str:
    if backup is None:
        return NONE
    when = cell_text(backup["time"])
    return f"through {target.named(backup['through'] - 1)}, {when}"


@manager.command()
@click.option(
    "--automatic-creation/--no-automatic-creation",
    default=None,
    help="Whether a first use creates an unknown queue or topic.",
)
@click.option(
    "--maximum-lifetime",
    "maximum_lifetime_ms",
    type=Duration(0),
    help="How long a message stays at most, those that are there too; none: for ever.",
)
@click.option(
    "--segment-bytes",
    type=AT_LEAST_ONE,
    help="How much a segment of the storage takes, and a unit of work at most.",
)
@click.option("--segments-min", type=AT_LEAST_ONE, help="How many segments there are at least.")
@click.option(
    "--segments-max",
    type=ANY_NUMBER,
    help="How many there are at most: then puts are refused while there is no room; 0: no limit.",
)
@click.option(
    "--messages-max",
    type=ANY_NUMBER,
    help="Most messages that all queues and topics may hold, current and pending; 0: no quota.",
)
@click.option(
    "--bytes-max", type=ANY_NUMBER, help="Most bytes that these messages may have; 0: no quota."
)
@click.option(
    "--messages-resume",
    type=ANY_NUMBER,
    help="Sends that wait for --messages-max go on at so many; 0: when there is room.",
)
@click.option(
    "--bytes-resume", type=ANY_NUMBER, help="The same for --bytes-max; 0: when there is room."
)
@click.option(
    "--journaling/--no-journaling",
    default=None,
    help="Whether messages put from now on are journaled.",
)
@click.option(
    "--journal-lifetime",
    "journal_lifetime_ms",
    type=Duration(0),
    help="How long a message stays in the journal, those that are there too; none: for ever.",
)
@click.option(
    "--unit-of-work-time-limit",
    "unit_of_work_time_limit_ms",
    type=Duration(0),
    help="How long a unit of work may be open before it is rolled back; none: no limit.",
)
@click.option(
    "--unit-of-work-idle-limit",
    "unit_of_work_idle_limit_ms",
    type=Duration(0),
    help="How long it may be without a put or get; none: no limit.",
)
@redelivery_options
@target_options
def alter(target: Target, output: Output, **settings: Any) -> None:
    """Change settings of the queue manager; what is not given stays as it is."""
    given = given_options(settings)
    with target.connect() as connection:
        position = connection.admin.alter_queue_manager(**given)
    output.done(
        f"queue manager {target.queue_manager} altered",
        {"queue_manager": target.queue_manager, "altered": True, "position": position},
    )
