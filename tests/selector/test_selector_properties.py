"""Random message selectors: a second evaluator agrees, and no text or value breaks anything."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledgermq.selector import SELECTOR_CHARACTERS_MAX, Selector, SelectorError, parse_selector
from ledgermq.selector.grammar import KEYWORDS
from support.checks.checked_histories import EXAMPLES_DIVISOR
from support.messages.naive_selector import names, truth, written
from support.messages.selectors import outcome, parsed

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


def examples(number: int) -> settings:
    """The same examples in every run, and as many as asked for."""
    return settings(
        max_examples=max(number // EXAMPLES_DIVISOR, 10),
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=QUIET,
    )


EDGES = [0, 1, 2, 7, 2**31, 2**53, 2**53 + 1, 2**62, 2**63 - 1]
TEXTS = st.text("ab%_!'.\n", max_size=4)
WHOLE = st.sampled_from(EDGES) | st.integers(0, 9)
REAL = st.sampled_from([0.0, 0.5, 2.0**53, 2.0**63, 1e308, 5e-324]) | st.floats(
    min_value=0, allow_nan=False, allow_infinity=False
)
IDENTIFIERS = st.sampled_from("abcdef")
VALUES = st.dictionaries(
    IDENTIFIERS,
    st.booleans() | TEXTS | st.floats() | WHOLE | WHOLE.map(lambda one: -one - 1),
)

NAMED = st.tuples(st.just("name"), IDENTIFIERS)
NUMBERS = st.recursive(
    NAMED | st.tuples(st.just("number"), WHOLE | REAL),
    lambda inner: (
        st.tuples(st.sampled_from("+-*/"), inner, inner)
        | st.tuples(st.sampled_from(["negative", "positive"]), inner)
    ),
    max_leaves=6,
)
LITERALS = st.tuples(st.just("text"), TEXTS) | st.tuples(st.just("boolean"), st.booleans())
SIGNS = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
INVERTED = st.booleans()
PATTERNS = st.lists(st.sampled_from([0, 1, *"ab%_!'.\n"]), max_size=5)


def conditions_of(operands: st.SearchStrategy) -> st.SearchStrategy:
    """Conditions that compare the given operands."""
    return st.one_of(
        st.tuples(st.just("compare"), SIGNS, operands, operands),
        st.tuples(st.just("between"), INVERTED, NUMBERS, NUMBERS, NUMBERS),
        st.tuples(st.just("in"), INVERTED, IDENTIFIERS, st.lists(TEXTS, min_size=1, max_size=3)),
        st.tuples(st.just("like"), INVERTED, IDENTIFIERS, PATTERNS),
        st.tuples(st.just("null"), INVERTED, IDENTIFIERS),
        NAMED,
        st.tuples(st.just("boolean"), st.booleans()),
    )


def joined(inner: st.SearchStrategy) -> st.SearchStrategy:
    """Conditions made of conditions."""
    return st.one_of(
        st.tuples(st.sampled_from(["and", "or"]), inner, inner),
        st.tuples(st.sampled_from(["and", "or"]), inner, inner, inner),
        st.tuples(st.just("not"), inner),
        st.tuples(st.just("compare"), SIGNS, inner, inner),
    )


CONDITIONS = st.recursive(conditions_of(NUMBERS | LITERALS), joined, max_leaves=8)


@examples(1500)
@given(CONDITIONS, st.lists(VALUES, min_size=1, max_size=4))
def test_a_second_evaluator_agrees(expression, messages):
    """Precedence, logic, arithmetic and patterns are what an evaluator of another kind finds."""
    text = written(expression)
    for values in messages:
        expected = {0: False, 1: True}.get(truth(expression, values))
        assert outcome(text, **values) is expected, text


@examples(600)
@given(CONDITIONS, VALUES)
def test_what_a_selector_tells_of_itself_is_true(expression, values):
    """Identifiers are those of the text; who differs in an equality does not match."""
    selector = parsed(written(expression))
    assert selector.identifiers == tuple(dict.fromkeys(names(expression)))
    asked = set()
    matches = selector.matches(lambda name: asked.add(name) or values.get(name))
    assert asked <= set(selector.identifiers)
    if any(values.get(name) != literal for name, literal in selector.equalities):
        assert not matches


@examples(600)
@given(
    st.lists(
        st.tuples(IDENTIFIERS, WHOLE | WHOLE.map(float) | st.booleans() | TEXTS),
        min_size=1,
        max_size=3,
    ),
    st.data(),
)
def test_an_index_by_equalities_loses_no_match(pairs, data):
    """Every message that matches is found by the pairs' keys, whatever type its numbers have."""
    literals = [str(one).upper() if not isinstance(one, str) else None for _, one in pairs]
    terms = [
        f"{name} = {literal}" if literal is not None else f"{name} = '{one.replace(chr(39), '')}'"
        for (name, one), literal in zip(pairs, literals, strict=True)
    ]
    selector = parsed(" AND ".join(terms))
    values = {name: data.draw(st.sampled_from([one, _like(one)])) for name, one in pairs}
    if selector.matches(values.get):
        keys = set(values.items())
        assert all(pair in keys for pair in selector.equalities)


