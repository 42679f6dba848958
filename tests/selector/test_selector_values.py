"""Numbers, ranges and patterns in message selectors (Jakarta Messaging 3.1, section 3.8.1)."""

from __future__ import annotations

import math

import pytest

from support.messages.selectors import LONG_MAX, LONG_MIN, outcome

T, F, U = True, False, None


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        *[("1 + 2 * 3", 7), ("(1 + 2) * 3", 9), ("10 - 4 - 3", 3), ("100 / 10 / 5", 2)],
        *[("2 * 7 / 4", 3), ("7 / 4 * 2", 2), ("- 2 + 3", 1), ("2 - -3", 5), ("2 - - - 3", -1)],
        *[("+5", 5), ("-(2 + 3)", -5), ("2 * -3", -6), ("--5", 5), ("-a", -7), ("+a", 7)],
        *[("7 / 2", 3), ("-7 / 2", -3), ("7 / -2", -3), ("-7 / -2", 3), ("1 / 2 * 2", 0)],
        *[("7 / 2.0", 3.5), ("7.0 / 2", 3.5), ("1 / 2 + 0.5", 0.5), ("0.1 + 0.2", 0.1 + 0.2)],
        *[("-b", -0.5), ("+b", 0.5), ("a * b", 3.5), ("b - a", -6.5)],
        *[
            (f"{LONG_MAX} + 0", LONG_MAX),
            (f"{LONG_MIN} + 0", LONG_MIN),
            (f"- {LONG_MAX}", -LONG_MAX),
        ],
        (f"{LONG_MAX} + 1.0", 2.0**63),
        *[("1 / 0.0", math.inf), ("-1 / 0.0", -math.inf), ("1 / -0.0", -math.inf)],
        *[("1.0 / 0", math.inf), ("1e308 * 10", math.inf), ("-1e308 - 1e308", -math.inf)],
    ],
)
def test_arithmetic(expression, expected):
    """Precedence, order from the left, quotients cut towards zero, doubles as IEEE has them."""
    assert outcome(f"{expression} = wanted", a=7, b=0.5, wanted=expected) is True


@pytest.mark.parametrize(
    "expression",
    [
        *["missing + 1", "1 - missing", "-missing", "+missing", "missing * 0"],
        *[
            "text + 1",
            "1 * text",
            "-text",
            "+text",
            "flag + 1",
            "flag * 1.0",
            "-flag",
            "text + text",
        ],
        *["1 / 0", "one / (one - 1)", "0 / 0", f"{LONG_MAX} + one", f"{LONG_MIN} - one"],
        *["longest + longest", "longest * 2", "-shortest", "shortest / -1", "0 * (longest + 1)"],
    ],
)
def test_arithmetic_without_a_number_is_unknown(expression):
    """NULL, other types, exact division by zero and results beyond 64 bits are no number."""
    values = {"text": "2", "flag": True, "one": 1, "longest": LONG_MAX, "shortest": LONG_MIN}
    assert outcome(f"{expression} = 1", **values) is None
    assert outcome(f"{expression} <> 1.0", **values) is None
    assert outcome(f"{expression} BETWEEN 1 AND 2", **values) is None


@pytest.mark.parametrize("expression", ["0.0 / 0", "0 / 0.0", "big * 0", "big - big", "nan / 0.0"])
def test_approximate_results_that_are_no_number_equal_nothing(expression):
    """NaN is a value, as in Java: it differs from everything and is not NULL."""
    values = {"big": math.inf, "nan": math.nan}
    assert outcome(f"{expression} = 1", **values) is False
    assert outcome(f"{expression} <> 1", **values) is True
    assert outcome(f"{expression} = {expression}", **values) is False


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        *[("a BETWEEN 1 AND b", {"a": 0}, F), ("a BETWEEN 1 AND b", {"a": 1}, U)],
        *[("a NOT BETWEEN 1 AND b", {"a": 0}, T), ("a NOT BETWEEN 1 AND b", {"a": 1}, U)],
        *[("a BETWEEN 1 AND 2", {}, U), ("a BETWEEN 1 AND 2", {"a": "1"}, F)],
        *[("a NOT BETWEEN 1 AND 2", {}, U), ("a NOT BETWEEN 1 AND 2", {"a": "1"}, F)],
        *[("a BETWEEN 2 AND 1", {"a": 1}, F), ("a NOT BETWEEN 2 AND 1", {"a": 1}, T)],
        *[("a + 1 BETWEEN b * 2 AND 1.5E1", {"a": 5, "b": 3}, T)],
        *[("a BETWEEN 1 AND 2 AND b", {"a": 1, "b": True}, T), ("a BETWEEN 1 AND 2", {"a": 2}, T)],
        *[("NOT a BETWEEN 1 AND 2", {"a": "1"}, T), ("a between 1 and 2", {"a": 3}, F)],
    ],
)
def test_between_is_its_two_comparisons(text, values, expected):
    """BETWEEN is >= AND <=, NOT BETWEEN is < OR >, with their unknowns and unlike types."""
    assert outcome(text, **values) is expected


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        *[("a IN ('x')", "x", T), ("a IN ('x','x')", "y", F), ("a IN ('it''s', '')", "", T)],
        *[("a IN ('1')", 1, F), ("a NOT IN ('1')", 1, T), ("a IN ('x')", True, F)],
        *[("a in ('x')", None, U), ("a not in ('x')", None, U), ("(a) NOT IN ('x')", "y", T)],
        *[("a LIKE '1'", 1, F), ("a NOT LIKE '1'", 1, T), ("a LIKE '%'", True, F)],
    ],
)
def test_in_and_like_of_other_types_are_false(text, value, expected):
    """IN and LIKE are false of what is no string, and their opposites are NOT of that."""
    assert outcome(text, a=value) is expected


