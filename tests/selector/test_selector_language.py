"""Message selectors match as Jakarta Messaging 3.1, section 3.8.1, says (SES-35, SES-36)."""

from __future__ import annotations

import enum
import math

import pytest

from ledgermq.selector import SELECTOR_CHARACTERS_MAX, parse_selector
from support.messages.selectors import LONG_MAX, LONG_MIN, outcome, parsed

T, F, U = True, False, None


@pytest.mark.parametrize("text", [None, "", " ", " \t\r\n\f"])
def test_null_and_empty_selectors_are_no_selector(text):
    """SES-36: null, empty and blank text select everything."""
    assert parse_selector(text) is None


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("age BETWEEN 15 AND 19", {"age": 15}, T),
        ("age BETWEEN 15 AND 19", {"age": 20}, F),
        ("age NOT BETWEEN 15 AND 19", {"age": 15}, F),
        ("age NOT BETWEEN 15 AND 19", {"age": 20}, T),
        ("Country IN ('UK', 'US', 'France')", {"Country": "UK"}, T),
        ("Country IN ('UK', 'US', 'France')", {"Country": "Peru"}, F),
        ("Country IN ('UK', 'US', 'France')", {}, U),
        ("Country NOT IN ('UK', 'US', 'France')", {"Country": "UK"}, F),
        ("Country NOT IN ('UK', 'US', 'France')", {"Country": "Peru"}, T),
        ("Country NOT IN ('UK', 'US', 'France')", {}, U),
        ("phone LIKE '12%3'", {"phone": "123"}, T),
        ("phone LIKE '12%3'", {"phone": "12993"}, T),
        ("phone LIKE '12%3'", {"phone": "1234"}, F),
        ("word LIKE 'l_se'", {"word": "lose"}, T),
        ("word LIKE 'l_se'", {"word": "loose"}, F),
        (r"underscored LIKE '\_%' ESCAPE '\'", {"underscored": "_foo"}, T),
        (r"underscored LIKE '\_%' ESCAPE '\'", {"underscored": "bar"}, F),
        ("phone NOT LIKE '12%3'", {"phone": "123"}, F),
        ("phone NOT LIKE '12%3'", {"phone": "12993"}, F),
        ("phone NOT LIKE '12%3'", {"phone": "1234"}, T),
        ("phone LIKE '12%3'", {}, U),
        ("phone NOT LIKE '12%3'", {}, U),
        ("prop_name IS NULL", {}, T),
        ("prop_name IS NULL", {"prop_name": ""}, F),
        ("prop_name IS NOT NULL", {}, F),
        ("prop_name IS NOT NULL", {"prop_name": False}, T),
        ("NumberOfOrders > 1", {"NumberOfOrders": "2"}, F),
        (
            "JMSType = 'car' AND color = 'blue' AND weight > 2500",
            {"JMSType": "car", "color": "blue", "weight": 2501},
            T,
        ),
        (
            "JMSType = 'car' AND color = 'blue' AND weight > 2500",
            {"JMSType": "car", "color": "blue", "weight": 2500},
            F,
        ),
    ],
)
def test_the_examples_of_the_specification(text, values, expected):
    """Each example of section 3.8.1.1 does what the specification says of it."""
    assert outcome(text, **values) is expected


TRUTHS = {"t": True, "f": False}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *[("t AND t", T), ("t AND f", F), ("t AND u", U), ("f AND t", F), ("f AND f", F)],
        *[("f AND u", F), ("u AND t", U), ("u AND f", F), ("u AND u", U)],
        *[("t OR t", T), ("t OR f", T), ("t OR u", T), ("f OR t", T), ("f OR f", F)],
        *[("f OR u", U), ("u OR t", T), ("u OR f", U), ("u OR u", U)],
        *[("NOT t", F), ("NOT f", T), ("NOT u", U), ("NOT NOT u", U), ("NOT NOT t", T)],
        *[("u AND t AND f", F), ("t AND u AND t", U), ("f OR u OR t", T), ("u OR f OR f", U)],
        *[("t OR f AND f", T), ("(t OR f) AND f", F), ("NOT f AND f", F), ("NOT (f AND f)", T)],
        *[("NOT t = f", T), ("NOT f OR t", T), ("(u AND t) OR t", T)],
        *[("TRUE", T), ("FALSE", F), ("true AND True", T), ("tRUE oR u aNd NoT fALSE", T)],
    ],
)
def test_three_valued_logic(text, expected):
    """Tables 3-4 to 3-6, and NOT before AND before OR; a missing property is unknown."""
    assert outcome(text, **TRUTHS) is expected


