"""Tests that what documents say of the source is so: files and functions that they name exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOTS = (ROOT / "services" / "ledgermq", ROOT / "spark_jobs", ROOT)
DOCUMENTS = ("docs/architecture.md", "docs/adding-an-operation.md")
# `core/apply.py:apply`, `core/apply.py`, `core/order/`.
NAMED = re.compile(r"`((?:[\w-]+/)+[\w-]*(?:\.py)?)(?::(\w+))?`")


def names_in(document):
    """Return each path that a document names, with the function or class behind it, if any."""
    text = (ROOT / document).read_text(encoding="utf-8")
    return sorted({(path, name) for path, name in NAMED.findall(text)})


def defined_in(path):
    """Return the names of functions, methods and classes of a file."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_files_and_functions_that_a_document_names_exist(document):
    """Whoever follows one message through the source by its document finds every stop."""
    named = names_in(document)
    assert named, "the document names nothing"
    missing = []
    for path, name in named:
        there = [root / path for root in ROOTS if (root / path).exists()]
        if not there or (name and name not in defined_in(there[0])):
            missing.append(f"{path}:{name}")
    assert missing == []
