"""Kills with messages waiting; nothing is lost, nothing is there twice (D5, H1)."""

import pytest

from ledgermq.processor.worker.crash_points import CRASH_POINTS
from support.soak import Soak

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1500)]


@pytest.mark.parametrize(
    ("rounds", "depth"), [(10, 10_000), pytest.param(20, 30_000, marks=pytest.mark.long)]
)
def test_kills_at_depth_lose_nothing_and_the_audit_agrees(place, rounds, depth):
    """After every SIGKILL the lanes hold the fold of the log, at the end the audit proves it."""
    soak = Soak(place, depth, say=print)
    for _ in range(rounds):
        soak.round()
    soak.rest()
    soak.audit()
    soak.close()
    assert all(soak.deaths[point] >= rounds // len(CRASH_POINTS) for point in CRASH_POINTS)
    waiting = soak.follower.state.queues["deep"]
    assert waiting.next_sequence > depth
    assert len(waiting.messages) > depth // 2
