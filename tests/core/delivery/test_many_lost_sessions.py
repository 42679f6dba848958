"""Sessions of one queue that are lost together: each costs the same, however many they are."""

from __future__ import annotations

from typing import Any

import pytest

from ledgermq.protocol import operations as op
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
