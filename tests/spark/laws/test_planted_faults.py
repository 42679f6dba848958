"""The laws find what is wrong with the fold: each planted fault, in logs that it folded itself."""

from collections import defaultdict
from itertools import islice

import pytest

from ledgermq_spark.laws.all_laws import LAWS
from support.audits.engines import duck_engine
from support.audits.testimonies import Logs
from support.planted.all_faults import FAMILIES
from support.planted.planted_faults import round_of
from support.planted.trial import attempt, log_of, planted, told_of

pytestmark = pytest.mark.long

CLEAN = "clean"
# Of each family so many histories are judged as the right fold tells them.
CLEAN_LOGS = 10
# One fault is in two families: the first one shows it.
FAULTS = {fault.title: (fault, family) for family in reversed(FAMILIES) for fault in family.faults}


def clean_logs(family):
    """Return histories of a family, from its first rounds."""
    every = (one for number in range(CLEAN_LOGS) for one, _ in round_of(family, number, told_of))
    return map(log_of, islice(every, CLEAN_LOGS))


@pytest.fixture(scope="module")
def trials():
    """Return what each fault does to histories, by its title."""
    return {title: attempt(*FAULTS[title]) for title in FAULTS}


@pytest.fixture(scope="module")
def judged(spark, trials):
    """Return the laws that each log breaks by their letters: all are judged in one run."""
    logs = Logs()
    for title, trial in trials.items():
        for number, log in enumerate(trial.logs):
            with planted(FAULTS[title][0]):
                logs.fold(f"{title} {number}", log)
    for family in FAMILIES:
        for at, log in enumerate(clean_logs(family)):
            logs.fold(f"{CLEAN} {family.name}: {at}", log)
    letters = defaultdict(set)
    for row in logs.facts(duck_engine()).judge(LAWS):
        letters[row["queue_manager"]].add(row["law"])
    return letters


def test_clean_histories_break_no_law(judged):
    """What the right fold makes of any history is lawful."""
    assert {name: judged[name] for name in judged if name.startswith(CLEAN)} == {}


@pytest.mark.parametrize("title", FAULTS)
def test_planted_fault_is_found_by_a_law(judged, trials, title):
    """A law finds it in one of the logs, or the fold stops by itself whenever it goes wrong."""
    trial = trials[title]
    found = {law for at in range(len(trial.logs)) for law in judged.get(f"{title} {at}", ())}
    stops = bool(trial.stops) and not trial.logs
    assert found or stops, f"not found in {len(trial.logs)} logs"
