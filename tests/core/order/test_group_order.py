"""Groups that keep their order while one of their messages is delayed (PROTOCOL.md §15, GRP-04)."""

from __future__ import annotations

import pytest
from hypothesis import given

from ledgermq.core.apply import new_state
from ledgermq.core.state import group_order
from ledgermq.core.state.group_order import GroupOrder
from ledgermq.core.state.manager import QueueManager
from ledgermq.protocol import operations as op
from ledgermq.protocol.settings import given_settings
from support.brokers.log_writer import Script, color_header
from support.checks.checked_histories import (
    check_every_split,
    check_new_history,
    examples,
    fold_entry,
)
from support.checks.what_happens import expect_to_happen
from support.generators.group_order_generators import group_order_histories
from support.planted.order_faults import GROUP_ORDER, GROUP_ORDER_SCRIPTS
from support.planted.planted_faults import expect_found_by, named


@examples(150)
@given(group_order_histories())
def test_histories_of_ordered_groups_leave_a_sound_state_that_the_model_agrees_with(history):
    """Delays, selectors, affinity, FIFO modes and subscriptions, with every check (INF-10)."""
    check_new_history(history)


@examples(30)
@given(group_order_histories(steps=20))
def test_a_checkpoint_knows_what_is_held_back_at_every_split(history):
    """A state that is written and read goes on the same and ends in the same digest (D5)."""
    check_every_split(history)


def test_histories_of_ordered_groups_come_to_what_can_happen():
    """Messages are held back in queues and subscriptions, and go on."""

    def note(history, seen):
        state, held = new_state(), 0
        for entry in history:
            fold_entry(state, entry)
            before, held = held, held_back(state)
            seen["held back"] += held > before
            seen["let go"] += held < before
            seen["of a subscription"] += any(map(held_in, state.subscriptions.values()))

    wanted = ("held back", "let go", "of a subscription")
    expect_to_happen(group_order_histories(), note, wanted, times=10, rounds=8)


def parked_in(state: QueueManager) -> dict:
    """Which groups are parked in which queues and subscriptions, behind which numbers."""
    orders = {created: one.group_order for created, one in state.stores.items()}
    found = {created: one.parked for created, one in orders.items() if one is not None}
    return {(created, key): at for created, one in found.items() for key, at in one.items()}


@pytest.mark.slow
def test_histories_of_ordered_groups_come_to_parked_ones():
    """Groups are parked and no longer so, in subscriptions too; messages follow (INF-16)."""

    def note(history, seen):
        state, parked = new_state(), {}
        for entry in history:
            fold_entry(state, entry)
            before, parked = parked, parked_in(state)
            seen["parked"] += bool(parked.keys() - before.keys())
            seen["parked no longer"] += bool(before.keys() - parked.keys())
            subscribed = {one.created_position for one in state.subscriptions.values()}
            seen["of a subscription"] += any(created in subscribed for created, _ in parked)
        for store in state.stores.values():
            for message in store.messages.values():
                reason = message.origin["reason"] if message.origin else ""
                seen["followed"] += reason == "group-parked"

    wanted = ("parked", "parked no longer", "of a subscription", "followed")
    expect_to_happen(group_order_histories(), note, wanted, times=5, rounds=16)


def test_of_too_many_parked_groups_the_first_is_forgotten(monkeypatch):
    """The bound of parked groups is kept, and the group that was parked first goes on (INF-16)."""
    monkeypatch.setattr(group_order, "PARKED_GROUPS_MAX", 2)
    script = Script()
    session = script.session()
    session.send(op.CreateQueue, queue="old")
    told = {"keeps_group_order": True, "redelivery_limit": 0, "error_destination": "queue:old"}
    session.send(op.CreateQueue, queue="q", settings=given_settings(told))
    for name in "xyz":
        header = color_header("red")
        header["properties"]["JMSXGroupID"] = name
        message = script.message(header=header)
        session.send(op.Put, destination="queue:q", messages=[message])
    session.consumer("q", credit=3)
    session.recover((1, 3))
    order = script.state.queues["q"].group_order
    assert list(order.parked.items()) == [(b"y", 1), (b"z", 2)]


def held_in(queue) -> int:
    """How many messages of a queue wait for a delayed one."""
    order = queue.group_order
    here = [one for one in queue.messages.values() if one.is_available]
    return 0 if order is None else sum(map(order.holds_back, here))


def held_back(state: QueueManager) -> int:
    """How many messages wait for a delayed one."""
    return sum(map(held_in, state.stores.values()))


@pytest.mark.parametrize("planted", named(GROUP_ORDER))
def test_planted_fault_of_group_order_is_found(planted):
    """The properties are not blind: each fault planted in the fold turns them red."""
    expect_found_by(GROUP_ORDER, planted)


@pytest.mark.parametrize("planted", named(GROUP_ORDER_SCRIPTS))
def test_planted_fault_of_group_order_is_found_by_scripts(planted):
    """Random histories seldom come to what these need (INF-12)."""
    expect_found_by(GROUP_ORDER_SCRIPTS, planted)


def test_a_get_looks_at_what_is_held_back_once_and_not_again(monkeypatch):
    """With 20,000 messages behind a delayed one, many gets look at few of them (H21)."""
    script = Script()
    session = script.session()
    settings_given = given_settings(
        {"keeps_group_order": True, "redelivery_delay_override_ms": 60_000}
    )
    session.send(op.CreateQueue, queue="q", settings=settings_given)
    header = color_header("red")
    header["properties"]["JMSXGroupID"] = "x"
    for _ in range(4):
        messages = [script.message(header=header) for _ in range(5_000)]
        session.send(op.Put, destination="queue:q", messages=messages)
    session.consumer("q", credit=1)
    session.recover(1)
    session.get(1)
    assert held_in(script.state.queues["q"]) == 19_999
    looks = 0
    original = GroupOrder.holds_back

    def counted(self, message):
        nonlocal looks
        looks += 1
        return original(self, message)

    monkeypatch.setattr(GroupOrder, "holds_back", counted)
    for _ in range(50):
        session.put("q", "of no group")
        session.get(1)
    assert len(script.state.sessions[session.handle].deliveries) == 50
    assert looks < 500
