"""Writes an audit report: JSON for programs, one self-contained HTML page for people.

The page says in this order: what was found, what was proven and what was not, how queues fared over
time, what became of everything that was put.
"""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

from ledgermq_spark.audit.audit import AuditReport
from ledgermq_spark.audit.findings.evidence import Evidence
from ledgermq_spark.audit.report.findings_table import findings_file
from ledgermq_spark.audit.report.totals import what_became
from ledgermq_spark.log.durable_files import write_together
from ledgermq_spark.pages.chart import chart, lasted, line_class
from ledgermq_spark.pages.page import (
    clock_time,
    counted,
    listed,
    moment,
    number,
    page,
    section,
    table,
)

EVIDENCE_SHOWN_MAX = 200
CHARTED_MAX = 8
SUMMARIES = {
    "agrees": "Operations, outcomes and rebuilt state agree in every field compared, and no law is "
    "broken.",
    "anomalies": "Something disagrees. Each finding below says what was expected and what was "
    "found.",
    "unproven": "Nothing that is there disagrees, but some of the proof is missing.",
}
TITLES = {"agrees": "Agrees", "anomalies": "Anomalies found", "unproven": "Unproven"}
MEANINGS = {
    "altered operations": "An anchor, a place above the log's end, or a header tells of others.",
    "altered copy": "What was written again for a trim is not the message that was put.",
    "gap": "Something that later entries build on is missing.",
    "lost": "The log calls for it, but nobody was told.",
    "duplicated": "A message was delivered while it was held, or after it was consumed.",
    "unexpected": "The lanes tell something that the log does not call for.",
    "reordered": "A message was delivered out of its turn.",
    "torn transaction": "A unit of work is recorded in part.",
    "altered outcome": "A recorded outcome says something else than the log makes it say.",
    "state mismatch": "Two computations of the same state differ in a field.",
    "digest mismatch": "The log, or a checkpoint, is not the one that the digest was made of.",
}


def write_report(report: AuditReport, directory: Path) -> tuple[Path, Path]:
    """Write `audit.html` and `audit.json` into a directory, made if missing; returns both paths.

    What was found is added to the table `audit_findings` there, too. All three are written, or stay
    as they were: OSError, as on a full disk.
    """
    page, data = directory / "audit.html", directory / "audit.json"
    findings, rows = findings_file(report, directory)
    write_together({page: html_report(report), data: json_report(report), findings: rows})
    return page, data


def json_report(report: AuditReport) -> str:
    """The report as JSON text."""
    return json.dumps(report.as_dict(), indent=2, default=str)


def html_report(report: AuditReport) -> str:
    """The report as one HTML page that needs nothing else."""
    parts = [
        _banner(report),
        _anomalies(report),
        _proven(report),
        _over_time(report),
        *what_became(report),
        _refusals(report),
        _by_hand(report),
        _corrections(report),
        _seconds(report.seconds),
    ]
    return page(f"Audit of {report.queue_manager} at {report.position}", parts)


def _banner(report: AuditReport) -> str:
    where = f"{escape(report.queue_manager)}@{report.position}"
    counts = ", ".join(f"{total} {escape(kind)}" for kind, total in report.counts.items())
    follows = (
        f" What follows from these: {counted(report.consequences, 'further findings')}."
        if report.consequences
        else ""
    )
    found = f"<p>{counts}.{follows}</p>" if counts else ""
    found += f"<p>This is not all:</p>{listed(report.beyond)}" if report.beyond else ""
    return (
        f'<header class="{report.verdict}"><p class="kicker">LedgerMQ audit</p>'
        f"<h1>{TITLES[report.verdict]}</h1><p>{SUMMARIES[report.verdict]}</p>{found}"
        f'<p class="where">Queue manager <b>{escape(report.queue_manager)}</b>, state after '
        f"position <b>{where}</b>, log time <b>{moment(report.time)}</b></p></header>"
    )


def _anomalies(report: AuditReport) -> str:
    blocks = []
    for kind, total in report.counts.items():
        shown = [one for one in report.anomalies if one.kind == kind][:EVIDENCE_SHOWN_MAX]
        rows = [_evidence(report.queue_manager, one) for one in shown]
        head = ["Where", "Queue", "Message", "What", "Expected", "Found"]
        more = f", the first {len(shown)} of them here" if total > len(shown) else ""
        blocks.append(
            f"<h3>{escape(kind)} <small>{total}{more}</small></h3>"
            f'<p class="note">{MEANINGS[kind]}</p>{table(head, rows)}'
        )
    return section("Anomalies", "".join(blocks))


