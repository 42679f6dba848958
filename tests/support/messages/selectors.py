"""What tests of message selectors share."""

from __future__ import annotations

from ledgermq.selector import Selector, parse_selector

LONG_MAX = 2**63 - 1
LONG_MIN = -(2**63)


def parsed(text: str) -> Selector:
    """The selector of a text that has one."""
    selector = parse_selector(text)
    assert selector is not None
    return selector


def outcome(text: str, /, **values: object) -> bool | None:
    """What a condition is: true, false, or unknown where neither it nor its opposite matches."""
    matches = parsed(text).matches(values.get)
    opposite = parsed(f"NOT ({text})").matches(values.get)
    assert not (matches and opposite)
    return True if matches else False if opposite else None
