"""Audits of queues whose groups keep their order while a message is delayed (PROTOCOL.md §15)."""

from copy import deepcopy

import pytest

from ledgermq.protocol import administration
from ledgermq.protocol import operations as op
from ledgermq.protocol.outcomes import Delivered
from ledgermq.protocol.settings import given_settings
from ledgermq_spark.audit.audit import audit
from ledgermq_spark.derivation.turns import check_turns
from support.audits.audits import audited, subject_of
from support.brokers.log_writer import Script, color_header
from support.scripts.verbs import message_of

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SETTINGS = {"redelivery_delay_override_ms": 5_000}


def of_group(script, name):
    """A message of a group."""
    header = color_header("red")
    header["properties"]["JMSXGroupID"] = name
    return script.message(header=header)


def story(*, kept: bool, grouped: bool) -> Script:
    """The first of a group is delayed; others come before or after it, as the setting says."""
    script = Script()
    session = script.session("INDIVIDUAL")
    settings = given_settings({**SETTINGS, "keeps_group_order": kept})
    session.send(op.CreateQueue, queue="q", settings=settings)
    session.send(op.CreateTopic, topic="t", settings=settings)
    subscribed = {"subscription": "s", "durable": True, "shared": True}
    session.subscribe("t", 7, **subscribed)
    for destination in ("queue:q", "topic:t"):
        messages = [of_group(script, name) for name in "xxyx"]
        session.send(op.Put, destination=destination, messages=messages)
    if grouped:
        group = [message_of(f"Y{one}{{g=Y.{one}}}") for one in (1, 2, 3)]
        session.send(op.Put, destination="queue:q", messages=group)
    session.consumer("q", 8, credit=1)
    session.get(1, 7)
    session.recover((1, 2))
    for number in (8, 7):
        session.get(9, number)
    session.put("q", "of no group")
    script.wait(6)
    script.add(op.Tick(worker="w"))
    session.close()
    return script


def parked_story() -> Script:
    """A message exceeds its limit; its group follows: waiting, in other hands, put later."""
    script = Script()
    session, other = script.session("INDIVIDUAL"), script.session("INDIVIDUAL")
    session.send(op.CreateQueue, queue="dead")
    told = {"keeps_group_order": True, "redelivery_limit": 0, "error_destination": "queue:dead"}
    session.send(op.CreateQueue, queue="q", settings=given_settings(told))
    session.send(op.CreateTopic, topic="t", settings=given_settings(told))
    session.subscribe("t", 7, subscription="s", durable=True, shared=True)
    other.consumer("q", 8, credit=0)
    session.consumer("q", 8, credit=0)
    for destination in ("queue:q", "topic:t"):
        messages = [of_group(script, name) for name in "xxyx"]
        session.send(op.Put, destination=destination, messages=messages)
    session.get(1, 8)
    other.get(1, 8)
    session.get(1, 7)
    session.recover((1, 2))
    for destination in ("queue:q", "topic:t"):
        session.send(op.Put, destination=destination, messages=[of_group(script, "x")])
    # Nobody saw it: it returns without a backout.
    other.recover()
    for one in (8, 7):
        session.get(9, one)
    session.consumer("dead", 9, credit=2)
    session.acknowledge((5, 6))
    selection = {
        **dict.fromkeys(("subscription", "client_id", "selector"), ""),
        "source": "queue:dead",
        "durable": False,
        "sequences": [],
        "after_sequence": -1,
        "limit": 0,
    }
    asked = {"selection": selection, "to_origin": True, "actor": "a", "reason": "r"}
    session.send(administration.MoveMessages, **asked)
    session.send(op.Put, destination="queue:q", messages=[of_group(script, "x")])
    session.close()
    other.close()
    return script


def test_the_audit_knows_what_follows_a_parked_message(spark, tmp_path_factory):
    """It agrees with the fold on what goes to the error destination after another (INF-12)."""
    script = parked_story()
    left = [one for one in script.state.stores.values() if one.gone["moved"]]
    assert [(one.name, one.gone["moved"]) for one in left] == [("dead", 6), ("q", 4), ("s", 4)]
    report = audit(subject_of(spark, tmp_path_factory.mktemp("parked"), script.entries))
    assert [(one.kind, one.summary, one.queue, one.found) for one in report.anomalies] == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("kept", "grouped"),
    [
        (True, True),
        *(pytest.param(*one, marks=pytest.mark.long) for one in ((True, False), (False, True))),
    ],
)
def test_the_audit_knows_what_waits_for_a_delayed_message(spark, tmp_path_factory, kept, grouped):
    """It agrees with the fold on what may be passed over, with groups of either kind."""
    script = story(kept=kept, grouped=grouped)
    given = [
        [one["put_index"] for one in found.outcome.messages]
        for outcomes in script.outcomes
        for found in outcomes
        if isinstance(found.outcome, Delivered) and found.outcome.consumer == 7
    ]
    assert given == ([[0], [2], [0, 1, 3]] if kept else [[0], [1, 2, 3], [0]])
    report = audit(subject_of(spark, tmp_path_factory.mktemp("order"), script.entries))
    assert [(one.kind, one.summary, one.queue, one.found) for one in report.anomalies] == []


@pytest.mark.long
def test_a_delivery_of_what_had_to_wait_is_found(spark, tmp_path_factory):
    """Outcomes as if the setting were off are told as what the operations do not allow."""
    script, other = story(kept=True, grouped=False), story(kept=False, grouped=False)
    place = tmp_path_factory.mktemp("wrong")
    found = audited(spark, place, script.entries, deepcopy(other.outcomes)).anomalies
    assert {one.kind for one in found} & {"unexpected", "altered outcome", "reordered"}
    subject = subject_of(spark, place / "alone", script.entries, deepcopy(other.outcomes))
    told = [one.summary for one in check_turns(subject.tables, subject.recorded)]
    assert [one for one in told if "waits for a delayed message of its group" in one]
