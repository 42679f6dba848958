"""Each rule and each refusal reason has a test that names it."""

from __future__ import annotations

import re
from functools import cache

import pytest

from ledgermq.protocol.reasons import Reason
from support.rules import RULES, Naming, namings
from support.rules_page import page

EXPECTED = [f"SEQ-{number:02}" for number in range(1, 20)]
EXPECTED += [f"SES-{number:02}" for number in range(1, 73)]
EXPECTED += [f"INF-{number:02}" for number in range(1, 21)]
EXPECTED += [f"DB-{number:02}" for number in range(1, 23)]
EXPECTED += [f"GRP-{number:02}" for number in range(1, 48)]
ROW = re.compile(r"^\| (\w+-\d\d) \| (.+?) \| (.+?) (?:\| [^|]* ){3}\|$", re.MULTILINE)
HERE = "tests/test_rule_coverage.py"


@cache
def named() -> list[Naming]:
    """All tests but this file's."""
    return [one for one in namings() if one.file != HERE]


@pytest.mark.parametrize("rule", EXPECTED)
def test_rule_has_a_test_that_names_it(rule):
    """A rule that no test names could be broken unseen."""
    assert [one for one in named() if rule in one.rules], f"no test names {rule}"


def test_tests_name_rules_that_there_are():
    """Each rule has its short text, and no other is named."""
    assert list(RULES) == EXPECTED
    every = {rule for one in named() for rule in one.rules}
    assert every - set(RULES) == set()


@pytest.mark.slow
def test_page_of_the_rules_has_every_rule_with_its_tests():
    """What `make rules` writes: each rule once, with its text, and every test that names it."""
    rows = ROW.findall(page(named(), [], "not at all"))
    assert [(rule, text) for rule, text, _ in rows] == list(RULES.items())
    for rule, _, listed in rows:
        tests = {
            (file, name)
            for file, names in re.findall(r"\]\(\.\./([^)]+)\): (.+?)(?=<br>|$)", listed)
            for name in re.findall(r"`([^`]+)`", names)
        }
        naming = (one for one in named() if rule in one.rules)
        assert tests == {(one.file, one.name.replace("|", "\\|")) for one in naming}, rule


OF_QUESTIONS = {
    Reason.ANSWER_EXPIRED,
    Reason.ANSWER_TOO_LARGE,
    Reason.KIND_UNKNOWN,
    Reason.POSITION_NOT_REACHED,
    Reason.QUESTION_FAILED,
    Reason.QUEUE_MANAGER_STOPPED,
}


@pytest.mark.parametrize("reason", list(Reason))
def test_refusal_reason_has_a_test_that_names_it(reason):
    """Every reason code of the protocol is named by a test, but for those of questions."""
    found = [one for one in named() if reason in f"{one.name} {one.text}"]
    assert reason in OF_QUESTIONS or found, reason
