"""`python -m ledgermq_spark.jobs.audit`: audit a queue manager; exit code 0, 1 or 5."""

from __future__ import annotations

import sys
from pathlib import Path

from ledgermq_spark.audit.audit import AuditReport
from ledgermq_spark.audit.report.report import json_report, write_report
from ledgermq_spark.jobs.arguments import USAGE, job, parser, where, work_directory
from ledgermq_spark.jobs.run import run_audit

SHOWN_MAX = 20


@job
def main(arguments: list[str] | None = None) -> int:
    """Audit, write the report, print the verdict.

    Exit codes: 0 agrees, 1 anomalies, 2 wrong use, or it agrees and the report was not written, 3
    cluster not reachable, 5 unproven.
    """
    options = parser("Audit a queue manager: do log, outcomes, laws and live state agree?")
    options.add_argument("--live-position", type=int, help="checkpoint to compare as live state")
    options.set_defaults(output=Path("ledgermq-audit"))
    given = options.parse_args(arguments)
    with work_directory(given) as directory:
        report = run_audit(**where(given, directory), live_position=given.live_position)
    # Before the report: the verdict is told though the disk is full.
    _tell(report, as_json=given.json)
    try:
        page, _ = write_report(report, given.output)
    except OSError as problem:
        print(f"error: {problem.filename}: {problem.strerror}", file=sys.stderr)
        return report.exit_code or USAGE
    if not given.json:
        print(f"report: {page}")
    return report.exit_code


def _tell(report: AuditReport, *, as_json: bool) -> None:
    if as_json:
        print(json_report(report))
        return
    print(f"{report.queue_manager}@{report.position}: {report.verdict}")
    for one in report.anomalies[:SHOWN_MAX]:
        print(f"  {one.kind}: {one.summary} [{one.queue} {one.message_id}]")
    if len(report.anomalies) > SHOWN_MAX:
        print(f"  the first {SHOWN_MAX} of {len(report.anomalies):,} anomalies; the report has all")
    for text in (*report.beyond, *report.unproven, *report.notes):
        print(f"  {text}")


if __name__ == "__main__":
    sys.exit(main())
