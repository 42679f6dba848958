"""Tests that the source stays small and told: sizes, docstrings, no logic in `__init__.py`, and
sections of the protocol that are.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.checkout import ROOT, SCHEMAS, SCRIPTS
from support.scripts.protocol_pages import INDEX, PAGES, sections

SOURCE_ROOTS = ("services", "spark_jobs", "benchmarks", "examples/demo")
PYTHON_ROOTS = (*SOURCE_ROOTS, "tests", "infra")

# A hint to look: where one idea needs more lines it may have them.
FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
FOLDER_FILES_MAX = 15
# Commands are a list that people know; what the audit holds against what is one concept.
FOLDERS_WITH_MORE_FILES = {"commands": 35, "audit": 20}
LINE_CHARACTERS_MAX = 100
PAGES_MAX = 15

# A row of the index of the protocol: a section, its title, its pages.
INDEX_ROW = re.compile(r"^\| §(\d+) \| .+ \| (.+) \|$", re.MULTILINE)
# A section that source or tests refer to: `§13`, and `PROTOCOL.md section 13`.
SECTION = re.compile(r"§\s?(\d+)|PROTOCOL\.md,? sections? (\d+)(?: and (\d+))?")
# What a line of a text may be longer for: a row, a heading, a link.
LONG_BY_RIGHT = re.compile(r"^(\||#|.*\]\()")

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


def folders(*roots: str) -> list[Path]:
    """Return the folders with Python files under the given roots, in a stable order."""
    return sorted({path.parent for path in python_files(*roots)})


@pytest.mark.parametrize("folder", folders(*SOURCE_ROOTS), ids=lambda one: str(one.name))
def test_folders_are_concepts(folder):
    """A folder says in one sentence what lives in it, and holds no more than one can look over."""
    assert ast.get_docstring(parsed(folder / "__init__.py")), "no sentence says what it is for"
    allowed = FOLDERS_WITH_MORE_FILES.get(folder.name, FOLDER_FILES_MAX)
    files = [one for one in folder.glob("*.py") if one.name != "__init__.py"]
    assert len(files) <= allowed, f"{len(files)} files: name the concepts in it"


def test_folders_of_tests_are_concepts_too():
    """Tests lie in the folders of what they test, no more in each than one can look over."""
    files = {folder: len(list(folder.glob("test_*.py"))) for folder in folders("tests")}
    assert {one: count for one, count in files.items() if count > FOLDER_FILES_MAX} == {}


@each_file("services", "benchmarks", "examples/demo")
def test_literals_are_not_packed(path):
    """Values stand one below the other: no `*("a", "b")` that only keeps a file short."""
    packed = [
        node.lineno
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Starred)
        and isinstance(node.value, ast.Tuple | ast.List)
        and is_plain(node.value)
    ]
    assert packed == [], "lines with packed literals"


@pytest.mark.parametrize(
    "package",
    [
        one
        for one in sorted((ROOT / "services/ledgermq").iterdir())
        if (one / "__init__.py").exists()
    ],
    ids=lambda one: str(one.name),
)
def test_the_name_of_a_module_occurs_once_in_a_package(package):
    """What is called `messages` is one thing: nobody has to say which of them is meant."""
    names = [path.stem for path in package.rglob("*.py") if path.stem != "__init__"]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []


@each_file("tests")
def test_every_test_says_what_it_shows(path):
    """A test has a docstring, so that its failure can be understood without reading it."""
    tests = [f for f in functions(parsed(path)) if f.name.startswith("test_")]
    assert [f.name for f in tests if not ast.get_docstring(f)] == []


@pytest.mark.parametrize("path", [INDEX, *PAGES], ids=lambda one: one.stem)
def test_lines_of_the_protocol_are_short(path):
    """A change of the protocol can be read as a diff: no line of prose is long."""
    prose = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    long = [line for line in prose.splitlines() if len(line) > LINE_CHARACTERS_MAX]
    assert [line for line in long if not LONG_BY_RIGHT.match(line)] == []


def index_of_sections() -> dict[int, set[str]]:
    """Return the pages of each section as the index of the protocol has them."""
    rows = INDEX_ROW.findall(INDEX.read_text(encoding="utf-8"))
    return {int(number): set(re.findall(r"protocol/(\w+)\.md", pages)) for number, pages in rows}


def test_index_has_every_section_of_the_protocol_and_its_pages():
    """A section is found by its number, however it is divided over pages."""
    found: dict[int, set[str]] = {}
    for section in sections():
        found.setdefault(section.number, set()).add(section.page)
    assert index_of_sections() == found
    assert {page for pages in found.values() for page in pages} == {path.stem for path in PAGES}
    assert len(PAGES) <= PAGES_MAX


def test_sections_that_source_and_tests_refer_to_are_in_the_index():
    """`PROTOCOL.md §13` in a docstring, a script, a schema or a page names a section that is."""
    files = [*python_files(*PYTHON_ROOTS), *SCHEMAS.glob("*.avsc"), INDEX, *PAGES]
    files += SCRIPTS.glob("*.txt")
    unknown = {}
    for path in files:
        # A reference may go over the end of a line.
        text = " ".join(path.read_text(encoding="utf-8").split())
        named = {int(one) for match in SECTION.findall(text) for one in match if one}
        if named - set(index_of_sections()):
            unknown[str(path.relative_to(ROOT))] = named - set(index_of_sections())
    assert unknown == {}


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
