"""Laws find nothing in histories that mix generators, whole or cut into two or three."""

import random

import pytest

from ledgermq_spark.laws.all_laws import LAWS
from support.audits.engines import duck_engine
from support.audits.stretches import Stretches
from support.generators.hostile_histories import hostile_history
from support.generators.mixed_histories import mixed_history
from support.generators.settings_generators import settings_history
from support.planted.trial import log_of

pytestmark = [pytest.mark.long, pytest.mark.timeout(1_200)]

# Laws take about as long for one log as for some; more than these take much memory.
BATCH = 40
# Before these come those that are among the logs of all tests of laws.
FIRST, END = 10, 410


def findings(made, seeds, cuts):
    """What laws find in histories of those seeds, each cut so often."""
    stretches = Stretches()
    for seed in seeds:
        log = log_of(made(seed))
        ends = sorted(random.Random(seed).sample(range(1, len(log) - 1), cuts))
        stretches.cut(str(seed), log, ends)
    return stretches.facts(duck_engine()).judge(LAWS)


@pytest.mark.parametrize("first", range(FIRST, END, BATCH))
@pytest.mark.parametrize("cuts", [0, 2])
def test_mixed_histories_break_no_law(first, cuts):
    """What the fold makes of any of them is lawful, judged at once or with what is carried."""
    assert findings(mixed_history, range(first, first + BATCH), cuts) == []


@pytest.mark.parametrize("made", [settings_history, hostile_history])
@pytest.mark.parametrize("cuts", [0, 2])
def test_whatever_settings_meet_and_fields_hold_breaks_no_law(made, cuts):
    """So is what other writers wrote, and what becomes of settings that nobody set together."""
    assert findings(made, range(BATCH), cuts) == []
