"""Stories of queues whose groups keep their order while a message is delayed (PROTOCOL.md §15)."""

from __future__ import annotations

from typing import Any

from ledgermq.protocol import administration
from ledgermq.protocol import operations as op
from ledgermq.protocol.settings import given_settings
from support.brokers.log_writer import Script, color_header
from support.messages.selections import of_queue
from support.scripts.verbs import message_of

SETTINGS = {"redelivery_delay_override_ms": 5_000}


def of_group(script: Script, name: str) -> op.PutMessage:
    """A message of a group."""
    header = color_header("red")
    header["properties"]["JMSXGroupID"] = name
    return script.message(header=header)


def delayed(*, kept: bool, grouped: bool) -> Script:
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


def parked() -> Script:
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
    asked = {"selection": of_queue("dead"), "to_origin": True, "actor": "a", "reason": "r"}
    session.send(administration.MoveMessages, **asked)
    session.send(op.Put, destination="queue:q", messages=[of_group(script, "x")])
    session.close()
    other.close()
    return script


def first_one_expires() -> Script:
    """Of a protected queue the first one is back, and expires as the entry of the next begins."""
    script = Script()
    first, second = script.session(), script.session()
    told = given_settings({"fifo_mode": "PROTECTED"})
    first.send(op.CreateQueue, queue="q", settings=told)
    brief = color_header("red") | {"time_to_live_ms": 1_000}
    messages = [script.message("a", 4, brief), script.message("b", 4)]
    first.send(op.Put, destination="queue:q", messages=messages)
    first.consumer("q", 1, credit=1)
    second.consumer("q", 1, credit=1)
    first.recover(1)
    script.wait(2)
    second.acknowledge(1)
    return script


def handled_as_a_delay_ends(kind: Any, **more: str) -> Script:
    """The first message is handled in the entry that parks a group, whose messages come later."""
    script = Script()
    session = script.session("INDIVIDUAL")
    session.send(op.CreateQueue, queue="dead")
    told = {"redelivery_limit": 0, "error_destination": "queue:dead", **SETTINGS}
    told["keeps_group_order"] = True
    session.send(op.CreateQueue, queue="q", settings=given_settings(told))
    messages = [of_group(script, "x"), script.message(), script.message(), of_group(script, "x")]
    session.send(op.Put, destination="queue:q", messages=messages)
    session.consumer("q", 1, credit=1)
    session.recover(1)
    script.wait(6)
    first = of_queue("q") | {"limit": 1}
    session.send(kind, selection=first, actor="a", reason="r", **more)
    return script
