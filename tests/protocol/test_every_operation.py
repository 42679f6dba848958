"""Tests that every operation is everywhere where operations are: docs/adding-an-operation.md."""

import ast
import re
from pathlib import Path

import pytest

from ledgermq.core.apply import HANDLERS
from ledgermq.protocol import administration, operations
from ledgermq.protocol.operations import SessionOperation
from support.checkout import ROOT, SCHEMAS
from support.model.fold import Model

SUPPORT = ROOT / "tests" / "support"
KINDS = sorted(
    path.stem.removeprefix("ledgermq.operation.")
    for path in SCHEMAS.glob("ledgermq.operation.*.avsc")
)


def record_of(kind: str) -> type:
    """Return the record of an operation."""
    return getattr(operations, kind, None) or getattr(administration, kind)


def used_in(*paths: Path) -> set[str]:
    """Return the names that the code of files uses; an import alone is no use."""
    nodes = [node for path in paths for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    return {node.attr for node in nodes if isinstance(node, ast.Attribute)} | {
        node.id for node in nodes if isinstance(node, ast.Name)
    }


def test_each_has_a_section_of_its_own_in_the_protocol():
    """What an operation means is written down before anything else of it."""
    pages = [path.read_text("utf-8") for path in (SCHEMAS / "protocol").glob("*.md")]
    titles = [title for page in pages for title in re.findall(r"^## §\d+ (\w+)$", page, re.M)]
    assert [kind for kind in KINDS if titles.count(kind) != 1] == []


def test_each_is_in_the_table_of_operations():
    """Whoever looks for an operation finds its page, and none that is not there."""
    page = (SCHEMAS / "protocol" / "sessions.md").read_text("utf-8")
    table = page.split("| page | operations |")[1].split("\n\n")[0]
    named = [name for row in table.splitlines()[2:] for name in row.split("|")[2].split(",")]
    assert sorted(name.strip() for name in named) == KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_each_has_a_handler_and_a_second_one_in_the_slow_model(kind):
    """What the fold does with an operation is compared with what the model does."""
    assert hasattr(Model, "do_" + re.sub(r"(?<!^)(?=[A-Z])", "_", kind).lower())
    assert not issubclass(record_of(kind), SessionOperation) or record_of(kind) in HANDLERS


@pytest.mark.parametrize(
    ("where", "paths"),
    [
        ("the script language", sorted((SUPPORT / "scripts").glob("*.py"))),
        ("random histories", sorted((SUPPORT / "generators").glob("*.py"))),
    ],
    ids=lambda given: given.replace(" ", "-") if isinstance(given, str) else "",
)
def test_each_is_known_to(where, paths):
    """An operation that no script or no random history knows is tested by nobody."""
    used = used_in(*paths)
    assert [kind for kind in KINDS if kind not in used] == [], f"missing in {where}"
