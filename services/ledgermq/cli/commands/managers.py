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
from ledgermq.cli.options.together import LONG, Long
from ledgermq.cli.printing.output import Output, cell_text

AT_LEAST_ONE: Final = Long(min=1)


@click.group(cls=OnceGroup)
def manager() -> None:
    """Show and alter the queue manager itself."""


@manager.command()
@target_options
def show(target: Target, output: Output) -> None:
    """Show settings and figures of the queue manager, at the log position that it has reached."""
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
    help="Whether the first use of an unknown queue or topic creates it, as is the default; if "
    "not, the use is refused.",
)
@click.option(
    "--maximum-lifetime",
    "maximum_lifetime_ms",
    type=Duration(0),
    help="How long a message may live, whatever its own time to live; those that are there already "
    "too. The default is 30d; none: for ever.",
)
@click.option(
    "--segment-bytes",
    type=AT_LEAST_ONE,
    help="Bytes of a segment, the unit in which the room of live messages is counted (`ledgermq "
    "storage`); a unit of work that puts more is refused. The default is 16777216.",
)
@click.option(
    "--segments-min",
    type=AT_LEAST_ONE,
    help="How many segments there are at least. The default is 4.",
)
@click.option(
    "--segments-max",
    type=LONG,
    help="How many segments there are at most: puts are refused while all are full or pinned by "
    "live messages. 0, the default: no limit.",
)
@click.option(
    "--messages-max",
    type=LONG,
    help="Quota of messages in all queues and topics together, in flight and uncommitted ones too; "
    "sends beyond it wait for room until their send time-out. 0, the default: no quota.",
)
@click.option(
    "--bytes-max",
    type=LONG,
    help="The same for the bytes of these messages; 0, the default: no quota.",
)
@click.option(
    "--messages-resume",
    type=LONG,
    help="Once a send had to wait for --messages-max, sends go on when no more than so many "
    "messages are left; 0, the default: as soon as there is room.",
)
@click.option(
    "--bytes-resume",
    type=LONG,
    help="The same for --bytes-max; 0, the default: as soon as there is room.",
)
@click.option(
    "--journaling/--no-journaling",
    default=None,
    help="Whether messages put from now on go to the journal (`ledgermq journal`); by default "
    "none.",
)
@click.option(
    "--journal-lifetime",
    "journal_lifetime_ms",
    type=Duration(0),
    help="How long messages stay in the journal, those that are there already too; the next backup "
    "removes older ones. The default is 7d; none: for ever.",
)
@click.option(
    "--unit-of-work-time-limit",
    "unit_of_work_time_limit_ms",
    type=Duration(0),
    help="How long a unit of work may be open; then it is rolled back. The default is none: no "
    "limit.",
)
@click.option(
    "--unit-of-work-idle-limit",
    "unit_of_work_idle_limit_ms",
    type=Duration(0),
    help="How long a unit of work may be open without a further put or get; then it is rolled "
    "back. The default is none: no limit.",
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
