"""Ten kills with 10,000 messages waiting; nothing is lost, nothing is there twice (D5, H1)."""

import pytest

from ledgermq.processor.worker.crash_points import CRASH_POINTS
from support.soak import Soak

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1500)]

ROUNDS = 10
DEPTH = 10_000


def test_ten_kills_at_depth_lose_nothing_and_the_audit_agrees(place):
    """After every SIGKILL the lanes hold the fold of the log, at the end the audit proves it."""
    soak = Soak(place, DEPTH, say=print)
    for _ in range(ROUNDS):
        soak.round()
    soak.rest()
    soak.audit()
    soak.close()
    assert all(soak.deaths[point] for point in CRASH_POINTS)
    waiting = soak.follower.state.queues["deep"]
    assert waiting.next_sequence > DEPTH
    assert len(waiting.messages) > DEPTH // 2
