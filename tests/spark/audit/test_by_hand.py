"""What administrators did is in the report, with who asked for it and why."""

import pytest

from ledgermq.cli.commands.audit import _print
from ledgermq.cli.options.target import Target
from ledgermq.cli.printing.output import Output
from ledgermq.protocol import administration
from ledgermq.protocol import operations as op
from ledgermq_spark.audit.report.by_hand import done_by_hand
from ledgermq_spark.audit.report.report import html_report
from ledgermq_spark.tables.traffic import LISTED_MAX
from support.audits.audits import audited
from support.audits.engines import duck_engine
from support.audits.testimonies import Logs
from support.brokers.log_writer import Script
from support.pages.reading import Page
from support.random_logs.random_groups import place, put_group

pytestmark = pytest.mark.spark

TARGET = Target(broker="", queue_manager="QM1", topic_prefix="t", timeout_seconds=1)
BOB = {"actor": "bob", "reason": "as agreed"}


def of(source, selector="", **more):
    """Messages of a queue."""
    named = {"source": source, "subscription": "", "client_id": "", "durable": False}
    return named | {"selector": selector, "sequences": [], "after_sequence": -1, "limit": 0} | more


def test_what_was_done_by_hand_is_told_with_actor_and_reason(spark):
    """A purge by selector, a move, a refused one not; a correction is told by itself."""
    script = Script()
    session = script.session()
    session.put("orders", "a", "b", "c")
    session.send(op.CreateQueue, queue="kept")
    move = administration.MoveMessages
    one = [{"first": 1, "last": 1}]
    session.send(move, selection=of("queue:orders", sequences=one), target="queue:kept", **BOB)
    session.send(move, selection=of("queue:orders"), target="queue:none", **BOB)
    session.send(administration.PurgeQueue, selection=of("queue:orders", "TRUE"), **BOB)
    session.send(op.Correct, queue="kept", sequence=0, action="REMOVE", **BOB)
    logs = Logs()
    logs.fold("QM1", script.entries)
    corrections, by_hand, in_all = done_by_hand(logs.facts(duck_engine()))
    assert in_all == {"corrections": 1, "by_hand": 2}
    assert [(one["queue"], one["action"], one["actor"]) for one in corrections] == [
        ("kept", "REMOVE", "bob")
    ]
    names = ("done", "source", "target", "selector", "messages", "session", "actor", "reason")
    assert [tuple(one[name] for name in names) for one in by_hand] == [
        ("moved", "queue:orders", "queue:kept", None, 1, None, *BOB.values()),
        ("purged", "queue:orders", None, "TRUE", 2, None, *BOB.values()),
    ]


def test_a_report_counts_all_of_what_it_lists_the_first_of(capsys):
    """Of 30,000 idle queues and of a thousand purges it once counted 500."""
    script = Script()
    session = script.session()
    session.put("kept", "a")
    many = LISTED_MAX + 10
    for number in range(many):
        session.send(op.CreateQueue, queue=f"idle.{number:04}")
        session.send(administration.PurgeQueue, selection=of("queue:kept", "FALSE"), **BOB)
        put_group(session, "groups", place(str(number)))
    session.send(op.Correct, queue="kept", sequence=0, action="REMOVE", **BOB)
    report = audited(duck_engine(), script.entries)
    assert (report.verdict, report.anomalies) == ("agrees", [])
    in_all = {"never_used": many, "stuck_groups": many, "by_hand": many, "corrections": 1}
    for name, count in in_all.items():
        assert report.count(name) == count
        assert len(getattr(report, name)) == min(count, LISTED_MAX - (name == "by_hand"))
    page = Page(html_report(report)).text
    for told in ("500 of 510 queues", "500 of 510 groups", "499 of 510 operations"):
        assert told in page
    _print(TARGET, Output(as_json=False), report)
    told = capsys.readouterr().err
    assert "510 never used" in told
    assert "as the report lists it: 511 operations" in told
