"""What mutation testing covers: which sources, and which tests may kill a mutant of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from support.checkout import ROOT, SCRIPTS, SERVICES

TESTS = ROOT / "tests"


class Package(NamedTuple):
    """A package and its tests.

    Attributes:
        name: Its name under `ledgermq`.
        tests: Files and directories of tests.
        left_out: What pytest leaves out by name.
        scripts: Directory of scripts that are played without pytest around them.
        beyond: Modules that these tests cannot reach, because they speak with a broker.
        waits: Whether its tests wait for threads, so that only the clock on the wall ends them.
    """

    name: str
    tests: tuple[Path, ...]
    left_out: str
    scripts: Path | None = None
    beyond: tuple[str, ...] = ()
    waits: bool = False

    @property
    def directory(self) -> Path:
        """Where its sources are."""
        return SERVICES / "ledgermq" / self.name

    def sources(self) -> list[Path]:
        """Its modules, those of its subpackages too; package files hold no logic."""
        found = sorted(self.directory.rglob("*.py"))
        return [one for one in found if one.name not in ("__init__.py", *self.beyond)]


def _of_the_fold(name: str) -> Package:
    parts = ("core", "protocol", "selector", "golden/test_golden_logs.py")
    return Package(
        name,
        tuple(TESTS / part for part in parts),
        # Tests that plant faults themselves prove nothing here; the scripts are played apart.
        "not planted and not hash_seed and not as_the_script_says",
        scripts=SCRIPTS,
    )


PACKAGES = {
    "core": _of_the_fold("core"),
    "protocol": _of_the_fold("protocol"),
    "selector": _of_the_fold("selector"),
    "client": Package(
        "client",
        (TESTS / "client",),
        "not kafka and not lost_clients",
        beyond=("lane.py", "transport.py"),
        waits=True,
    ),
}


def scopes(source: str) -> dict[int, range | None]:
    """For each line of a source the lines of its statement; None for what runs at import."""
    found: dict[int, range | None] = {}
    for inside, node in _statements(ast.parse(source), inside=False):
        # Of a compound statement this is its head: what it contains comes after and replaces it.
        lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        body = getattr(node, "body", None)
        head = range(node.lineno, body[0].lineno) if body else lines
        for line in lines:
            found[line] = (head or range(node.lineno, node.lineno + 1)) if inside else None
    return found


def _statements(node: ast.AST, *, inside: bool) -> Iterator[tuple[bool, ast.stmt]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield inside, child
        function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from _statements(child, inside=inside or function)
