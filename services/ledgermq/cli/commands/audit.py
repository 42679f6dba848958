"""`ledgermq audit`: proves that live state, outcomes and log agree, or names what does not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from ledgermq.cli.options.journal_choice import backups_directory, directory_option
from ledgermq.cli.options.moments import MOMENT, position_at
from ledgermq.cli.options.once import OnceCommand
from ledgermq.cli.options.spark import spark_job
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.options.together import DIRECTORY, Read
from ledgermq.cli.printing.exits import USAGE
from ledgermq.cli.printing.output import Column, Output, headed
from ledgermq.protocol.instants import iso_time
from ledgermq.protocol.limits import TEMPORARY
from ledgermq.system_refusals import told_refusal

if TYPE_CHECKING:
    from ledgermq_spark.audit.audit import AuditReport
    from ledgermq_spark.audit.findings.evidence import Evidence


WORKER_PATIENCE_SECONDS: Final = 15.0


TOTALS_COLUMNS: Final = (
    Column(key="destination", heading="QUEUE OR TOPIC", whole=True),
    *headed("put", "came", "consumed", "resident", "expired", number=True, detail=True),
    *headed("displaced", "moved", "dropped", "removed", "purged", number=True, detail=True),
    *headed("rolled_back", "uncommitted", number=True, detail=True),
    *headed("deliveries", "backouts", number=True, detail=True),
    Column(key="balances", heading="BALANCES"),
)
FIGURES: Final = tuple(column.key for column in TOTALS_COLUMNS if column.number)
SUBSCRIPTION_COLUMNS: Final = (
    Column(key="destination", heading="TOPIC"),
    Column(key="subscription", heading="SUBSCRIPTION"),
    Column(key="standing", heading="KIND"),
    Column(key="client_id", heading="CLIENT ID"),
    Column(key="store", heading="MADE AT", number=True),
    Column(key="put", heading="ADDED", number=True),
    *headed("consumed", "resident", "expired", "displaced", "moved", "removed", number=True),
    *headed("dropped", "purged", number=True),
    Column(key="balances", heading="BALANCES"),
)
ANOMALY_COLUMNS: Final = (
    Column(key="kind", heading="ANOMALY"),
    Column(key="place", heading="WHERE"),
    *headed("queue", "message_id"),
    Column(key="summary", heading="WHAT"),
    *headed("expected", "found"),
)


def _anchor(text: str) -> Any:
    from ledgermq_spark.audit.anchors import parse_anchor

    return parse_anchor(text)


@click.command(cls=OnceCommand)
@click.option(
    "--at",
    type=MOMENT,
    help="Audit the log up to this moment, without the live state.  [default: all of it, with the "
    "live state]",
)
@click.option(
    "--without-live", is_flag=True, help="Leave out the comparison with the worker's live state."
)
@click.option(
    "--report",
    "report_directory",
    type=DIRECTORY,
    help="Write a report to this directory: audit.html, audit.json and the table audit_findings.",
)
@click.option(
    "--anchor",
    "anchors",
    type=Read("POSITION:DIGEST", _anchor),
    multiple=True,
    help="An anchor that `ledgermq chain show` printed earlier: the log must still have this "
    "digest at this position. May be repeated.",
)
@directory_option
@click.option(
    "--archive",
    type=DIRECTORY,
    help="Add to this archive of the log what is new (as `ledgermq archive update`), and audit "
    "only that.",
)
@target_options
def audit(
    target: Target,
    output: Output,
    at: Any,
    without_live: bool,
    report_directory: Path | None,
    anchors: tuple[Any, ...],
    directory: Path | None,
    archive: Path | None,
) -> int:
    """Prove that log, recorded outcomes, rebuilt state and live state agree and keep all laws.

    The exit code is 0 if everything agrees, 1 if anything does not, and 5 if records that would
    prove it are gone, or the audit failed; 2 if everything agrees and the report was not written.
    """
    from ledgermq_spark.audit.report.report import write_report
    from ledgermq_spark.jobs.run import run_audit
    from ledgermq_spark.log.durable_files import check_writable

    if report_directory is not None:
        # Told before the audit: its verdict would be lost.
        check_writable(report_directory, "a report")
    if _is_mistaken(directory):
        raise click.BadParameter(
            f"there is no directory {str(directory)!r}, so no backup there could be compared",
            param_hint="'--directory'",
        )
    target.check_broker()
    position = None if at is None else position_at(target, at)
    live_position = None
    if at is None and not without_live:
        live_position = _live_position(target, output)
    with spark_job(target, output, "audit") as job:
        report = run_audit(
            at=position,
            live_position=live_position,
            anchors=anchors,
            backups=backups_directory(target, directory),
            archive=archive,
            **job,
        )
    written = refused = None
    if report_directory is not None:
        try:
            written = write_report(report, report_directory)[0]
        except OSError as error:
            refused = error
    _tell(target, output, report, written)
    if refused is not None:
        # After the verdict, which took long.
        why = told_refusal(refused)
        output.error("report-unwritten", f"the report was not written: {why}")
        return report.exit_code or USAGE
    return report.exit_code


def _is_mistaken(directory: Path | None) -> bool:
    """Whether a directory was named that is not there: the audit would go on without its anchors.

    That of the settings appears with the first backup of the journal.
    """
    source = click.get_current_context().get_parameter_source("directory")
    return (
        source is ParameterSource.COMMANDLINE and directory is not None and not directory.is_dir()
    )


def _tell(target: Target, output: Output, report: Any, written: Path | None) -> None:
    """Prints the verdict, and where the report is if there is one."""
    if output.as_json:
        document = report.as_dict()
        output.document(document if written is None else {**document, "report": str(written)})
        return
    _print(target, output, report)
    if written is not None:
        output.remark(f"report: {written}")


def _live_position(target: Target, output: Output) -> int | None:
    """The position of a checkpoint taken now; None if there is no worker to take it."""
    if not _worker_answers(target):
        output.remark(
            "no worker answers, or this user may ask none: the live state is not compared"
        )
        return None
    with target.connect() as connection:
        return connection.admin.checkpoint().position


def _worker_answers(target: Target) -> bool:
    """Whether a worker answers a question; nothing is written to a ledger that none looks after."""
    from ledgermq.processor.worker.readiness import wait_for_worker

    patience = min(target.timeout_seconds, WORKER_PATIENCE_SECONDS)
    if target.topics.questions not in target.kafka_admin().list_topics(timeout=patience).topics:
        return False
    return wait_for_worker(target.bootstrap, target.topic_prefix, patience)


def _print(target: Target, output: Output, report: AuditReport) -> None:
    from ledgermq_spark.audit.conservation import told_of
    from ledgermq_spark.pages.page import counted

    if output.for_people or not report.anomalies:
        if report.totals:
            totals = _together(report.totals) if output.for_people else report.totals
            output.table(TOTALS_COLUMNS, totals)
        if report.subscription_totals:
            output.table(SUBSCRIPTION_COLUMNS, report.subscription_totals)
    if report.anomalies:
        output.table(ANOMALY_COLUMNS, anomaly_rows(report.queue_manager, report.anomalies))
    where = target.named(report.position)
    if report.time >= 0:
        where += f", {iso_time(report.time, precision='milliseconds')}"
    compared = [counted(count, what) for what, count in report.compared.items()]
    compared += [f"{report.count('never_used'):,} never used"] if report.never_used else []
    output.remark(f"compared up to {where}: {', '.join(compared) or 'nothing'}")
    for reason, count in report.refusals.items():
        output.remark(f"refused as they should be: {count} for {reason}")
    if report.by_hand or report.corrections:
        count = report.count("by_hand") + report.count("corrections")
        output.remark(f"done by hand, as the report lists it: {counted(count, 'operations')}")
    for text in told_of(report.conservation) if report.conservation else ():
        output.remark(text)
    if report.chain_proof:
        output.remark(report.chain_proof["told"])
    for text in (*report.beyond, *report.unproven, *report.notes):
        output.remark(text)
    if report.consequences:
        further = counted(report.consequences, "further findings")
        output.remark(f"what follows from these: {further}")
    color = {"agrees": "green", "anomalies": "red"}.get(report.verdict, "yellow")
    output.remark(f"verdict: {report.verdict}", fg=color, bold=True)


def _together(totals: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Totals as people read them: temporary destinations that balance, of which each request may
    have had one, are one row together.
    """
    places: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for one in totals:
        name = one["destination"].partition(":")[2]
        places[name.startswith(TEMPORARY) and one["balances"]].append(one)
    if len(places[True]) < 2:
        return totals
    sums = {key: sum(one[key] for one in places[True]) for key in FIGURES}
    called = f"{len(places[True]):,} temporary destinations"
    return [*places[False], {**sums, "destination": called, "balances": True}]


def anomaly_rows(queue_manager: str, findings: Sequence[Evidence]) -> list[dict[str, Any]]:
    return [
        {**one.as_dict(), "place": f"{queue_manager}@{one.position}" if one.position >= 0 else ""}
        for one in findings
    ]