def _evidence(queue_manager: str, one: Evidence) -> list[str]:
    where = f"{queue_manager}@{one.position}" if one.position >= 0 else "–"
    if one.index >= 0:
        where += f":{one.index}"
    session = f"<br><small>session {one.session}</small>" if one.session >= 0 else ""
    message = "<br>".join(
        f'<code class="whole">{escape(part)}</code>' for part in one.message_id.split(", ")
    )
    field = f"<br><small>field {escape(one.field)}</small>" if one.field else ""
    source = f"<br><small>told by: {escape(one.source)}</small>"
    return [
        f'<code class="whole">{escape(where)}</code>{session}',
        escape(one.queue),
        message if one.message_id else "",
        escape(one.summary) + field + source,
        escape(one.expected),
        escape(one.found),
    ]


def _proven(report: AuditReport) -> str:
    """How far the proof reaches, what was compared, the laws, and what is open."""
    cards = "".join(
        f'<div class="card"><b>{total}</b><span>{escape(what)}</span></div>'
        for total, what in _compared(report)
    )
    parts = [f'<div class="cards">{cards}</div>' if cards else "", _laws(report)]
    if report.digest:
        parts.append(
            f'<p class="note">Digest of the state <code>{escape(report.digest)}</code><br>'
            f"Digest chain of the operations <code>{escape(report.chain)}</code>"
            f"<br>{escape(report.chain_proof.get('told', ''))}</p>"
        )
    if report.unproven:
        parts.append(f'<h3 class="open">What was not proven</h3>{listed(report.unproven)}')
    if report.notes:
        parts.append(f"<h3>Notes</h3>{listed(report.notes)}")
    if not report.unproven and not report.notes:
        parts.append('<p class="note">Nothing was left out of the comparison.</p>')
    reach = ""
    if report.proven:
        reach = (
            f"Positions {number(report.proven['since'])} to {number(report.proven['until'])}; the "
            f"start is {escape(report.proven['start'])}."
        )
    title = "What was examined" if report.verdict == "anomalies" else "What was proven"
    return section(title, "".join(parts), reach)


def _compared(report: AuditReport) -> list[tuple[str, str]]:
    """How many of what were compared, and how many queues and topics have nothing to compare."""
    texts = [counted(total, what) for what, total in report.compared.items()]
    if report.never_used:
        texts.append(f"{report.count('never_used'):,} never used")
    return [(total, what) for total, _, what in (text.partition(" ") for text in texts)]


def _laws(report: AuditReport) -> str:
    """The laws with the rows that each looked at, those that are broken first."""
    laws = report.proven.get("laws", [])
    broken = [one["letter"] for one in laws if not one["holds"]]
    rows = [
        [
            f"<b>{escape(one['letter'])}</b>",
            escape(one["sentence"]),
            '<span class="good">holds</span>'
            if one["holds"]
            else '<span class="bad">broken</span>',
            number(sum(one["looked_at"].values())),
            ", ".join(f"{number(rows)}&nbsp;{name}" for name, rows in one["looked_at"].items()),
        ]
        for one in sorted(laws, key=lambda one: bool(one["holds"]))
    ]
    if not rows:
        return ""
    told = "all hold" if not broken else f"broken: {', '.join(broken)}"
    head = ["Law", "What it says", "Verdict", "Rows looked at", "of these"]
    summary = f"{len(laws)} laws were asked, {told}"
    return table(head, rows, frozenset({3}), summary=summary)


def _over_time(report: AuditReport) -> str:
    """Charts of the busiest queues; the others can be chosen."""
    names = list(report.depth)
    charts = [
        chart(
            "Depth",
            "messages with a number that are still there",
            report.depth,
            CHARTED_MAX,
            unit="messages",
            steps=True,
        ),
        chart(
            "Age of the oldest message",
            "the highest since the point before",
            report.oldest_age_seconds,
            CHARTED_MAX,
            unit="seconds",
            steps=False,
        ),
        chart(
            "Redeliveries",
            "deliveries of what had come back, in each part of the time",
            report.redeliveries,
            CHARTED_MAX,
            unit="messages",
            steps=True,
        ),
        _slowest(report.slowest_settlements),
    ]
    legend = "".join(
        f'<span data-line="{at}"{"" if at < CHARTED_MAX else " hidden"}>'
        f'<i class="{line_class(at)}"></i>{escape(name)}</span>'
        for at, name in enumerate(names)
    )
    body = f'<div class="charts">{"".join(charts)}</div>' if any(charts) else ""
    if names:
        body += f'<div class="legend">{legend}</div>{_chooser(report)}'
    times = [at for line in report.depth.values() for at, _ in line]
    span = f"from {clock_time(min(times))} to {moment(max(times))}" if times else ""
    if len(names) > CHARTED_MAX:
        span += f", the {CHARTED_MAX} busiest queues and topics"
    return section(f"Over time <small>{span}</small>", body)


