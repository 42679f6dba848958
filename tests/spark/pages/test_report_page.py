"""Tests of the audit's page: what is said first, what folds, what is charted, what is escaped."""

import json

import pytest

from ledgermq_spark.audit.conservation import summary_of
from ledgermq_spark.audit.findings.evidence import Evidence
from ledgermq_spark.audit.report.report import html_report, json_report
from ledgermq_spark.rebuild.rebuilt import GROUPS_MAX
from support.pages.reading import HOSTILE, Page
from support.pages.reports import START_US, law_of, proof_of, report_of, settlement_of, total_of


def place_in(text, *wanted):
    """Return where each of the texts begins."""
    places = [text.find(one) for one in wanted]
    assert -1 not in places, dict(zip(wanted, places, strict=True))
    return places


def test_findings_come_first_then_what_was_proven_then_charts_then_totals():
    """Whoever opens the page reads the verdict without scrolling."""
    found = Evidence(kind="lost", source="outcomes", summary="nobody was told")
    text = Page(html_report(report_of(verdict="anomalies", anomalies=[found]))).text
    order = place_in(
        text,
        "Anomalies found",
        "nobody was told",
        "What was examined",
        "Over time",
        "INF-19 conservation",
        "Balancing totals",
    )
    assert order == sorted(order)


def test_the_page_says_from_where_the_proof_reaches_and_what_was_not_proven():
    """A log that was trimmed is proven from a checkpoint on, and no law was asked."""
    proven = proof_of(99, since=41, start="the checkpoint at position 40, taken as it is")
    report = report_of(verdict="unproven", proven=proven, unproven=["the beginning is gone"])
    text = Page(html_report(report)).text
    assert "Positions 41 to 99; the start is the checkpoint at position 40, taken as it is." in text
    place_in(text, "What was not proven", "the beginning is gone")
    assert "laws were asked" not in text


def test_each_law_is_named_with_the_rows_that_it_looked_at():
    """By letter and sentence; one that is broken comes first, and is named while it is folded."""
    laws = [law_of("A"), law_of("B", holds=False)]
    page = Page(html_report(report_of(verdict="anomalies", proven=proof_of(99, laws=laws))))
    assert "2 laws were asked, broken: B" in page.text
    first, second = place_in(page.text, "Law B.", "Law A.")
    assert first < second
    assert "12,345" in page.text


def test_a_hundred_queues_do_not_push_the_charts_away():
    """Their tables are folded and can be searched; the busiest are charted, the others offered."""
    names = [f"queue-{number}" for number in range(120)]
    line = [(START_US, 0), (START_US + 1_000_000, 9)]
    series = dict.fromkeys(names, line)
    totals = [total_of(f"queue:{name}", at) for at, name in enumerate(names)]
    page = Page(
        html_report(
            report_of(depth=series, oldest_age_seconds=series, redeliveries=series, totals=totals)
        )
    )
    lines = page.all("path", "line")
    assert len(lines) == 3 * len(names)
    assert [one["data-line"] for one in lines if "hidden" not in one] == [
        str(at) for _ in range(3) for at in range(8)
    ]
    boxes = page.all("input")
    assert len(boxes) == len(names)
    assert sum("checked" in one for one in boxes) == 8
    assert [one["data-search"] for one in page.all("div") if "data-search" in one] == [
        "tbody tr",
        "tbody tr",
    ]
    assert not any("open" in one for one in page.all("details"))
    # Without JavaScript nothing is missing: each is in a table.
    assert all(f"queue:{name}" in page.text for name in names)


def test_a_short_table_is_not_folded():
    """What fits is there to be read at once."""
    page = Page(html_report(report_of(proven={}, depth={})))
    assert page.all("details") == []
    assert "queue:q" in page.text


def test_the_slowest_acknowledgements_are_named():
    """Message, queue and session, how long it took and how it ended, and how many came with it."""
    rows = [
        settlement_of(messages=30),
        settlement_of(
            destination="topic:t",
            subscription="s",
            settled="in flight",
            settled_at=None,
            seconds=4.25,
        ),
    ]
    text = Page(html_report(report_of(slowest_settlements=rows))).text
    place_in(text, "0f" * 16, "and 29 with it", "90 s", "topic:t s", "in flight", "4.25 s")


def test_the_page_names_what_was_never_used_and_why_a_subscription_ended():
    """Queues nobody put to, and the reason beside the totals of a subscription that is gone."""
    unused = {"kind": "queue", "store": 5, "destination": "queue:idle", "made_at": 5}
    gone = total_of("topic:t", 7, "subscription", subscription="s") | {
        "standing": "gone",
        "client_id": "",
        "selector": "",
        "no_local": False,
        "ended_position": 88,
        "ended_as": "it was unsubscribed",
    }
    text = Page(html_report(report_of(never_used=[unused], subscription_totals=[gone]))).text
    place_in(text, "Never used", "queue:idle", "at 88: it was unsubscribed")


