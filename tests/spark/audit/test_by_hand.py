"""What administrators did is in the report, with who asked for it and why."""

import pytest

from ledgermq.protocol import administration
from ledgermq.protocol import operations as op
from ledgermq_spark.audit.report.by_hand import done_by_hand
from support.audits.engines import duck_engine
from support.audits.testimonies import Logs
from support.brokers.log_writer import Script

pytestmark = pytest.mark.spark

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
    corrections, by_hand = done_by_hand(logs.facts(duck_engine()))
    assert [(one["queue"], one["action"], one["actor"]) for one in corrections] == [
        ("kept", "REMOVE", "bob")
    ]
    names = ("done", "source", "target", "selector", "messages", "session", "actor", "reason")
    assert [tuple(one[name] for name in names) for one in by_hand] == [
        ("moved", "queue:orders", "queue:kept", None, 1, None, *BOB.values()),
        ("purged", "queue:orders", None, "TRUE", 2, None, *BOB.values()),
    ]
