"""Each rule of sequence numbers has a test that names it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledgermq.core import reasons

TESTS = Path(__file__).parents[1]
# SEQ-17, topics, belongs to a later issue.
RULES = [f"SEQ-{number:02}" for number in (*range(1, 17), 18, 19)]
TITLES = re.compile(r"^=== .*$", re.MULTILINE)
DEFINITION = re.compile(r'^def (test_\w+)\(.*?\):\n(?:    """(.*?)""")?', re.MULTILINE | re.DOTALL)


def named() -> Iterator[str]:
    """Titles of scripts, and names and docstrings of test functions, but for this file's."""
    for path in TESTS.rglob("*.txt"):
        yield from TITLES.findall(path.read_text(encoding="utf-8"))
    for path in TESTS.rglob("test_*.py"):
        if path != Path(__file__):
            for name, text in DEFINITION.findall(path.read_text(encoding="utf-8")):
                yield f"{name} {text}"


@pytest.mark.parametrize("rule", RULES)
def test_rule_has_a_test_that_names_it(rule):
    """A rule that no test names could be broken unseen."""
    assert [one for one in named() if rule in one], f"no test names {rule}"


REASONS = [getattr(reasons, name) for name in reasons.__all__ if name.isupper()]


@pytest.mark.parametrize("reason", REASONS)
def test_refusal_reason_has_a_test_that_names_it(reason):
    """Every reason code of the protocol is named by a test, but for those of questions."""
    assert reason == "position-not-reached" or [one for one in named() if reason in one], reason