def hostile_report():
    """Return a report in which everything that a user can name is hostile."""
    totals = [total_of(f"queue:{HOSTILE}", 1)]
    line = {HOSTILE: [(START_US, 0), (START_US + 1, 2)]}
    subscription = total_of(f"topic:{HOSTILE}", 2, "subscription", subscription=HOSTILE)
    group = {
        "queue": HOSTILE,
        "group_id": HOSTILE,
        "missing": [(1, 2)],
        "missing_segments": [],
        "in_group": True,
        "last_group_sequence": 0,
        "items": 1,
        "clashing": [],
        "first_sequence": 0,
        "oldest": True,
        "first_enqueued_at": START_US,
    }
    named = ("queue", "message_id", "field", "expected", "found")
    correction = dict.fromkeys(("queue", "action", "actor", "reason"), HOSTILE)
    return report_of(
        queue_manager=HOSTILE,
        verdict="anomalies",
        anomalies=[
            Evidence(kind="lost", source=HOSTILE, summary=HOSTILE, **dict.fromkeys(named, HOSTILE))
        ],
        unproven=[HOSTILE],
        notes=[HOSTILE],
        totals=totals,
        conservation=summary_of(totals),
        subscription_totals=[
            subscription
            | {"standing": "gone", "client_id": HOSTILE, "selector": HOSTILE, "no_local": True}
            | {"ended_position": 3, "ended_as": HOSTILE}
        ],
        never_used=[{"kind": "queue", "store": 5, "destination": HOSTILE, "made_at": 5}],
        stuck_groups=[group],
        stalls=[
            dict.fromkeys(("destination", "subscription"), HOSTILE)
            | {"messages": 1, "since": START_US, "obstacles": [HOSTILE]}
        ],
        refusals={"no-such": 1},
        refused_records=[{"position": 1, "session": 1, "reason": "no-such", "detail": HOSTILE}],
        corrections=[correction | {"position": 4, "sequence": 0}],
        by_hand=[
            dict.fromkeys(("done", "source", "subscription", "selector", "target"), HOSTILE)
            | {"actor": HOSTILE, "reason": HOSTILE, "messages": 1, "session": None, "position": 5}
        ],
        slowest_settlements=[
            settlement_of(destination=HOSTILE, subscription=HOSTILE, message_id=HOSTILE)
        ],
        depth=line,
        oldest_age_seconds=line,
        redeliveries=line,
        proven=proof_of(1, start=HOSTILE),
    )


def test_one_of_a_kind_is_told_as_one():
    """And what was never used stands beside what was compared."""
    idle = {"kind": "queue", "store": 5, "destination": "queue:idle", "made_at": 5}
    page = html_report(report_of(compared={"queues": 1, "deliveries": 1}, never_used=[idle]))
    for number, what in (("1", "queue"), ("1", "delivery"), ("1", "never used")):
        assert f"<b>{number}</b><span>{what}</span>" in page


def test_a_page_says_where_a_rebuild_tells_no_more_groups():
    """Of 100,000 unfinished groups the rebuild tells 10,000: the page took that for all of them."""
    group = hostile_report().stuck_groups[0]
    for count, told in ((GROUPS_MAX - 1, "9,999 groups"), (GROUPS_MAX, "10,000 or more groups")):
        report = report_of(stuck_groups=[group] * 500, in_all={"stuck_groups": count})
        assert f"500 of {told}" in Page(html_report(report)).text


def test_what_users_name_is_text_on_the_page():
    """Names, ids, selectors and reasons bring no element, no attribute and no code."""
    page = Page(html_report(hostile_report()))
    assert page.is_harmless()
    assert page.all("b", "") == [one for one in page.all("b") if not one]
    assert page.text.count(HOSTILE) > 25


@pytest.mark.parametrize("report", [report_of(), hostile_report()], ids=("agrees", "hostile"))
def test_the_report_for_programs_has_the_new_figures(report):
    """What is charted and listed is there by name."""
    found = json.loads(json_report(report))
    assert found["depth"].keys() == found["oldest_age_seconds"].keys() == report.depth.keys()
    assert found["slowest_settlements"][0]["seconds"] == 90.0
    assert found["proven"]["until"] == report.proven["until"]


def test_an_empty_report_has_no_charts():
    """A log that holds nothing has a verdict, and nothing else is made up."""
    report = report_of(
        position=-1,
        time=-1,
        compared={},
        totals=[],
        conservation={},
        proven={},
        slowest_settlements=[],
        depth={},
        oldest_age_seconds={},
        redeliveries={},
        digest="",
    )
    page = Page(html_report(report))
    assert page.all("svg") == []
    assert page.all("table") == []


def test_the_table_of_the_busiest_says_of_how_many_they_are():
    """It has 120 at most, and once said that these were each queue and topic."""
    line = [(START_US, 0), (START_US + 1_000_000, 9)]
    totals = [total_of(f"queue:q{number}", number) for number in range(300)]
    totals.append(total_of("queue:idle", 301, numbered=0))
    series = {f"q{number}": line for number in range(120)}
    text = Page(html_report(report_of(depth=series, totals=totals))).text
    assert "Figures of the 120 busiest of 300 queues and topics" in text
    text = Page(html_report(report_of(depth=series, totals=totals[:120]))).text
    assert "Figures of each queue and topic (120)" in text