@pytest.mark.parametrize("value", ["true", "TRUE", "", 1, 0, 1.0])
def test_an_identifier_that_is_no_boolean_is_a_false_condition(value):
    """No value is taken for a boolean that is none."""
    assert outcome("a", a=value) is False


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        *[("a = 1", {"a": 1}, T), ("a = 1", {"a": 2}, F), ("a = 1", {}, U), ("1 = a", {"a": 1}, T)],
        *[("a <> 1", {"a": 1}, F), ("a <> 1", {"a": 2}, T), ("a <> 1", {}, U)],
        *[("a < 1", {"a": 0}, T), ("a < 1", {"a": 1}, F), ("a <= 1", {"a": 1}, T)],
        *[("a > 1", {"a": 1}, F), ("a > 1", {"a": 2}, T), ("a >= 1", {"a": 1}, T)],
        *[("a >= 1", {"a": 0}, F), ("a <= 1", {"a": 2}, F)],
        *[("1 < a", {"a": 2}, T), ("1 <= a", {"a": 1}, T), ("1 > a", {"a": 2}, F)],
        *[("1 >= a", {"a": 1}, T), ("1 <> a", {"a": 1}, F), ("1 < a", {"a": 1}, F)],
        *[("a = b", {"a": "x", "b": "x"}, T), ("a = b", {"a": "x"}, U), ("a < b", {"a": 1}, U)],
        *[("a = 'x'", {"a": "x"}, T), ("a = 'x'", {"a": "X"}, F), ("a <> 'x'", {"a": "y"}, T)],
        *[("a = ''", {"a": ""}, T), ("a = 'it''s'", {"a": "it's"}, T), ("a = 'é'", {"a": "é"}, T)],
        *[("a = TRUE", {"a": True}, T), ("a <> TRUE", {"a": False}, T), ("a = false", {}, U)],
        *[("(a > 1) = TRUE", {"a": 2}, T), ("(a > 1) = b", {"a": 2, "b": False}, F)],
        *[("(a > 1) = TRUE", {}, U), ("(a) = (1)", {"a": 1}, T)],
    ],
)
def test_comparisons_of_like_types(text, values, expected):
    """Values of one type compare; a comparison with a missing property is unknown."""
    assert outcome(text, **values) is expected


@pytest.mark.parametrize("sign", ["=", "<>", "<", "<=", ">", ">="])
@pytest.mark.parametrize(
    ("left", "right"), [("1", 1), (True, 1), (True, "TRUE"), (1.0, "1"), (0.0, False), ("", False)]
)
def test_comparisons_of_unlike_types_are_false(sign, left, right):
    """Nothing is converted: not even <> is true of a string and a number."""
    assert outcome(f"a {sign} b", a=left, b=right) is False
    assert outcome(f"a {sign} b", a=right, b=left) is False


