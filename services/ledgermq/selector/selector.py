"""A parsed selector, and the function that makes one from a text."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from ledgermq.selector.errors import SELECTOR_CHARACTERS_MAX, unexpected
from ledgermq.selector.grammar import WHITESPACE, parse
from ledgermq.selector.nodes import Evaluate, ValueOf


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    text: str
    identifiers: tuple[str, ...] = field(compare=False)
    """The headers and properties it names, in the order of their first use."""
    equalities: tuple[tuple[str, bool | int | str], ...] = field(compare=False)
    """Pairs of identifier and literal that must be equal for the selector to match.

    A message with another value, by Python's `==`, cannot match; with an equal one it need not.
    Values that are equal in Python have one hash, so they serve as keys of an index. Numbers
    beyond 2**53 are left out: compared as doubles, they equal more than themselves.
    """
    conjuncts: tuple[Evaluate, ...] = field(compare=False, repr=False)
    """The conditions that must all be true, each compiled to a function."""

    def matches(self, value_of: ValueOf) -> bool:
        """Whether the condition is true; false and unknown do not match.

        `value_of` gives the value of a header or property, None where the message has none:
        'PERSISTENT' or 'NON_PERSISTENT' for JMSDeliveryMode, 'ID:' and 32 hexadecimal digits for
        JMSMessageID, milliseconds for JMSTimestamp. It is called each time an identifier is met.
        """
        for conjunct in self.conjuncts:  # noqa: SIM110 - all() takes half as long again
            if conjunct(value_of) is not True:
                return False
        return True


def text_of(selector: Selector | None) -> str:
    """What a selector was parsed from, empty for none."""
    return "" if selector is None else selector.text


@lru_cache(maxsize=1024)
def parse_selector(text: str | None) -> Selector | None:
    """The selector of a text, None where there is none (SES-36), or SelectorError (SES-35)."""
    if text is None:
        return None
    if len(text) > SELECTOR_CHARACTERS_MAX:
        raise unexpected(
            f"a text of {len(text)} characters",
            SELECTOR_CHARACTERS_MAX,
            f"the end, because a selector has at most {SELECTOR_CHARACTERS_MAX} characters",
        )
    if not text.strip(WHITESPACE):
        return None
    root = parse(text)
    return Selector(
        text=text,
        identifiers=root.identifiers,
        equalities=root.equalities,
        conjuncts=root.conjuncts or (root.evaluate,),
    )
