"""The demo's last part: what Spark makes of the log, compared with what was seen live."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ledgermq.cli.output import iso_time
from ledgermq.cli.screens import screen
from ledgermq.demo.course import WATCHED_QUEUE

if TYPE_CHECKING:
    from ledgermq.client.status import CheckpointStatus
    from ledgermq.demo.course import Course
    from ledgermq.demo.screen import Screen
    from ledgermq.demo.stage import Stage

__all__ = ["audit_all", "rebuild_the_past", "tell_a_life"]


def rebuild_the_past(shown: Screen, stage: Stage, course: Course) -> None:
    """Rebuild the watched queue as it was in the middle, and compare with what was recorded."""
    from ledgermq_spark.rebuild import rebuild_at

    recorded = course.status
    position = recorded["position"]
    shown.heading("The past: a queue in the middle of the run, computed by Spark from the log")
    with shown.stages("rebuilding") as tell:
        rebuilt = rebuild_at(
            stage.bootstrap,
            stage.queue_manager,
            position,
            topic_prefix=stage.topic_prefix,
            progress=tell,
        )
    found = next(one for one in rebuilt.statuses if one["name"] == WATCHED_QUEUE)
    shown.say(
        f"{WATCHED_QUEUE} at {stage.named(position)}, {iso_time(rebuilt.time)}, after "
        f"{rebuilt.operations:,} operations:"
    )
    shown.console.print()
    shown.show(screen(found))
    shown.console.print()
    differing = {
        key: (value, found.get(key))
        for key, value in recorded.items()
        if key != "position" and found.get(key) != value
    }
    shown.check(
        f"all {len(recorded) - 1} values equal those that the worker answered live at that moment",
        holds=not differing,
        otherwise=f"live and rebuilt differ: {differing}",
    )


def tell_a_life(shown: Screen, stage: Stage, course: Course) -> None:
    """Trace a message."""


def audit_all(
    shown: Screen, stage: Stage, checkpoint: CheckpointStatus, report_directory: Path
) -> None:
    """Audit."""
