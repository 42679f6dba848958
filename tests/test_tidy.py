"""Tests that the source stays small and told: sizes, docstrings, and no logic in `__init__.py`."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE_ROOTS = ("services", "spark_jobs")
PYTHON_ROOTS = (*SOURCE_ROOTS, "tests", "benchmarks", "infra")

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
LINE_CHARACTERS_MAX = 100

Function = ast.FunctionDef | ast.AsyncFunctionDef


def python_files(*roots: str) -> list[Path]:
    """Return the Python files under the given roots, in a stable order."""
    return sorted(path for root in roots for path in (ROOT / root).rglob("*.py"))


def each_file(*roots: str) -> pytest.MarkDecorator:
    """Run a test once for each Python file under the given roots."""
    files = python_files(*roots)
    return pytest.mark.parametrize("path", files, ids=[str(f.relative_to(ROOT)) for f in files])


def parsed(path: Path) -> ast.Module:
    """Return a file's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def functions(tree: ast.AST) -> Iterator[Function]:
    """Return every function and method, nested ones too."""
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def is_plain(node: ast.expr) -> bool:
    """Return whether an expression only names or lists values and so holds no logic."""
    logic = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.IfExp)
    return not any(isinstance(part, (*logic, ast.Call, ast.Await)) for part in ast.walk(node))


def has_no_logic(node: ast.stmt) -> bool:
    """Return whether a statement may stand in an `__init__.py`."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return node.value is None or is_plain(node.value)
    # Imports that only a type checker sees are imports.
    if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        return all(has_no_logic(inner) for inner in node.body)
    return False


@each_file(*PYTHON_ROOTS)
def test_files_and_lines_are_short(path):
    """A file can be read in one sitting, and a line on one screen."""
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= FILE_LINES_MAX, f"{len(lines)} lines: split it by concept"
    long = [at for at, line in enumerate(lines, 1) if len(line) > LINE_CHARACTERS_MAX]
    assert long == [], f"lines longer than {LINE_CHARACTERS_MAX} characters"


@each_file(*PYTHON_ROOTS)
def test_functions_are_short(path):
    """A function fits on a screen."""
    lengths = {f.name: (f.end_lineno or f.lineno) - f.lineno + 1 for f in functions(parsed(path))}
    long = {name: length for name, length in lengths.items() if length > FUNCTION_LINES_MAX}
    assert long == {}, f"functions longer than {FUNCTION_LINES_MAX} lines"


@each_file(*SOURCE_ROOTS)
def test_modules_open_with_one_sentence(path):
    """A file begins by saying what it is, in one paragraph that ends with a full stop."""
    told = ast.get_docstring(parsed(path))
    assert told, "the module has no docstring"
    assert told.split("\n\n")[0].rstrip().endswith((".", ":")), "the first sentence has no end"


@each_file(*SOURCE_ROOTS)
def test_package_files_hold_no_logic(path):
    """An `__init__.py` imports, names constants and lists `__all__`; nothing else."""
    if path.name == "__init__.py":
        logic = [node.lineno for node in parsed(path).body if not has_no_logic(node)]
        assert logic == [], "lines with logic"


@each_file("tests")
def test_every_test_says_what_it_shows(path):
    """A test has a docstring, so that its failure can be understood without reading it."""
    tests = [f for f in functions(parsed(path)) if f.name.startswith("test_")]
    assert [f.name for f in tests if not ast.get_docstring(f)] == []


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ('"""Told."""', True),
        ("from a import b", True),
        ('VERSION = "1"', True),
        ('__all__ = ["a", *OTHERS]', True),
        ('__all__ += ["a"]', True),
        ("if TYPE_CHECKING:\n    import a", True),
        ("VALUE = compute()", False),
        ("VALUES = [a for a in b]", False),
        ("def f(): ...", False),
        ("for a in b: ...", False),
        ("if a:\n    import b", False),
        ("print()", False),
    ],
)
def test_logic_is_told_from_names(text, allowed):
    """The check of `__init__.py` itself allows and forbids what it should."""
    assert has_no_logic(ast.parse(text).body[0]) is allowed
