"""A text that is no selector is refused with the place and the reason (SES-35)."""

from __future__ import annotations

import pickle
import sys
import threading

import pytest

from ledgermq.selector import (
    NESTING_MAX,
    SELECTOR_CHARACTERS_MAX,
    SelectorError,
    parse_selector,
)

BITS = "a number of at most 64 bits"
OPERAND = "an identifier, a literal or an opening parenthesis"
AFTER_VALUE = "a comparison, an arithmetic operator, NOT, BETWEEN, LIKE, IN, IS, AND, OR or the end"


def refused(text: str) -> SelectorError:
    """The error for a text."""
    with pytest.raises(SelectorError) as caught:
        parse_selector(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "position", "found", "expected"),
    [
        ("a = ", 4, "the end", OPERAND),
        ("a = 1 AND", 9, "the end", OPERAND),
        ("(a = 1", 6, "the end", "an arithmetic operator, AND, OR or a closing parenthesis"),
        ("a = 1)", 5, "')'", "an arithmetic operator, AND, OR or the end"),
        ("= 1", 0, "'='", OPERAND),
        ("a b", 2, "'b'", AFTER_VALUE),
        ("a ANDb", 2, "'ANDb'", AFTER_VALUE),
        ("a = b = c", 6, "'='", "an arithmetic operator, AND, OR or the end"),
        ("a == 1", 3, "'='", OPERAND),
        ("a != 1", 2, "'!'", AFTER_VALUE),
        ("a.b = 1", 1, "'.'", AFTER_VALUE),
        ("a % 2 = 1", 2, "'%'", AFTER_VALUE),
        ('"a" = 1', 0, "'\"'", OPERAND),
        ("é = 1", 0, r"'\xe9'", OPERAND),
        ("a =\xa01", 3, r"'\xa0'", OPERAND),
        ("a = \U0001f600", 4, r"'\U0001f600'", OPERAND),
        ("a = 'x", 4, "a string that is not closed", "its closing quote"),
        ("a = 'x''", 4, "a string that is not closed", "its closing quote"),
        ("a = b'c'", 5, "\"'c'\"", "an arithmetic operator, AND, OR or the end"),
        ("a = NULL", 4, "'NULL'", OPERAND),
        ("null = 1", 0, "'null'", OPERAND),
        ("like LIKE 'x'", 0, "'like'", OPERAND),
        ("a IS 4", 5, "'4'", "NOT or NULL"),
        ("a IS NOT b", 9, "'b'", "NULL"),
        ("a NOT 5", 6, "'5'", "BETWEEN, LIKE or IN"),
        ("a NOT = 5", 6, "'='", "BETWEEN, LIKE or IN"),
        ("a NOT IS NULL", 6, "'IS'", "BETWEEN, LIKE or IN"),
        ("a BETWEEN 1", 11, "the end", "an arithmetic operator or AND"),
        ("a BETWEEN 1 OR 2", 12, "'OR'", "an arithmetic operator or AND"),
        ("a BETWEEN 'x' AND 'y'", 10, "a string", "a number"),
        ("a BETWEEN 1 AND TRUE", 16, "a boolean", "a number"),
        ("a IN 'x'", 5, "\"'x'\"", "an opening parenthesis"),
        ("a IN ()", 6, "')'", "a string"),
        ("a IN (1)", 6, "'1'", "a string"),
        ("a IN ('x' 'y')", 10, "\"'y'\"", "a comma or a closing parenthesis"),
        ("a IN ('x',)", 10, "')'", "a string"),
        ("a LIKE b", 7, "'b'", "a string"),
        ("a LIKE 'x' ESCAPE", 17, "the end", "a string"),
        ("a LIKE 'x' 'y'", 11, "\"'y'\"", "ESCAPE, AND, OR or the end"),
        (
            *("a LIKE 'x' ESCAPE 'ab'", 18, "a string of 2 characters"),
            "a string of one character after ESCAPE",
        ),
        (
            *("a LIKE 'x' ESCAPE ''", 18, "a string of 0 characters"),
            "a string of one character after ESCAPE",
        ),
        ("1 LIKE 'x'", 0, "a number", "an identifier before LIKE"),
        ("'x' IN ('x')", 0, "a string", "an identifier before IN"),
        ("a + 1 IS NULL", 0, "a number", "an identifier before IS"),
        ("(a = 1) IS NULL", 0, "a condition", "an identifier before IS"),
        ("5", 0, "a number", "a condition"),
        ("a AND 'x'", 6, "a string", "a condition"),
        ("a OR b + 1", 5, "a number", "a condition"),
        ("NOT 1", 4, "a number", "a condition"),
        ("a = -'x'", 5, "a string", "a number"),
        ("a = 1 + TRUE", 8, "a boolean", "a number"),
        ("(a = 1) + 1 = 2", 0, "a condition", "a number"),
        ("a * 'x' > 1", 4, "a string", "a number"),
        ("a - (NOT b) > 1", 4, "a condition", "a number"),
        ("a = 08", 5, "'8'", "an arithmetic operator, AND, OR or the end"),
        ("a = 1_", 5, "'_'", "an arithmetic operator, AND, OR or the end"),
        ("a = 9223372036854775808", 4, "the number 9223372036854775808", BITS),
        ("a > 1 + 9223372036854775808", 8, "the number 9223372036854775808", BITS),
        ("a = -(9223372036854775808)", 6, "the number 9223372036854775808", BITS),
        ("a = +9223372036854775808", 4, "the number 9223372036854775808", BITS),
        ("a = -9223372036854775809", 5, "the number '9223372036854775809'", BITS),
        ("a = 0x8000000000000000", 4, "the number '0x8000000000000000'", BITS),
        ("a = 0b1" + "0" * 63, 4, f"the number '0b1{'0' * 37}' and more", BITS),
        ("a = 01" + "0" * 21, 4, f"the number '01{'0' * 21}'", BITS),
        ("a = 1e309", 4, "the number '1e309'", "a number in the range of a double"),
        ("a = 1e-400", 4, "the number '1e-400'", "a number in the range of a double"),
        ("a = 0x1p9999", 4, "the number '0x1p9999'", "a number in the range of a double"),
        ("a = 0x1p-9999", 4, "the number '0x1p-9999'", "a number in the range of a double"),
        ("a = 1" + "0" * 400, 4, f"the number '1{'0' * 39}' and more", BITS),
        ("a " + "b" * 40, 2, f"'{'b' * 40}'", AFTER_VALUE),
        ("a " + "b" * 41, 2, f"'{'b' * 40}' and more", AFTER_VALUE),
        ("a -- comment", 0, "a number", "a condition"),
        ("a /* comment */ = 1", 3, "'*'", OPERAND),
    ],
)
def test_errors_name_what_was_found_what_was_expected_and_where(text, position, found, expected):
    """SES-35: the message and the position tell somebody what to mend."""
    error = refused(text)
    assert error.position == position
    assert (
        str(error) == f"found {found} at position {position} of the selector, expected {expected}"
    )


