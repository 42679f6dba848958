"""The worker is killed at every point that matters; the lanes hold the fold of the log (H1, F1)."""

import pytest

from ledgermq.processor.worker.crash_points import CRASH_POINTS
from support.brokers.traffic import Traffic
from support.checks.history import check_history

# What each of these shows is in `test_crashes_at_depth` too, with one ledger for all of them.
pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.long]

COUNTS = {"after-fold": 20, "after-produce": 20}


@pytest.mark.parametrize("point", CRASH_POINTS)
def test_a_kill_at_any_point_loses_nothing_and_changes_no_outcome(place, point):
    """After SIGKILL at a crash point and a restart, the lanes are exactly the fold of the log."""
    worker = place.worker(
        "crashing",
        CRASH_AT=f"{point}:{COUNTS.get(point, 2)}",
        CHECKPOINT_SECONDS=0.3,
    )
    traffic = Traffic(place.client(0), place.client(1), seed=CRASH_POINTS.index(point))
    for _ in range(400):
        traffic.step()
        if worker.code is not None:
            break
    assert worker.wait() == -9, worker.log
    traffic.run(10)
    place.worker("crashing")
    traffic.run(10)
    traffic.settle()
    fold, recorded = check_history(place)
    assert fold.state.position > 40
    assert recorded.repeats or point not in ("after-produce", "after-chunks", "before-manifest")
