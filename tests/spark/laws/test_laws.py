"""Laws of history: quiet on what the fold makes of any log, and each finds what breaks it."""

import pytest

from ledgermq_spark.laws.all_laws import LAWS
from support.audits.tampered_logs import TAMPERED

pytestmark = pytest.mark.timeout(1_200)


def test_no_log_breaks_a_law(broken, scripts):
    """What the fold states of every story and every random log is lawful (D10)."""
    assert {name: broken[name] for name in scripts if broken[name]} == {}


def test_the_log_as_it_was_breaks_no_law(broken):
    """What is changed in it is all that is wrong with the others."""
    assert broken["as it was"] == []


@pytest.mark.parametrize("name", TAMPERED)
def test_what_breaks_a_law_is_found_by_it(broken, name):
    """Each law finds the smallest thing that breaks it (D10)."""
    assert TAMPERED[name][0] in {law for law, _, _ in broken[name]}


def test_every_law_has_something_that_breaks_it():
    """A law that nothing breaks says nothing."""
    assert {letter for letter, _ in TAMPERED.values()} == {law.letter for law in LAWS}
