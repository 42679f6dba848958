"""Writes an audit report: JSON for programs, one self-contained HTML page for people."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

from ledgermq_spark.audit.audit import AuditReport
from ledgermq_spark.audit.chart import depth_chart
from ledgermq_spark.audit.evidence import Evidence
from ledgermq_spark.tables.totals import FATES

EVIDENCE_SHOWN_MAX = 200
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
FATE_COLUMNS = tuple((one.replace(" ", "_"), one.capitalize()) for one in FATES)
TOTAL_COLUMNS = (
    ("put", "Put"),
    ("came", "of these from elsewhere"),
    ("resident", "Resident"),
    ("in_flight", "of these in flight"),
    *FATE_COLUMNS,
    ("uncommitted", "Uncommitted"),
    ("numbered", "Numbered"),
    ("backouts", "Backouts"),
)
COPY_COLUMNS = (
    ("put", "Added"),
    ("resident", "Resident"),
    ("in_flight", "of these in flight"),
    *(one for one in FATE_COLUMNS if one[0] != "rolled_back"),
    ("backouts", "Backouts"),
)


def write_report(report: AuditReport, directory: Path) -> tuple[Path, Path]:
    """Write `audit.html` and `audit.json` into a directory, made if missing; returns both paths."""
    directory.mkdir(parents=True, exist_ok=True)
    page, data = directory / "audit.html", directory / "audit.json"
    page.write_text(html_report(report), encoding="utf-8")
    data.write_text(json_report(report), encoding="utf-8")
    return page, data


def json_report(report: AuditReport) -> str:
    """The report as JSON text."""
    return json.dumps(report.as_dict(), indent=2, default=str)


def html_report(report: AuditReport) -> str:
    """The report as one HTML page that needs nothing else."""
    parts = [
        _banner(report),
        _compared(report),
        _anomalies(report),
        _list("What is unproven", report.unproven),
        _list("Notes", report.notes),
        _conservation(report.conservation),
        _totals(report.totals),
        _subscriptions(report.subscription_totals),
        _stuck(report),
        _depth(report),
        _refusals(report),
        _corrections(report.corrections),
        _seconds(report.seconds),
    ]
    title = escape(f"Audit of {report.queue_manager} at {report.position}")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body><main>{''.join(parts)}</main></body></html>"
    )


def _time(micros: int | None) -> str:
    if micros is None or micros < 0:
        return "no time yet"
    moment = datetime.fromtimestamp(micros / 1_000_000, UTC)
    return moment.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + " UTC"


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else escape(str(value))


def _banner(report: AuditReport) -> str:
    where = f"{escape(report.queue_manager)}@{report.position}"
    counts = ", ".join(f"{total} {escape(kind)}" for kind, total in report.counts.items())
    follows = (
        f" A further {_number(report.consequences)} findings follow from these."
        if report.consequences
        else ""
    )
    found = f"<p>{counts}.{follows}</p>" if counts else ""
    return (
        f'<header class="{report.verdict}"><p class="kicker">LedgerMQ audit</p>'
        f"<h1>{TITLES[report.verdict]}</h1><p>{SUMMARIES[report.verdict]}</p>{found}"
        f'<p class="where">Queue manager <b>{escape(report.queue_manager)}</b>, state after '
        f"position <b>{where}</b>, log time <b>{_time(report.time)}</b></p></header>"
    )


def _section(title: str, body: str, note: str = "") -> str:
    told = f'<p class="note">{note}</p>' if note else ""
    return f"<section><h2>{title}</h2>{told}{body}</section>" if body else ""


def _table(head: list[str], rows: list[list[str]], numbers: frozenset[int] = frozenset()) -> str:
    """A table of cells that are HTML already; the columns in `numbers` are set flush right."""
    if not rows:
        return ""

    def cells(tag: str, values: list[str]) -> str:
        return "".join(
            f"<{tag}{' class=number' if at in numbers else ''}>{value}</{tag}>"
            for at, value in enumerate(values)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f'<div class="wide"><table><tr>{cells("th", head)}</tr>{body}</table></div>'


def _list(title: str, texts: list[str]) -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return _section(title, f"<ul>{items}</ul>" if items else "")


def _compared(report: AuditReport) -> str:
    cards = "".join(
        f'<div class="card"><b>{_number(total)}</b><span>{escape(what)}</span></div>'
        for what, total in report.compared.items()
    )
    digest = ""
    if report.digest:
        digest = (
            f'<p class="note">Digest of the state <code>{escape(report.digest)}</code><br>'
            f"Digest chain of the operations <code>{escape(report.chain)}</code>"
            f"<br>{escape(report.chain_proof.get('told', ''))}</p>"
        )
    return _section("What was compared", f'<div class="cards">{cards}</div>{digest}')


def _anomalies(report: AuditReport) -> str:
    blocks = []
    for kind, total in report.counts.items():
        shown = [one for one in report.anomalies if one.kind == kind][:EVIDENCE_SHOWN_MAX]
        rows = [_evidence(report.queue_manager, one) for one in shown]
        head = ["Where", "Queue", "Message", "What", "Expected", "Found"]
        more = f", the first {len(shown)} of them here" if total > len(shown) else ""
        blocks.append(
            f"<h3>{escape(kind)} <small>{total}{more}</small></h3>"
            f'<p class="note">{MEANINGS[kind]}</p>{_table(head, rows)}'
        )
    return _section("Anomalies", "".join(blocks))


def _evidence(queue_manager: str, one: Evidence) -> list[str]:
    where = f"{queue_manager}@{one.position}" if one.position >= 0 else "–"
    if one.index >= 0:
        where += f":{one.index}"
    session = f"<br><small>session {one.session}</small>" if one.session >= 0 else ""
    message = "<br>".join(f"<code>{escape(part)}</code>" for part in one.message_id.split(", "))
    field = f"<br><small>field {escape(one.field)}</small>" if one.field else ""
    source = f"<br><small>told by: {escape(one.source)}</small>"
    return [
        f"<code>{escape(where)}</code>{session}",
        escape(one.queue),
        message if one.message_id else "",
        escape(one.summary) + field + source,
        escape(one.expected),
        escape(one.found),
    ]


def _conservation(told: dict[str, Any]) -> str:
    """What became of every put that was accepted, by the law that it is in exactly one place."""
    if not told:
        return ""
    reasons = list(told["queues"]["removed"])
    rows = []
    for kind in ("queues", "topics", "subscriptions"):
        one = told[kind]
        removed = (one["removed"].get(reason) for reason in reasons)
        counts = (one["accepted"], one["current"], one["pending"], *removed)
        rows.append([kind, *("" if value is None else _number(value) for value in counts)])
    head = ["Of", "Accepted", "Current", "Pending"]
    head += [reason.replace("_", " ").capitalize() for reason in reasons]
    mark, verdict = ("good", "holds") if told["holds"] else ("bad", "is broken")
    note = (
        "accepted = current + pending + removed by reason, place by place: "
        f'it <span class="{mark}">{verdict}</span>.'
    )
    return _section(told["rule"], _table(head, rows, frozenset(range(1, len(head)))), note)


def _totals(totals: list[dict[str, Any]]) -> str:
    rows = []
    for one in totals:
        name = escape(one["destination"]) + f"<br><small>made at {one['store']}</small>"
        rows.append([name, *(_number(one[name]) for name, _ in TOTAL_COLUMNS), _balances(one)])
    head = ["Queue or topic", *(title for _, title in TOTAL_COLUMNS), "Balances"]
    gone = " + ".join(FATES)
    note = (
        f"put = resident + {gone} + uncommitted. What comes from elsewhere was moved or copied, or "
        "came as it expired or was returned too often. Numbered: what got a sequence number."
    )
    columns = frozenset(range(1, len(TOTAL_COLUMNS) + 1))
    return _section("Balancing totals per queue and topic", _table(head, rows, columns), note)


def _balances(one: dict[str, Any]) -> str:
    good, told = ("good", "yes") if one["balances"] else ("bad", "no")
    return f'<span class="{good}">{told}</span>'


def _subscriptions(totals: list[dict[str, Any]]) -> str:
    rows = []
    for one in totals:
        name = escape(one["subscription"])
        if one["client_id"]:
            name += f"<br><small>client id {escape(one['client_id'])}</small>"
        asked = f"<code>{escape(one['selector'])}</code>" if one["selector"] else ""
        asked += " noLocal" if one["no_local"] else ""
        counts = (_number(one[column]) for column, _ in COPY_COLUMNS)
        text = [escape(one["destination"]), name, escape(one["standing"]), asked]
        rows.append([*text, str(one["store"]), *counts, _balances(one)])
    head = ["Topic", "Name", "Kind", "Asks for", "Made at"]
    head = [*head, *(title for _, title in COPY_COLUMNS), "Balances"]
    columns = frozenset(range(4, 5 + len(COPY_COLUMNS)))
    note = (
        "added = resident + "
        + " + ".join(title.lower() for _, title in COPY_COLUMNS[3:-1])
        + ", where purged went with the subscription. What is gone asks for nothing any more."
    )
    return _section("Balancing totals per subscription", _table(head, rows, columns), note)


def _stuck(report: AuditReport) -> str:
    rows = [
        [
            escape(one["queue"]),
            f"<code>{one['group_id']}</code>",
            _missing(one),
            _number(one["items"]),
            _number(len(one["clashing"])),
            str(one["first_sequence"]) + ("<br><small>oldest</small>" if one["oldest"] else ""),
            _time(one["first_enqueued_at"]),
            f"{(report.time - one['first_enqueued_at']) / 1_000_000:,.1f} s",
        ]
        for one in report.stuck_groups
    ]
    head = ["Queue", "Group", "Missing", "Waiting", "Clashing", "First number", "Since", "For"]
    note = (
        "No anomalies: the rest was never put, or not yet. Consumers that ask for whole groups get "
        "nothing of these; <i>oldest</i>: nothing older waits in the queue."
    )
    return _section("Groups that are not complete", _table(head, rows, frozenset({3, 4})), note)


def _missing(group: dict[str, Any]) -> str:
    """What a group lacks, in words."""
    numbers = (str(low) if low == high else f"{low}-{high}" for low, high in group["missing"])
    told = ["messages " + ", ".join(numbers)] if group["missing"] else []
    for gap in group["missing_segments"]:
        until = f" to {gap['to']}" if gap["to"] >= 0 else ""
        told.append(f"message {gap['group_sequence']} from {gap['from']}{until}")
    if group["in_group"] and not group["last_group_sequence"]:
        told.append("the last message")
    return escape("; ".join(told))


def _depth(report: AuditReport) -> str:
    return _section(
        "Depth over time",
        depth_chart(report.depth),
        "Messages with a sequence number that were neither consumed nor removed.",
    )


def _refusals(report: AuditReport) -> str:
    if not report.refusals:
        return ""
    counts = _table(
        ["Reason", "Operations"],
        [[f"<code>{escape(name)}</code>", _number(n)] for name, n in report.refusals.items()],
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
    each = _table(["Where", "Session", "Reason", "What happened"], rows)
    note = "Refusals are no anomalies: every fold refuses the same entries for the same reasons."
    fold = f"<details><summary>The first {len(rows)}</summary>{each}</details>"
    return _section("Refused operations and records", counts + fold, note)


def _corrections(corrections: list[dict[str, Any]]) -> str:
    rows = [
        [
            str(one["position"]),
            escape(one["queue"]),
            str(one["sequence"]),
            escape(one["action"]),
            escape(one["actor"]),
            escape(one["reason"]),
        ]
        for one in corrections
    ]
    head = ["Position", "Queue", "Number", "Action", "Asked for by", "Reason"]
    return _section("Corrections by hand", _table(head, rows))


def _seconds(seconds: dict[str, float]) -> str:
    rows = [[escape(stage), f"{value:.1f} s"] for stage, value in seconds.items()]
    return _section("How long it took", _table(["Stage", "Time"], rows, frozenset({1})))


STYLE = """
:root{--ink:#1d2430;--dim:#5c6675;--line:#dde2ea;--paper:#fff;--ground:#f4f6f9;--good:#146c43;
--bad:#a51d2d;--open:#8a5a00}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1280px;margin:0 auto;padding:24px 20px 60px}
header{border-radius:14px;padding:26px 30px;color:#fff;margin-bottom:22px}
header.agrees{background:linear-gradient(120deg,#0f5a38,#1b8454)}
header.anomalies{background:linear-gradient(120deg,#7d1020,#b62a3d)}
header.unproven{background:linear-gradient(120deg,#6d4700,#a66e08)}
header h1{margin:.1em 0 .2em;font-size:34px;letter-spacing:-.01em}
header p{margin:.3em 0}
.kicker{text-transform:uppercase;letter-spacing:.14em;font-size:12px;opacity:.85}
.where{opacity:.95;font-size:14px}
section{background:var(--paper);border:1px solid var(--line);border-radius:12px;
padding:18px 24px 22px;margin-bottom:18px}
h2{font-size:19px;margin:0 0 10px}
h3{font-size:16px;margin:18px 0 2px;text-transform:capitalize}
h3 small{color:var(--dim);font-weight:400;text-transform:none}
.note{color:var(--dim);margin:0 0 10px;font-size:13.5px}
.cards{display:flex;flex-wrap:wrap;gap:10px;margin-bottom:12px}
.card{background:var(--ground);border-radius:10px;padding:10px 16px;min-width:130px}
.card b{display:block;font-size:21px;font-variant-numeric:tabular-nums}
.card span{color:var(--dim);font-size:13px}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:13.5px}
th{text-align:left;color:var(--dim);font-weight:600;border-bottom:2px solid var(--line);
padding:6px 10px 6px 0;vertical-align:bottom}
td{border-bottom:1px solid var(--line);padding:7px 10px 7px 0;vertical-align:top}
tr:last-child td{border-bottom:0}
.number{text-align:right;font-variant-numeric:tabular-nums;padding-right:12px}
td:first-child code,td:first-child small{white-space:nowrap}
code{font:12.5px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-wrap:break-word}
small{color:var(--dim)}
.good{color:var(--good);font-weight:600}.bad{color:var(--bad);font-weight:600}
ul{margin:0;padding-left:20px}
details{margin-top:12px}summary{cursor:pointer;color:var(--dim)}
svg{width:100%;height:auto;display:block}
.legend{display:flex;flex-wrap:wrap;gap:14px;font-size:13px;margin-top:8px}
.legend i{display:inline-block;width:12px;height:12px;border-radius:3px;margin-right:6px;
vertical-align:-1px}
"""
