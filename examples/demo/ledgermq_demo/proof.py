"""The demo's last part: what Spark makes of the log, compared with what was seen live."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledgermq.cli.commands.audit import TOTALS_COLUMNS, anomaly_rows
from ledgermq.cli.commands.trace import LIFE_COLUMNS, life_rows
from ledgermq.cli.printing.screens import screen
from ledgermq.protocol.instants import iso_time
from ledgermq_demo.course import WATCHED_QUEUE
from ledgermq_demo.flights import ORIGINS, departures_queue
from ledgermq_demo.rotations import ROTATIONS_QUEUE

if TYPE_CHECKING:
    from ledgermq.cli.options.spark import Engine
    from ledgermq.protocol.documents.manager import CheckpointStatus
    from ledgermq_demo.course import Course
    from ledgermq_demo.screen import Screen
    from ledgermq_demo.stage import Stage
    from ledgermq_spark.audit.audit import AuditReport
    from ledgermq_spark.tables.life import Life


ANOMALIES_SHOWN_MAX = 20


def rebuild_the_past(shown: Screen, stage: Stage, course: Course, engine: Engine) -> None:
    """Rebuild the watched queue as it was in the middle, and compare with what was recorded."""
    from ledgermq_spark.jobs.run import rebuild_at

    position = course.status["position"]
    # What waits for a quota is in no figure of a queue, and no list of queues tells it (INF-05).
    beside = ("position", "blocked")
    recorded = {key: value for key, value in course.status.items() if key not in beside}
    shown.heading("The past: a queue in the middle of the run, computed by Spark from the log")
    with shown.stages("rebuilding") as tell:
        rebuilt = rebuild_at(
            stage.bootstrap,
            stage.queue_manager,
            position,
            topic_prefix=stage.topic_prefix,
            progress=tell,
            **engine.options("rebuild") | {"spark": engine.session},
        )
    found = next(one for one in rebuilt.statuses if one["name"] == WATCHED_QUEUE)
    moment = iso_time(rebuilt.time, precision="milliseconds")
    shown.say(
        f"{WATCHED_QUEUE} at {stage.named(position)}, {moment}, after "
        f"{rebuilt.operations:,} operations:"
    )
    shown.console.print()
    shown.show(screen(found))
    shown.console.print()
    differing = {
        key: (value, found.get(key)) for key, value in recorded.items() if found.get(key) != value
    }
    shown.check(
        f"all {len(recorded)} values equal those that the worker answered live at that moment",
        holds=not differing,
        otherwise=f"live and rebuilt differ: {differing}",
    )


def _tell_a_life(shown: Screen, life: Life | None) -> None:
    """Tell the life of a flight without a tail number: rolled back, and delivered again."""
    shown.heading("The life of one message: a flight without a tail number")
    steps = [] if life is None else [step.what for step in life.steps]
    if life is not None:
        shown.say(f"message {life.message_id} of {life.queue}, sequence number {life.sequence}:")
        shown.console.print()
        shown.rows(LIFE_COLUMNS, life_rows(life))
        shown.console.print()
    shown.check(
        "it was put and committed, delivered, returned by a rollback, delivered again, and "
        "consumed by a commit",
        holds=_in_order(
            ["put", "numbered", "delivered", "returned", "delivered", "consumed"], steps
        ),
        otherwise=f"the steps were {steps}",
    )


def _in_order(wanted: list[str], found: list[str]) -> bool:
    """Whether all that is wanted was found, in that order, with anything between."""
    rest = iter(found)
    return all(one in rest for one in wanted)


def audit_all(
    shown: Screen,
    stage: Stage,
    course: Course,
    checkpoint: CheckpointStatus,
    report_directory: Path,
    engine: Engine,
) -> None:
    """Audit everything at the position of the live state, and tell a life on the way."""
    from ledgermq_spark.audit.report.report import write_report
    from ledgermq_spark.jobs.run import run_audit
    from ledgermq_spark.tables.life import life_of

    lives: list[Life | None] = []
    message_id = bytes.fromhex(course.counts.rolled_back[0])
    shown.console.print()
    with shown.stages("auditing") as tell:
        report = run_audit(
            stage.bootstrap,
            stage.queue_manager,
            live_position=checkpoint.position,
            topic_prefix=stage.topic_prefix,
            progress=tell,
            with_facts=lambda facts: lives.append(life_of(facts, stage.queue_manager, message_id)),
            **engine.options("audit") | {"spark": engine.session},
        )
        page, data = write_report(report, report_directory)
    _tell_a_life(shown, lives[0] if lives else None)
    shown.heading("The audit: log, recorded outcomes, laws, rebuild and live state")
    compared = ", ".join(f"{count:,} {what}" for what, count in report.compared.items())
    shown.say(f"compared up to {stage.named(report.position)}: {compared}")
    shown.console.print()
    totals = _totals(report)
    shown.rows(TOTALS_COLUMNS, totals)
    shown.console.print()
    for row in anomaly_rows(report.queue_manager, report.anomalies[:ANOMALIES_SHOWN_MAX]):
        shown.say(f"{row['kind']} at {row['place']}: {row['summary']} {row['message_id']}")
    for text in (*report.unproven, *report.notes):
        shown.say(text)
    shown.check(
        f"the rebuilt state has the digest of the live one, {report.digest[:16]}...",
        holds=report.digest == checkpoint.digest,
        otherwise=f"the live state has {checkpoint.digest}",
    )
    shown.check(
        "the totals of every queue balance: put = resident + uncommitted + what is gone for each "
        "reason",
        holds=all(one["balances"] for one in report.totals),
    )
    shown.check(
        f"the audit's verdict: {report.verdict}, {len(report.anomalies)} anomalies",
        holds=report.verdict == "agrees",
    )
    shown.say(f"report: {page}, for programs {data}")


def _totals(report: AuditReport) -> list[dict[str, Any]]:
    """The departure queues and the rotations each, the arrival queues together."""
    queues = (ROTATIONS_QUEUE, *(departures_queue(origin) for origin in ORIGINS))
    alone = {f"queue:{one}": one for one in queues}
    totals = [one for one in report.totals if one["destination"] in alone]
    rows = [one | {"destination": alone[one["destination"]]} for one in totals]
    rest = [one for one in report.totals if one["destination"] not in alone]
    together: dict[str, Any] = {"destination": f"{len(rest)} arrival queues"}
    for column in TOTALS_COLUMNS[1:]:
        values = [one[column.key] for one in rest]
        together[column.key] = all(values) if column.key == "balances" else sum(values)
    return [*rows, together]
