"""The rules that the sources state, and the tests that name them.

A test names a rule in its docstring or, as `ses_19`, in its name; a script in its title.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from support.checkout import ROOT, SCRIPTS

TITLE = re.compile(r"^=== (.*)$", re.MULTILINE)
RULE = re.compile(r"\b(SEQ|SES|INF|DB|GRP)-(\d\d)\b")
NAMED = re.compile(r"_(seq|ses|inf|db|grp)_(\d\d)(?=_|$)")


# For each rule all tests are asked.
@cache
def _rules_in(text: str, name: str) -> frozenset[str]:
    found = [*RULE.findall(text), *NAMED.findall(name)]
    return frozenset(f"{family.upper()}-{number}" for family, number in found)


class Naming(NamedTuple):
    """A test and what it says of itself.

    Attributes:
        file: Path from the top of the checkout.
        name: Its function, or the title of a script.
        text: Where rules are looked for.
    """

    file: str
    name: str
    text: str

    @property
    def rules(self) -> frozenset[str]:
        """The rules that it names."""
        return _rules_in(self.text, self.name)

    @property
    def is_script(self) -> bool:
        """Whether it is played by tests/core/test_scripts.py."""
        return self.file.endswith(".txt")


def _rules() -> dict[str, str]:
    lines = Path(__file__).with_name("rules.txt").read_text(encoding="utf-8").splitlines()
    told = (line.split(" ", 1) for line in lines if line and not line.startswith("#"))
    return dict(told)


RULES = _rules()


def namings() -> Iterator[Naming]:
    """Every test and every script, in the order of their files."""
    tests = ROOT / "tests"
    for path in sorted(SCRIPTS.glob("*.txt")):
        file = path.relative_to(ROOT).as_posix()
        for title in TITLE.findall(path.read_text(encoding="utf-8")):
            yield Naming(file, title.strip(), title)
    for path in sorted(tests.rglob("test_*.py")):
        file = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            if function and node.name.startswith("test_"):
                yield Naming(file, node.name, ast.get_docstring(node) or "")