@pytest.mark.parametrize(
    ("pattern", "escape", "text", "expected"),
    [
        *[("", None, "", T), ("", None, "a", F), ("%", None, "", T), ("%%", None, "abc", T)],
        *[("_", None, "a", T), ("_", None, "", F), ("_", None, "ab", F), ("__", None, "ab", T)],
        *[
            ("a%", None, "a", T),
            ("a%", None, "ba", F),
            ("%a", None, "ba", T),
            ("%a", None, "ab", F),
        ],
        *[("%a%", None, "bab", T), ("%a%", None, "bbb", F), ("a%a", None, "a", F)],
        *[("a%a", None, "aa", T), ("ab%ba", None, "aba", F), ("%a_c%", None, "xxabcxx", T)],
        *[("a%b%c", None, "abbcc", T), ("a%b%c", None, "acb", F), ("%_%", None, "", F)],
        *[("%ab%ab%", None, "abab", T), ("%ab%ab%", None, "abb", F), ("_%_", None, "a", F)],
        *[("a.c", None, "abc", F), ("a.c", None, "a.c", T), ("[a-z]*", None, "[a-z]*", T)],
        *[("(a|b)", None, "a", F), (r"a\d+^$", None, r"a\d+^$", T), ("a{2}?", None, "a{2}?", T)],
        *[("a%z", None, "a\n\r\u2028z", T), ("a_z", None, "a\nz", T), ("a", None, "a\n", F)],
        *[("_", None, "😀", T), ("A%", None, "ab", F), ("%é", None, "café", T)],
        *[("a!%", "!", "a%", T), ("a!%", "!", "ab", F), ("a!_c", "!", "a_c", T)],
        *[("a!_c", "!", "abc", F), ("a!!", "!", "a!", T), ("a!!%", "!", "a!bc", T)],
        *[("!%%", "!", "%x", T), ("%!%", "!", "x%", T), ("%!%", "!", "x", F)],
        # Before anything else the escape character is itself, as in Artemis; so also at the end.
        *[("a!b", "!", "a!b", T), ("a!", "!", "a!", T), ("%!", "!", "x!", T)],
        *[("a%%", "%", "a%", T), ("a%%", "%", "ab", F), ("a%_", "%", "a_", T)],
        *[("__", "_", "_", T), ("__", "_", "a", F), ("'", None, "'", T), ("%'", "'", "x'", T)],
    ],
)
def test_like(pattern, escape, text, expected):
    """Patterns with wildcards, escapes, and characters that mean something elsewhere."""
    quoted = pattern.replace("'", "''")
    ending = "" if escape is None else f" ESCAPE '{escape.replace(chr(39), chr(39) * 2)}'"
    assert outcome(f"a LIKE '{quoted}'{ending}", a=text) is expected
    assert outcome(f"a NOT LIKE '{quoted}'{ending}", a=text) is not expected


def test_a_hostile_pattern_ends_soon():
    """Many wildcards do not multiply: this would not end if each piece were tried everywhere."""
    pattern = "%a" * 1000 + "%b_"
    assert outcome(f"a LIKE '{pattern}'", a="a" * 5000) is False


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        *[("57", 57), ("-957", -957), ("+62", 62), ("0", 0), ("00", 0), ("017", 15), ("0_7", 7)],
        *[
            ("57L", 57),
            ("57l", 57),
            ("0x1F", 31),
            ("0XffL", 255),
            ("0b101", 5),
            ("1_000_000", 10**6),
        ],
        *[(str(LONG_MAX), LONG_MAX), (str(LONG_MIN), LONG_MIN), (f"- {-LONG_MIN}L", LONG_MIN)],
        *[("0x7FFFFFFFFFFFFFFF", LONG_MAX), ("07L", 7), ("9_223_372_036_854_775_807", LONG_MAX)],
        *[("7E3", 7000.0), ("-57.9E2", -5790.0), ("7.", 7.0), ("-95.7", -95.7), ("+6.2", 6.2)],
        *[
            (".5", 0.5),
            ("-.5e-1", -0.05),
            ("7.e+1", 70.0),
            ("1f", 1.0),
            ("0.1F", 0.1),
            ("1e1d", 10.0),
        ],
        *[("1D", 1.0), ("09.5", 9.5), ("08d", 8.0), ("0x1.8p3", 12.0), ("0x.8P-1f", 0.25)],
        *[
            ("0x1p0", 1.0),
            ("0x1_0p0", 16.0),
            ("1_0.0_1", 10.01),
            ("0e5", 0.0),
            ("4.9e-324", 5e-324),
            ("0x0p0", 0.0),
        ],
        ("1.7976931348623157e308", 1.7976931348623157e308),
    ],
)
def test_numeric_literals(literal, value):
    """Java's integer and floating-point literals; without a point or power a number is exact."""
    assert outcome(f"a = {literal}", a=value) is True
    # Only a quotient of exact numbers is cut off.
    halves = abs(value) < 2**50 and outcome(f"({literal} * 0 + 1) / 2 = 0.5") is True
    assert halves is (isinstance(value, float) and abs(value) < 2**50)
