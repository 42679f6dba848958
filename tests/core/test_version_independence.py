"""The fold takes nothing from what changes with the version of Python, such as Unicode's tables."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from ledgermq.protocol import operations as op
from ledgermq.protocol.outcomes import Refused
from support.brokers.log_writer import Script
from support.checkout import SERVICES
from support.generators.version_texts import NAMES

# The fold, and what it rests on.
PACKAGES = ("core", "protocol", "selector")
SOURCES = sorted(
    path
    for package in ("core", "protocol", "selector")
    for path in (SERVICES / "ledgermq" / package).rglob("*.py")
)
# Unicode's tables answer these; each Python has its own edition of them.
TABLES = {
    *("isalnum", "isalpha", "isdecimal", "isdigit", "isidentifier", "islower", "isnumeric"),
    *("isprintable", "isspace", "istitle", "isupper", "capitalize", "casefold", "swapcase"),
    *("title", "splitlines"),
}
# Without an argument these cut at what Unicode holds for white space.
WHITE_SPACE = {"split", "rsplit", "strip", "lstrip", "rstrip"}
# repr() escapes what Unicode's tables cannot print, hash() follows the seed, id() the memory.
FUNCTIONS = {"repr", "hash", "id"}
MODULES = {"unicodedata", "locale", "random", "time", "datetime", "decimal", "platform"}
CLASSES = ("\\w", "\\W", "\\d", "\\D", "\\s", "\\S", "\\b", "\\B")


def dependences(source: str) -> Iterator[str]:
    """What in a source may mean something else on another Python, with its line."""
    for node in ast.walk(ast.parse(source)):
        for what in (*_called(node), *_named(node)):
            yield f"line {node.lineno}: {what}"  # type: ignore[attr-defined]


def _called(node: ast.AST) -> Iterator[str]:
    if not isinstance(node, ast.Call):
        return
    if isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
        yield f"{node.func.id}()"
    if isinstance(node.func, ast.Attribute):
        name = node.func.attr
        if name in TABLES or (name in WHITE_SPACE and not (node.args or node.keywords)):
            yield f".{name}()"


def _named(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.FormattedValue) and node.conversion == ord("r"):
        yield "!r"
    if isinstance(node, ast.Import):
        yield from (one.name for one in node.names if one.name in MODULES)
    if isinstance(node, ast.ImportFrom) and node.module in MODULES:
        yield node.module
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from (one for one in CLASSES if one in node.value)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_the_fold_asks_nothing_that_another_python_answers_otherwise(path):
    """State is the same on every Python, so core asks no table that comes with one (H26)."""
    found = dependences(path.read_text(encoding="utf-8"))
    if path.parent.name == "documents" or path.stem == "instants":
        # Clients read documents into instants; the fold writes numbers of microseconds.
        found = (one for one in found if not one.endswith(": datetime"))
    assert list(found) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("f'{name!r}'", ["line 1: !r"]),
        ("f'{name!a}'", []),
        ("repr(name)", ["line 1: repr()"]),
        ("name.isidentifier()", ["line 1: .isidentifier()"]),
        ("text.strip()", ["line 1: .strip()"]),
        ("text.strip(' ')", []),
        ("re.compile(r'\\w+')", ["line 1: \\w"]),
        ("re.compile(r'[a-z]+')", []),
        ("import unicodedata", ["line 1: unicodedata"]),
        ("from random import choice", ["line 1: random"]),
    ],
)
def test_what_depends_on_the_version_is_found(source, found):
    """The check of the source is not blind: it sees each of the ways (H26)."""
    assert list(dependences(source)) == found


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_refusal_quotes_in_ascii(name):
    """A session keeps its refusals, so what they quote is written alike by all versions (H26)."""
    script = Script()
    session = script.session()
    message = script.message("m")
    session.send(op.Put, destination=f"queue:{name}{name}!", messages=[message])
    session.send(op.CreateQueue, queue=f"{name}!", description="", message_bytes_max=0)
    session.send(op.Unsubscribe, subscription=name)
    script.session(client_id=f"{name}!")
    refused = [one.outcome for found in script.outcomes[1:] for one in found]
    assert all(isinstance(one, Refused) for one in refused)
    assert len(refused) == 4
    assert [one.detail for one in refused if not one.detail.isascii()] == []
