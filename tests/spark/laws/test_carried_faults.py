"""What laws find in a log they find in its stretches: planted faults, and histories without any."""

import random
from collections import defaultdict

import pytest

from ledgermq_spark.laws.all_laws import LAWS
from spark.laws.test_planted_faults import FAULTS, clean_logs
from support.audits.engines import duck_engine
from support.audits.stretches import Stretches
from support.audits.testimonies import Logs
from support.planted.all_faults import FAMILIES
from support.planted.trial import attempt, planted

pytestmark = pytest.mark.long

CLEAN = "clean"
CUTS = 3
# Laws of what stands in the end.
SUMS = "NO"


def ends(name, log):
    """Return random positions behind which a log is cut."""
    places = range(len(log) - 1)
    return sorted(random.Random(name).sample(places, min(CUTS, len(places))))


def laws_of_sums(found):
    """Return the laws of what stands in the end that are broken."""
    return {law for law, _, _ in found if law in SUMS}


@pytest.fixture(scope="module")
def found(spark):
    """Return what is found in each log, as a whole and in stretches, by its name."""
    stretches, whole = Stretches(), Logs()
    for family in FAMILIES:
        for at, log in enumerate(clean_logs(family)):
            stretches.cut(f"{CLEAN} {family.name}: {at}", log, ends(f"{family.name} {at}", log))
    for title, (fault, family) in FAULTS.items():
        for log in attempt(fault, family).logs[-1:]:
            with planted(fault):
                stretches.cut(title, log, ends(title, log))
                whole.fold(title, log)
    judged = defaultdict(lambda: (set(), set()))
    for row in stretches.facts(duck_engine()).judge(LAWS):
        name = row["queue_manager"].rpartition(" ")[0]
        judged[name][1].add((row["law"], row["kind"], row["position"]))
    for row in whole.facts(duck_engine()).judge(LAWS):
        judged[row["queue_manager"]][0].add((row["law"], row["kind"], row["position"]))
    return judged


def test_stretches_of_clean_histories_break_no_law(found):
    """What is carried is all that any law asks for."""
    assert {name: found[name] for name in found if name.startswith(CLEAN)} == {}


@pytest.mark.parametrize("title", FAULTS)
def test_stretches_show_of_a_planted_fault_what_the_log_shows(found, title):
    """What is found in the log is found in the stretch of it where it is, and nowhere else is any.

    Of what is gone a stretch knows nothing: where it comes again, more laws may speak than in the
    whole log. Sums go on from what the stretch before ended with: they show at an end, once.
    """
    whole, stretched = found[title]
    assert laws_of_sums(whole) <= laws_of_sums(stretched)
    there, here = (
        {one for one in findings if one[0] not in SUMS} for findings in (whole, stretched)
    )
    assert there <= here
    assert {position for *_, position in here} == {position for *_, position in there}
