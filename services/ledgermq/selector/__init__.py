"""Message selectors: the conditions that consumers put on headers and properties (SES-35, SES-36).

    selector = parse_selector("region = 'EU' AND amount > 100")
    selector.matches({"region": "EU", "amount": 250}.get)  # True

PROTOCOL.md defines the language. This package knows nothing else of LedgerMQ.
"""

from ledgermq.selector.errors import NESTING_MAX, SELECTOR_CHARACTERS_MAX, SelectorError
from ledgermq.selector.selector import Selector, parse_selector, text_of

__all__ = [
    "NESTING_MAX",
    "SELECTOR_CHARACTERS_MAX",
    "Selector",
    "SelectorError",
    "parse_selector",
    "text_of",
]
