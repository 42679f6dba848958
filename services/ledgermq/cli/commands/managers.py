"""`ledgermq manager`: show the queue manager as a whole, and alter its settings."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from ledgermq.cli.options.once import OnceGroup
from ledgermq.cli.options.setting_options import (
    NONE,
    duration_text,
    given_options,
    manager_options,
    shown_settings,
)
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.printing.output import Output, cell_text
from ledgermq.protocol.limits import MESSAGE_SIZE_BYTES_MAX


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
            labels["journal backup"] = NONE
            if value is not None:
                through = target.named(value["through"] - 1)
                labels["journal backup"] = f"through {through}, {cell_text(value['time'])}"
        else:
            labels[key.replace("_", " ")] = value
    labels["position"] = target.named(status["position"])
    output.fields(labels, document=status)


@manager.command()
@manager_options
@target_options
def alter(target: Target, output: Output, **settings: Any) -> None:
    """Change settings of the queue manager; what is not given stays as it is."""
    given = given_options(settings)
    with target.connect() as connection:
        position = connection.admin.alter_queue_manager(**given)
    segment_bytes = given.get("segment_bytes")
    if segment_bytes is not None and segment_bytes < MESSAGE_SIZE_BYTES_MAX:
        output.remark(
            f"from now on each message or unit of work of more than {segment_bytes:,} bytes, "
            "headers included, is refused (transaction-too-large); one of any size that a message "
            f"may have fits with --segment-bytes {MESSAGE_SIZE_BYTES_MAX}"
        )
    output.done(
        f"queue manager {target.queue_manager} altered",
        {"queue_manager": target.queue_manager, "altered": True, "position": position},
    )
