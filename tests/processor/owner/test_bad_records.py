"""Bad records on all five topics, some hundred of them; `make fuzz` writes ten thousand."""

import pytest

from support.fuzz import Fuzz

pytestmark = pytest.mark.kafka


def test_bad_records_on_any_topic_stop_no_worker_without_a_remedy(place):
    """Whatever stands on a topic: the worker goes on, or the command in its log helps (F11, H3)."""
    fuzz = Fuzz(place, seed=5)
    for _ in range(2):
        fuzz.batch(150)
    fuzz.unknown_version()
    fuzz.check()
    assert any("log skip" in one for one in fuzz.remedies)
