"""What an entry costs while very many puts wait: looks at those that may go, and at few others."""

from __future__ import annotations

from dataclasses import fields

import pytest

from ledgermq.core import unblocking
from ledgermq.protocol import operations as op
from ledgermq.protocol.settings import Settings
from support.checks.calls import calls_of
from support.invariants import whole_state as invariants
from support.messages.large_states import LargeState
from support.scripts.play import play_lines

UNCHANGED = {one.name: None for one in fields(Settings)}
QUEUES = 200


@pytest.fixture
def looked_at(monkeypatch):
    """The destinations at which a blocked put is looked at from now on."""
    found: list[str] = []
    real = unblocking._try

    def counted(entry, put, looks):
        found.append(put.destination)
        return real(entry, put, looks)

    monkeypatch.setattr(unblocking, "_try", counted)
    return found


def full(large: LargeState, administrator: int, queue: str, policy: str = "FIFO") -> None:
    """A queue with room for one message, which is there."""
    settings = {**UNCHANGED, "messages_max": 1, "blocking_send_policy": policy}
    large.do(op.CreateQueue, administrator, queue=queue, settings=settings)
    large.put(administrator, f"queue:{queue}")


def wait_for(large: LargeState, session: int, queue: str, blocking_ms: int = 3_600_000) -> None:
    """A put of one message that waits."""
    message = {"message_id": bytes(16), "priority": 4, "persistent": True, "content": b"x"}
    told = {"destination": f"queue:{queue}", "messages": [message], "blocking_ms": blocking_ms}
    assert large.do(op.Put, session, **told) == []


def take(large: LargeState, session: int, consumer: int) -> None:
    """Gets a message and acknowledges it."""
    *_, delivered = large.do(op.Get, session, consumer=consumer, credit=1)
    first = delivered.first_delivery
    large.do(op.Acknowledge, session, deliveries=[{"first": first, "last": first}])


def test_what_waits_elsewhere_costs_an_entry_nothing(looked_at):
    """Of 200 full queues, each with a put that waits, the one that gets room is looked at."""
    large = LargeState()
    administrator = large.open()
    for number in range(QUEUES):
        full(large, administrator, f"q{number}")
        wait_for(large, large.open(), f"q{number}")
    getter = large.open()
    large.do(op.OpenConsumer, getter, consumer=1, destination="queue:q7")
    looked_at.clear()
    large.put(administrator, "queue:other")
    assert looked_at == []
    take(large, getter, 1)
    assert set(looked_at) == {"queue:q7"}
    assert len(large.state.blocked_puts) == QUEUES - 1
    invariants.check(large.state)


@pytest.mark.parametrize("policy", ["FIFO", "PREEMPTIVE"])
def test_of_many_that_wait_for_one_queue_few_are_looked_at(looked_at, policy):
    """Room for one message lets one go, whoever of 200 sessions waits behind it (INF-18)."""
    large = LargeState()
    administrator = large.open()
    full(large, administrator, "q", policy)
    for _ in range(QUEUES):
        wait_for(large, large.open(), "q")
    large.do(op.OpenConsumer, administrator, consumer=1, destination="queue:q")
    looked_at.clear()
    for left in range(QUEUES - 1, QUEUES - 11, -1):
        take(large, administrator, 1)
        assert len(large.state.blocked_puts) == left
    assert len(looked_at) <= 10 * 4
    invariants.check(large.state)


def test_a_quota_of_all_that_is_used_up_is_looked_at_once(looked_at):
    """While the queue manager has no room, no put of any queue is tried in vain (INF-04)."""
    large = LargeState()
    administrator = large.open()
    large.do(op.AlterQueueManager, administrator, messages_max=10)
    large.put(administrator, "queue:other", 10)
    for number in range(QUEUES):
        wait_for(large, large.open(), f"q{number}")
    looked_at.clear()
    large.do(op.AlterQueueManager, administrator, messages_max=9)
    assert len(looked_at) == QUEUES
    looked_at.clear()
    large.do(op.OpenConsumer, administrator, consumer=1, destination="queue:other")
    take(large, administrator, 1)
    assert looked_at == []
    take(large, administrator, 1)
    assert (looked_at[0], large.state.held_messages) == ("queue:q0", 9)
    invariants.check(large.state)


@pytest.mark.parametrize("policy", ["FIFO", "PREEMPTIVE"])
def test_a_put_that_waits_for_a_queue_looks_at_none_that_do(policy):
    """Whether it stays behind others is known by its queue, or by its session (SES-68)."""
    large = LargeState()
    administrator = large.open()
    full(large, administrator, "q", policy)
    for _ in range(QUEUES):
        wait_for(large, large.open(), "q")
    session = large.open()
    assert calls_of(lambda: wait_for(large, session, "q")) < QUEUES


def test_puts_that_time_out_together_cost_the_same_each():
    """Why each had no room is not found by a look at all others (INF-20)."""
    large = LargeState()
    administrator = large.open()
    full(large, administrator, "q")
    for _ in range(QUEUES):
        wait_for(large, large.open(), "q", 500)
    large.position += 600
    large.state.position = large.position - 1
    assert calls_of(lambda: large.put(administrator, "queue:other")) < 100 * QUEUES
    assert not large.state.blocked_puts


def test_a_limit_of_the_storage_that_is_taken_away_lets_puts_go():
    """Nothing else changes of what they wait for (DB-20, §19)."""
    lines = """
        open CLIENT
        B: open
        alter-manager segment_bytes=10 segments_min=1 segments_max=1
        put q A:10 -> enqueued 0..0
        B: put q B:10 block=9s -> nothing
        B: put r C:10 block=9s -> nothing
        alter-manager segments_max=0 -> accepted; B: enqueued 1..1; B: enqueued 0..0
    """
    play_lines(*(one.strip() for one in lines.strip().splitlines()))
