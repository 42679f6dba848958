"""The part of an audit report that says what became of everything that was put."""

from __future__ import annotations

from html import escape
from typing import Any

from ledgermq_spark.audit.audit import AuditReport
from ledgermq_spark.pages.chart import lasted
from ledgermq_spark.pages.page import moment, number, section, table
from ledgermq_spark.rebuild.rebuilt import or_more
from ledgermq_spark.tables.totals import FATES

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


def what_became(report: AuditReport) -> list[str]:
    """Conservation, totals of each place, and what is worth knowing of some of them."""
    return [
        _conservation(report.conservation),
        _totals(report.totals),
        _subscriptions(report.subscription_totals),
        _never_used(report),
        _stuck(report),
        _stalls(report),
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
        rows.append([kind, *("" if value is None else number(value) for value in counts)])
    head = ["Of", "Accepted", "Current", "Pending"]
    head += [reason.replace("_", " ").capitalize() for reason in reasons]
    mark, verdict = ("good", "holds") if told["holds"] else ("bad", "is broken")
    note = (
        "accepted = current + pending + removed by reason, place by place: "
        f'it <span class="{mark}">{verdict}</span>.'
    )
    return section(told["rule"], table(head, rows, frozenset(range(1, len(head)))), note)


def _totals(totals: list[dict[str, Any]]) -> str:
    rows = []
    for one in totals:
        name = escape(one["destination"]) + f"<br><small>made at {one['store']}</small>"
        rows.append([name, *(number(one[name]) for name, _ in TOTAL_COLUMNS), _balances(one)])
    head = ["Queue or topic", *(title for _, title in TOTAL_COLUMNS), "Balances"]
    gone = " + ".join(FATES)
    note = (
        f"put = resident + {gone} + uncommitted. What comes from elsewhere was moved or copied, or "
        "came as it expired or was returned too often. Numbered: what got a sequence number."
    )
    columns = frozenset(range(1, len(TOTAL_COLUMNS) + 1))
    return section("Balancing totals per queue and topic", table(head, rows, columns), note)


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
        counts = (number(one[column]) for column, _ in COPY_COLUMNS)
        standing = escape(one["standing"])
        if one.get("ended_as"):
            standing += f"<br><small>at {one['ended_position']}: {escape(one['ended_as'])}</small>"
        text = [escape(one["destination"]), name, standing, asked]
        rows.append([*text, str(one["store"]), *counts, _balances(one)])
    head = ["Topic", "Name", "Kind", "Asks for", "Made at"]
    head = [*head, *(title for _, title in COPY_COLUMNS), "Balances"]
    columns = frozenset(range(4, 5 + len(COPY_COLUMNS)))
    note = (
        "added = resident + "
        + " + ".join(title.lower() for _, title in COPY_COLUMNS[3:-1])
        + ", where purged went with the subscription. What is gone asks for nothing any more."
    )
    return section("Balancing totals per subscription", table(head, rows, columns), note)


def _never_used(report: AuditReport) -> str:
    rows = [
        [escape(one["destination"]), f"{escape(report.queue_manager)}@{one['made_at']}"]
        for one in report.never_used
    ]
    return section(
        "Never used",
        table(
            ["Queue or topic", "Made at"],
            rows,
            what="queues and topics",
            in_all=report.count("never_used"),
        ),
        "They are there, and no message ever came to them.",
    )


def _stuck(report: AuditReport) -> str:
    rows = [
        [
            escape(one["queue"]),
            f"<code>{escape(one['group_id'])}</code>",
            _missing(one),
            number(one["items"]),
            number(len(one["clashing"])),
            str(one["first_sequence"]) + ("<br><small>oldest</small>" if one["oldest"] else ""),
            moment(one["first_enqueued_at"]),
            lasted((report.time - one["first_enqueued_at"]) / 1_000_000),
        ]
        for one in report.stuck_groups
    ]
    head = ["Queue", "Group", "Missing", "Waiting", "Clashing", "First number", "Since", "For"]
    note = (
        "No anomalies: the rest was never put, or not yet. Consumers that ask for whole groups get "
        "nothing of these; <i>oldest</i>: nothing older waits in the queue."
    )
    count = report.count("stuck_groups")
    what = f"{or_more(count)} groups".strip()
    body = table(head, rows, frozenset({3, 4, 7}), what=what, in_all=count)
    return section("Groups that are not complete", body, note)


def _stalls(report: AuditReport) -> str:
    rows = [
        [
            escape(one["destination"]),
            escape(one["subscription"]),
            number(one["messages"]),
            moment(one["since"]),
            lasted((report.time - one["since"]) / 1_000_000),
            "<br>".join(escape(text) for text in one["obstacles"]),
        ]
        for one in report.stalls
    ]
    head = ["Destination", "Subscription", "Messages", "Oldest since", "For", "What holds them up"]
    note = "No anomalies: as <code>ledgermq queue why</code> said it at the end of the log."
    count = report.count("stalls")
    body = table(head, rows, frozenset({2, 4}), what="queues and subscriptions", in_all=count)
    return section("Where messages wait for long", body, note)


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
