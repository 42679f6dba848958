"""Tests of imports that the contracts in pyproject.toml cannot say."""

import ast
import sys
from pathlib import Path

import pytest

from support.checkout import ROOT, SERVICES

LEDGERMQ = SERVICES / "ledgermq"


def imported(path: Path) -> set[str]:
    """Return what a file imports, with all its dots, wherever in the file it does so."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


@pytest.mark.parametrize(
    ("package", "own", "others"),
    [
        ("protocol", {"protocol"}, set()),
        ("selector", {"selector"}, {"lark"}),
        ("core", {"core", "protocol", "selector"}, set()),
    ],
)
def test_what_the_fold_rests_on_is_the_standard_library_and_for_selectors_a_parser(
    package, own, others
):
    """The fold must mean the same wherever it runs, so it rests on nothing that others change."""
    for path in sorted((LEDGERMQ / package).rglob("*.py")):
        for name in imported(path):
            root, _, rest = name.partition(".")
            if root == "ledgermq":
                assert rest.partition(".")[0] in own, path.relative_to(ROOT)
            else:
                assert root in {*sys.stdlib_module_names, *others}, path.relative_to(ROOT)


def spark_imports(node: ast.AST, *, lazy: bool) -> list[int]:
    """Return the lines that import the Spark jobs; with `lazy`, only those run by an import."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [node.lineno] if "ledgermq_spark" in ast.unparse(node) else []
    if lazy and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return []
    if lazy and isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return []
    found = [spark_imports(child, lazy=lazy) for child in ast.iter_child_nodes(node)]
    return [line for lines in found for line in lines]


def test_only_the_command_line_imports_spark_jobs_and_only_inside_functions():
    """A client or worker never pays for Spark, and `ledgermq --help` does not either."""
    for path in sorted(LEDGERMQ.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        lazy = path.is_relative_to(LEDGERMQ / "cli")
        assert spark_imports(tree, lazy=lazy) == [], path.relative_to(ROOT)


def imports_by_module() -> dict[str, set[str]]:
    """Return which modules of ours each module imports, also those for a type checker only."""
    files: dict[str, Path] = {}
    for root in (ROOT / "services", ROOT / "spark_jobs"):
        for path in sorted(root.rglob("*.py")):
            name = ".".join(path.relative_to(root).with_suffix("").parts)
            files[name.removesuffix(".__init__")] = path
    found: dict[str, set[str]] = {}
    for name, path in files.items():
        here = found[name] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                here |= inner & files.keys() or {node.module} & files.keys()
            elif isinstance(node, ast.Import):
                here |= {alias.name for alias in node.names} & files.keys()
        here.discard(name)
    return found


def circles_in(imports: dict[str, set[str]]) -> list[set[str]]:
    """Return the sets of modules that import each other, each through the others."""
    reached: dict[str, set[str]] = {}
    for name, here in imports.items():
        seen: set[str] = set()
        further = list(here)
        while further:
            one = further.pop()
            if one not in seen:
                seen.add(one)
                further.extend(imports[one])
        reached[name] = seen
    found: list[set[str]] = []
    for name in imports:
        if name in reached[name]:
            circle = {one for one in reached[name] if name in reached[one]}
            if circle not in found:
                found.append(circle)
    return found


def test_no_modules_import_each_other():
    """A file can be read with those that it imports, and without those that import it."""
    assert circles_in(imports_by_module()) == []


def test_a_circle_is_found():
    """The check itself finds a circle, and only what is in it."""
    imports = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}
    assert circles_in(imports) == [{"b", "c"}]