def _like(one: object) -> object:
    """A value that may be equal though its type is another."""
    if isinstance(one, float):
        return int(one)
    return float(one) if isinstance(one, bool | int) else one


PIECES = st.sampled_from(
    [
        *(word.lower() for word in KEYWORDS),
        *KEYWORDS,
        *["a", "b", "JMSType", "JMSXa", "JMSReplyTo", "$", "'x'", "'", "''", "'%a_'", "'!'"],
        *["(", ")", "((", "))", ",", "=", "<>", "<", ">", "<=", ">=", "+", "-", "*", "/", "!"],
        *["1", "0", "07", "08", "0x1F", "1L", "1.5", ".5", "7.", "1e3", "1e999", "0x1p1", "2f"],
        *["9223372036854775807", "9223372036854775808", "_", ".", "\n", "é", "\x00", "1_0"],
    ]
)
SENTENCES = st.lists(PIECES, max_size=25).flatmap(
    lambda pieces: st.sampled_from(["", " "]).map(lambda separator: separator.join(pieces))
)
LONG = st.tuples(
    st.sampled_from(
        ["(", "NOT ", "-", "a AND ", "1+", "a=(", "a IN ('", "'", "''", "0", "_", "%a"]
    ),
    st.integers(1, 5000),
    SENTENCES,
).map(lambda parts: (parts[0] * parts[1])[: SELECTOR_CHARACTERS_MAX + 2] + parts[2])


def tried(text: str) -> Selector | SelectorError | None:
    """What a text gives."""
    try:
        return parse_selector(text)
    except SelectorError as error:
        return error


def check_any_text(text: str, values: dict) -> None:
    """A text is a selector, none, or refused at a place that it has; a selector never raises."""
    found = tried(text)
    if isinstance(found, SelectorError):
        assert 0 <= found.position <= len(text)
        assert str(found).isascii()
        assert f" at position {found.position} of the selector, expected " in str(found)
        assert len(str(found)) < 400
        return
    if found is None:
        assert not text.strip()
        return
    assert found.text == text
    assert found.matches(values.get) in (True, False)


@examples(1500)
@given(st.text(max_size=60) | st.text("aN'( )=<1.eE-_%", max_size=30), VALUES)
def test_any_text_is_a_selector_or_refused(text, values):
    """SES-35: characters of all kinds give a selector or SelectorError, nothing else."""
    check_any_text(text, values)


@examples(2500)
@given(SENTENCES, VALUES)
def test_any_sentence_of_the_languages_words_is_a_selector_or_refused(text, values):
    """SES-35: words in any order come further into the grammar than characters do."""
    check_any_text(text, values)


@examples(300)
@given(LONG, VALUES)
def test_long_and_deep_texts_are_selectors_or_refused(text, values):
    """No length and no depth ends in RecursionError."""
    check_any_text(text, values)


@examples(800)
@given(CONDITIONS, st.data())
def test_a_selector_with_a_part_cut_out_is_a_selector_or_refused(expression, data):
    """SES-35: what is nearly right is refused as cleanly as what is not."""
    text = written(expression)
    first = data.draw(st.integers(0, len(text)))
    last = data.draw(st.integers(first, len(text)))
    check_any_text(text[:first] + text[last:], data.draw(VALUES))