@pytest.mark.parametrize(
    "name",
    ["JMSDestination", "JMSReplyTo", "JMSRedelivered", "JMSExpiration", "JMSDeliveryTime", "JMS"],
)
def test_other_headers_are_not_allowed(name):
    """Of the names that begin with JMS, six are headers for selectors; JMSX and JMS_ are free."""
    error = refused(f"a = 1 AND {name} = 'x'")
    assert error.position == 10
    assert str(error) == (
        f"found the header {name} at position 10 of the selector, expected a property or one of "
        "the headers JMSDeliveryMode, JMSPriority, JMSMessageID, JMSTimestamp, JMSCorrelationID, "
        "JMSType"
    )


def test_a_text_has_a_length_limit():
    """The limit itself fits; one more does not, even if it is blank."""
    longest = "a = '" + "x" * (SELECTOR_CHARACTERS_MAX - 6) + "'"
    assert len(longest) == SELECTOR_CHARACTERS_MAX
    assert parse_selector(longest) is not None
    error = refused(longest + " ")
    assert error.position == SELECTOR_CHARACTERS_MAX
    assert str(error) == (
        "found a text of 4097 characters at position 4096 of the selector, "
        "expected the end, because a selector has at most 4096 characters"
    )
    assert refused(" " * 4097).position == SELECTOR_CHARACTERS_MAX


@pytest.mark.parametrize(
    ("opening", "inside", "closing"),
    [("(", "a", ")"), ("NOT ", "a", ""), ("-", "a", " = 1"), ("+", "1", " = a")],
)
def test_nesting_has_a_limit(opening, inside, closing):
    """A hundred levels fit; one more does not."""
    closings = NESTING_MAX if closing == ")" else 1
    assert parse_selector(opening * NESTING_MAX + inside + closing * closings) is not None
    closings += closings > 1
    error = refused("a AND " + opening * (NESTING_MAX + 1) + inside + closing * closings)
    assert error.position == 6
    assert "at most 100 deep" in str(error)


def test_levels_of_all_kinds_count_together():
    """Parentheses, NOT and signs share the limit."""
    fits = "NOT (" * 49 + "-(a) = 1" + ")" * 49
    assert parse_selector(fits) is not None
    assert "100 deep" in str(refused(f"NOT ({fits})"))


@pytest.mark.parametrize(
    "text", ["(" * 4096, "-" * 4096, "NOT " * 1024, "(a=" * 1000, "a=(-" * 999]
)
def test_unfinished_nesting_is_an_error_like_any_other(text):
    """The parser has no depth of its own to exhaust."""
    assert refused(text).position in (3, len(text.rstrip()), len(text), 5)


def test_the_deepest_selector_needs_few_calls():
    """Parsing and evaluating the worst nesting works where Python has little stack left."""
    worst = "a"
    for _ in range(NESTING_MAX):
        worst = f"({worst})=a AND a OR b" if len(worst) < 3900 else f"({worst})"
    sums = "1"
    for _ in range(NESTING_MAX):
        sums = f"(1*{sums}+1)"
    outcomes = []

    def run() -> None:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(450)
        try:
            for text in (worst, f"a AND {sums} = 101"):
                selector = parse_selector(text)
                outcomes.append(selector.matches({"a": True}.get))
        finally:
            sys.setrecursionlimit(limit)

    parse_selector("a = 1")  # so that making the parser itself is not measured
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert outcomes == [True, True]


def test_errors_can_be_pickled():
    """An error keeps its message and position on the way between processes."""
    error = refused("a = ")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.position) == (str(error), error.position)
    assert isinstance(error, ValueError)
