"""Laws find nothing in histories that mix all generators, whole or cut into two or three."""

import random

import pytest

from ledgermq_spark.laws.all_laws import LAWS
from support.audits.engines import duck_engine
from support.audits.stretches import Stretches
from support.generators.mixed_histories import mixed_history
from support.planted.trial import log_of

pytestmark = [pytest.mark.long, pytest.mark.timeout(1_200)]

# Laws take about as long for one log as for some; more than these take much memory.
BATCH = 40
# Before these come those that are among the logs of all tests of laws.
FIRST, END = 10, 410


@pytest.mark.parametrize("first", range(FIRST, END, BATCH))
@pytest.mark.parametrize("cuts", [0, 2])
def test_mixed_histories_break_no_law(first, cuts):
    """What the fold makes of any of them is lawful, judged at once or with what is carried."""
    stretches = Stretches()
    for seed in range(first, first + BATCH):
        log = log_of(mixed_history(seed))
        ends = sorted(random.Random(seed).sample(range(1, len(log) - 1), cuts))
        stretches.cut(str(seed), log, ends)
    assert stretches.facts(duck_engine()).judge(LAWS) == []