@pytest.mark.parametrize(
    ("text", "value"),
    [("a = 1", "1"), ("a = 1", True), ("a = '1'", 1), ("a = TRUE", 1), ("a <> 1.5", "x")],
)
def test_comparisons_with_unlike_literals_are_false(text, value):
    """The short way for literals follows the same rule."""
    assert outcome(text, a=value) is False


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">="])
@pytest.mark.parametrize(("left", "right"), [("a", "b"), ("a", "a"), (True, False), (True, True)])
def test_strings_and_booleans_have_no_order(sign, left, right):
    """Strings and booleans know = and <> only; the rest is false, and unknown with NULL."""
    assert outcome(f"a {sign} b", a=left, b=right) is False
    assert outcome(f"a {sign} b", a=left) is None
    assert outcome(f"a {sign} 'a'", a=left) is False


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        *[("a = 5.0", {"a": 5}, T), ("a = 5", {"a": 5.0}, T), ("a < 5.5", {"a": 5}, T)],
        # A long becomes the nearest double, as in Java; Python alone would see a difference.
        ("a = b", {"a": 2**53 + 1, "b": float(2**53)}, T),
        (f"a = {2**53 + 1}", {"a": float(2**53)}, T),
        (f"a > {2**53}.0", {"a": 2**53 + 1}, F),
        ("a = b", {"a": 2**53 + 1, "b": 2**53}, F),
        ("a < b", {"a": LONG_MAX, "b": 2.0**63}, F),
        *[
            ("a = a", {"a": math.nan}, F),
            ("a <> a", {"a": math.nan}, T),
            ("a < 1", {"a": math.nan}, F),
        ],
        *[("a > 1", {"a": math.inf}, T), ("a = 0.0", {"a": -0.0}, T)],
        ("a NOT BETWEEN 1 AND 2", {"a": math.nan}, F),
    ],
)
def test_exact_and_approximate_numbers_compare_as_doubles(text, values, expected):
    """Java's numeric promotion decides, on every version of Python."""
    assert outcome(text, **values) is expected


@pytest.mark.parametrize("name", ["a", "_", "$", "$1_a", "JMSX1", "JMS_x", "jms", "nulls", "NOTE"])
def test_identifiers(name):
    """Names of letters, digits, _ and $, with reserved words only as a part."""
    assert outcome(f"{name} = 1", **{name: 1}) is True
    assert parsed(f"{name} = 1").identifiers == (name,)


def test_identifiers_are_case_sensitive():
    """`a` is not `A`, though AND is `and`."""
    assert outcome("a = 1 and A = 2", a=1, A=2) is True


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("JMSDeliveryMode = 'PERSISTENT'", "PERSISTENT"),
        ("JMSPriority >= 5", 9),
        ("JMSMessageID LIKE 'ID:%'", "ID:" + "0f" * 16),
        ("JMSTimestamp > 1700000000000", 1700000000001),
        ("JMSCorrelationID IS NOT NULL", "x"),
        ("JMSType = 'car'", "car"),
        ("JMSXDeliveryCount > 1", 2),
        ("JMSXGroupID = 'g'", "g"),
    ],
)
def test_headers_and_defined_properties(text, value):
    """The six headers that a selector may name, and JMSX properties, are identifiers."""
    (name,) = parsed(text).identifiers
    assert outcome(text, **{name: value}) is True


@pytest.mark.parametrize("text", ["a='x'AND b=1", "a\n=\t'x'\fAND\r\nb=1", " ( a='x' )AND(b=1) "])
def test_white_space_stands_where_it_is_needed_or_wanted(text):
    """Space, tab, form feed and line ends separate; nothing needs them beside a sign or quote."""
    assert outcome(text, a="x", b=1) is True


def test_minus_minus_is_no_comment():
    """SQL comments are not supported."""
    assert outcome("a = 1 --1", a=2) is True


