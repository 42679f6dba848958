"""Headers as JSON texts: Spark can look into each, and they tell what was put."""

import json
import math

import pytest

from ledgermq_spark.log.headers import header_of, header_text, properties_text
from support.brokers.log_writer import color_header

PROPERTIES = {"a": math.inf, "b": -math.inf, "c": math.nan, "d": 1.5, "e": "NaN", "f": 7, "g": True}


def test_numbers_that_json_does_not_know_are_texts_for_spark():
    """Spark finds nothing in a text that is not JSON: of such messages the audit knew no lifetime,
    and called their expiry an anomaly.
    """
    header = {**color_header("red"), "properties": PROPERTIES, "time_to_live_ms": 9}
    told = json.loads(header_text(header), parse_constant=pytest.fail)
    assert told["p"] == PROPERTIES | {"a": "Infinity", "b": "-Infinity", "c": "NaN"}
    assert (told["x"], told["l"]) == (["a", "b", "c"], 9)
    assert json.loads(properties_text(PROPERTIES), parse_constant=pytest.fail) == told["p"]


def test_properties_are_read_as_they_were_put():
    """So a selector tells the number that is none from the text NaN; other headers name none."""
    found = header_of(header_text({**color_header("red"), "properties": PROPERTIES}))
    assert repr(found["p"]) == repr(PROPERTIES)
    assert "x" not in found
    assert "x" not in json.loads(header_text(color_header("red")))
    assert header_of(None) == {}
