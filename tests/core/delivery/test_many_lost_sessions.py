"""Sessions of one queue that are lost together: each costs the same, however many they are."""

from __future__ import annotations

from typing import Any

import pytest

from ledgermq.protocol import operations as op
from ledgermq.protocol import outcomes as out
from support.checks.calls import calls_of
from support.invariants import whole_state as invariants
from support.messages.large_states import LargeState

SELECTED = {"selector": "color = 'red' AND JMSPriority < 9"}


def calls_of_a_loss(many: int, others: int, consumer: dict[str, str], queue: dict[str, Any]) -> int:
    """What ends so many sessions that each hold two messages and have credit, while others wait."""
    large = LargeState()
    administrator = large.open()
    large.do(op.CreateQueue, administrator, queue="q", **queue)
    silent = [large.open(connection=(2 + one).to_bytes(16, "big")) for one in range(many)]
    for session in silent:
        large.do(op.OpenConsumer, session, consumer=1, destination="queue:q", **consumer)
        large.do(op.Get, session, consumer=1, credit=5)
    for number in range(2 * many):
        large.put(administrator, "queue:q", color="red", JMSXGroupID=f"g{number % many}")
    for session in [large.open() for _ in range(others)]:
        large.do(op.OpenConsumer, session, consumer=1, destination="queue:q")
        large.do(op.Get, session, consumer=1, credit=2)
    large.apply(op.Suspect(worker="w", sessions=silent))
    large.position += 10_100
    large.state.position = large.position - 1
    calls = calls_of(lambda: large.apply(op.Tick(worker="w")))
    assert len(large.state.sessions) == 1 + others
    assert len(large.state.queues["q"].doubts) == 2 * many
    invariants.check(large.state)
    return calls


@pytest.mark.parametrize("others", [0, 2])
@pytest.mark.parametrize(
    ("consumer", "queue"),
    [({}, {}), (SELECTED, {}), ({}, {"unacknowledged_max": 5}), ({}, {"group_affinity": True})],
    ids=["plain", "selecting", "limited", "bonded"],
)
def test_twice_as_many_lost_sessions_cost_twice_as_much(others, consumer, queue):
    """The end of one looks at none of those that are to end, nor at whom they could deliver to."""
    few = calls_of_a_loss(200, others, consumer, queue)
    assert calls_of_a_loss(400, others, consumer, queue) < 2.2 * few


class Looks(dict[int, Any]):
    """Consumers of a session that counts how often all of them are looked at."""

    looks = 0

    def values(self):
        """All of them."""
        self.looks += 1
        return super().values()


def test_what_was_handed_over_tells_of_its_own_consumers_alone():
    """A session with 300 consumers says of each delivery that it has it: few are looked at, and
    who had a doubt gets what comes next (H20).
    """
    large = LargeState()
    lost, putter = large.open(connection=bytes(15) + b"\2"), large.open()
    large.do(op.OpenConsumer, lost, consumer=1, destination="queue:q7")
    large.put(putter, "queue:q7")
    large.do(op.Get, lost, consumer=1, credit=1)
    large.do(op.EndSession, putter, target_session=lost, actor="a", reason="r")
    session = large.open()
    for number in range(1, 301):
        large.do(op.OpenConsumer, session, consumer=number, destination=f"queue:q{number}")
        large.do(op.Get, session, consumer=number, credit=5)
    consumers = large.state.sessions[session].consumers = Looks(
        large.state.sessions[session].consumers
    )
    assert consumers[7].doubt == 1
    for delivery in range(1, 20):
        settled = [{"first": delivery, "last": delivery}]
        told = {"deliveries": settled, "handed_through": delivery}
        large.put(putter, "queue:q7")
        found = large.do(op.Acknowledge, session, **told)
        assert len(found) == (2 if delivery == 1 else 1)
    assert consumers.looks == 0
    invariants.check(large.state)


def test_a_session_with_many_consumers_settles_a_protected_queue_in_turn():
    """None of its 300 consumers is looked at, and what is out of turn is refused all the same."""
    large = LargeState()
    session = large.open()
    large.do(op.CreateQueue, session, queue="q7", settings={"fifo_mode": "PROTECTED"})
    for number in range(1, 301):
        large.do(op.OpenConsumer, session, consumer=number, destination=f"queue:q{number}")
        large.do(op.Get, session, consumer=number, credit=5)
    for name in ("q7", "q7", "q8"):
        large.put(session, f"queue:{name}")
    consumers = large.state.sessions[session].consumers = Looks(
        large.state.sessions[session].consumers
    )
    settled = [{"first": 3, "last": 3}]
    (accepted,) = large.do(op.Acknowledge, session, deliveries=settled)
    assert isinstance(accepted, out.Accepted)
    settled = [{"first": 2, "last": 2}]
    (refused,) = large.do(op.Acknowledge, session, deliveries=settled)
    assert refused.reason == "out-of-turn"
    settled = [{"first": 1, "last": 2}]
    (accepted,) = large.do(op.Acknowledge, session, deliveries=settled)
    assert (type(accepted), consumers.looks) == (out.Accepted, 0)