def test_identifiers_come_in_the_order_of_their_first_use():
    """Each name once, from left to right, wherever it stands."""
    text = "c > 1 AND (a + d IS NULL OR b LIKE 'x' OR c = a) AND NOT e BETWEEN f AND -g"
    text = text.replace("a + d IS NULL", "a + d = 1")
    assert parsed(text).identifiers == ("c", "a", "d", "b", "e", "f", "g")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 'x'", (("a", "x"),)),
        ("'x' = a AND b = TRUE AND c = 5", (("a", "x"), ("b", True), ("c", 5))),
        (
            "((a = 'x') AND (b = -7L AND c > 1)) AND FALSE = d",
            (("a", "x"), ("b", -7), ("d", False)),
        ),
        ("a = 'x' OR b = 'y'", ()),
        ("NOT a = 'x'", ()),
        ("a <> 'x' AND b = 'y'", (("b", "y"),)),
        ("a = 1.0 AND b = c AND d IN ('x') AND 'x' = 'x'", ()),
        ("(a = 1) = TRUE AND b + 1 = 2", ()),
        (f"a = {2**53} AND b = -{2**53}", (("a", 2**53), ("b", -(2**53)))),
        (f"a = {2**53 + 1} AND b = -{2**53 + 1}", ()),
    ],
)
def test_equalities_are_what_every_match_must_have(text, expected):
    """Only conjuncts that one value alone can satisfy may serve as an index."""
    found = parsed(text).equalities
    assert found == expected
    assert [type(literal) for _, literal in found] == [type(literal) for _, literal in expected]


class Mode(enum.StrEnum):
    """Text with a class of its own."""

    PERSISTENT = "PERSISTENT"


class Level(enum.IntEnum):
    """A number with a class of its own."""

    HIGH = 9


class Rude(str):
    """Text that compares as it likes."""

    def __eq__(self, other):
        raise ValueError

    __hash__ = str.__hash__


class Real(float):
    """A number that compares as it likes."""

    def __lt__(self, other):
        raise ValueError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[("a = 'PERSISTENT'", Mode.PERSISTENT), ("a IN ('PERSISTENT')", Mode.PERSISTENT)],
        *[("a = 9", Level.HIGH), ("a > 8.5", Level.HIGH), ("a + 1 = 10", Level.HIGH)],
        *[
            ("a = 'x'", Rude("x")),
            ("a LIKE '_'", Rude("x")),
            ("a < 2", Real(1)),
            ("-a > -2", Real(1)),
        ],
    ],
)
def test_values_of_subclasses_are_plain_values(text, value):
    """How a class of the application compares has no say."""
    assert outcome(text, a=value) is True


@pytest.mark.parametrize(
    "value",
    [b"x", [], object(), 1j, 2**63, LONG_MIN - 1, 1 << 20000],
    ids=lambda one: type(one).__name__,
)
@pytest.mark.parametrize("text", ["a = 'x'", "a = 1", "a > 1.5", "a + 1.0 = 2", "a", "a LIKE 'x'"])
def test_values_without_a_type_in_the_language_are_absent(text, value):
    """Nothing that a caller brings raises; what no property can hold counts as NULL."""
    assert outcome(text, a=value) is None


def test_a_long_chain_is_fine():
    """Length alone is no nesting: a chain fills the whole text."""
    for word in (" AND ", " OR "):
        text = word.join(["a"] * (SELECTOR_CHARACTERS_MAX // (len(word) + 1)))
        assert outcome(text[: SELECTOR_CHARACTERS_MAX - 6].rpartition(word)[0], a=True) is True
    for sign in "+-*/":
        text = "b=b*0+" + sign.join(["1"] * 2000)
        assert parsed(text).matches({"b": 1}.get) is (sign in "*/")


def test_a_text_is_parsed_once():
    """The same text gives the same selector, and selectors of one text are equal."""
    selector = parse_selector("a = 'cached'")
    assert parse_selector("a = 'cached'") is selector
    assert selector != parse_selector("a  = 'cached'")
    assert "cached" in repr(selector)
    assert {selector: 1}[parsed("a = 'cached'")] == 1


def test_selectors_of_one_text_are_equal_however_often_it_is_parsed():
    """The text is what counts, and what is shown."""
    one = parse_selector("a = 1 AND b")
    parse_selector.cache_clear()
    other = parse_selector("a = 1 AND b")
    assert one is not other
    assert one == other
    assert hash(one) == hash(other)
    assert one != parse_selector("a = 1 AND  b")
    assert repr(one) == (
        "Selector(text='a = 1 AND b', identifiers=('a', 'b'), equalities=(('a', 1),))"
    )
