"""Tests of imports that the contracts in pyproject.toml cannot say."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SERVICES = ROOT / "services" / "ledgermq"


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
    for path in sorted((SERVICES / package).rglob("*.py")):
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
    commands = (SERVICES / "cli", SERVICES / "demo")
    for path in sorted(SERVICES.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        lazy = any(path.is_relative_to(folder) for folder in commands)
        assert spark_imports(tree, lazy=lazy) == [], path.relative_to(ROOT)