def _chooser(report: AuditReport) -> str:
    """The highest of what is charted, of each queue and topic, and whether it is charted."""
    ages, again = report.oldest_age_seconds, report.redeliveries
    rows = [
        [
            _checkbox(at) + escape(name),
            number(max(depth for _, depth in line)),
            number(line[-1][1]),
            f"{max((age for _, age in ages.get(name, ())), default=0):,.1f}",
            number(sum(count for _, count in again.get(name, ()))),
        ]
        for at, (name, line) in enumerate(report.depth.items())
    ]
    head = ["Queue or topic", "Highest depth", "Depth at the end", "Highest age in s"]
    used = {one["destination"] for one in report.totals if one["numbered"]}
    whose = f"each queue and topic ({len(rows):,})"
    if len(used) > len(rows):
        whose = f"the {len(rows):,} busiest of {len(used):,} queues and topics"
    return table(
        [*head, "Redeliveries"],
        rows,
        frozenset({1, 2, 3, 4}),
        summary=f"Figures of {whose}, and what is charted",
    )


def _checkbox(at: int) -> str:
    checked = " checked" if at < CHARTED_MAX else ""
    return (
        f'<input type="checkbox" class="js-only" data-line="{at}" aria-label="chart it"{checked}> '
    )


def _bar(part: float) -> str:
    return f'<i class="bar" style="width:{100 * part:.0f}%"></i>'


def _slowest(settlements: list[dict[str, Any]]) -> str:
    """The deliveries that took longest, each with a bar."""
    longest = max((one["seconds"] for one in settlements), default=0)
    rows = [
        [
            f'<code class="whole">{escape(one["message_id"])}</code>{_others(one["messages"])}',
            escape(_place(one)),
            str(one["session"]),
            escape(one["settled"]),
            lasted(one["seconds"]) + _bar(one["seconds"] / (longest or 1)),
        ]
        for one in settlements
    ]
    if not rows:
        return ""
    head = ["Message", "Queue", "Session", "Ended as", "It took"]
    return (
        "<figure><figcaption>Slowest acknowledgements <small>from delivery to settlement</small>"
        f"</figcaption>{table(head, rows, frozenset({2, 4}))}</figure>"
    )


def _others(messages: int) -> str:
    return f"<br><small>and {messages - 1:,} with it</small>" if messages > 1 else ""


def _place(one: dict[str, Any]) -> str:
    name = str(one["destination"]).removeprefix("queue:")
    return f"{name} {one['subscription']}" if one["subscription"] else name


def _refusals(report: AuditReport) -> str:
    if not report.refusals:
        return ""
    counts = table(
        ["Reason", "Operations"],
        [[f"<code>{escape(name)}</code>", number(n)] for name, n in report.refusals.items()],
        frozenset({1}),
    )
    rows = [
        [
            f"<code>{escape(report.queue_manager)}@{one['position']}</code>",
            "" if one["session"] < 0 else str(one["session"]),
            f"<code>{escape(one['reason'])}</code>",
            escape(one["detail"] or ""),
        ]
        for one in report.refused_records[:EVIDENCE_SHOWN_MAX]
    ]
    head = ["Where", "Session", "Reason", "What happened"]
    each = table(head, rows, summary=f"The first {len(rows)}")
    note = "Refusals are no anomalies: every fold refuses the same entries for the same reasons."
    return section("Refused operations and records", counts + each, note)


def _by_hand(report: AuditReport) -> str:
    rows = [
        [
            str(one["position"]),
            escape(one["done"]),
            "" if one["messages"] is None else number(one["messages"]),
            _handled(one),
            escape(one["target"] or ""),
            escape(one["actor"]),
            escape(one["reason"]),
        ]
        for one in report.by_hand
    ]
    head = ["Position", "Done", "Messages", "Of", "To", "Asked for by", "Reason"]
    note = "In the totals, what was purged or deleted by hand is <i>removed</i>."
    count = report.count("by_hand")
    body = table(head, rows, frozenset({2}), what="operations", in_all=count)
    return section("Done by hand", body, note)


def _handled(one: dict[str, Any]) -> str:
    """Whose messages, or whose unit of work, something was done to by hand."""
    if one["session"] is not None:
        return f"session {one['session']}"
    place = " ".join(filter(None, (one["source"], one["subscription"])))
    chosen = f"<br><code>{escape(one['selector'])}</code>" if one["selector"] else ""
    return escape(place) + chosen


def _corrections(report: AuditReport) -> str:
    rows = [
        [
            str(one["position"]),
            escape(one["queue"]),
            str(one["sequence"]),
            escape(one["action"]),
            escape(one["actor"]),
            escape(one["reason"]),
        ]
        for one in report.corrections
    ]
    head = ["Position", "Queue", "Number", "Action", "Asked for by", "Reason"]
    count = report.count("corrections")
    return section("Corrections by hand", table(head, rows, what="operations", in_all=count))


def _seconds(seconds: dict[str, float]) -> str:
    rows = [[escape(stage), f"{value:.1f} s"] for stage, value in seconds.items()]
    return section("How long it took", table(["Stage", "Time"], rows, frozenset({1})))
