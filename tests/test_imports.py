"""Tests that the import rules in pyproject.toml still name what they are meant to keep apart."""

import ast
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]

# What the log is written in; it holds no rules, so every part may know it.
VOCABULARY = {
    "administration",
    "get_options",
    "header_size",
    "limits",
    "operations",
    "outcomes",
    "reasons",
    "settings",
}
# A language of its own: the client may check a selector before it sends it.
LANGUAGE = {"selector"}


def contract(name: str) -> dict:
    """Return one contract of import-linter by its id."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    return next(found for found in contracts if found["id"] == name)


def test_every_module_of_the_fold_is_forbidden_to_the_client():
    """A module that is new in core belongs to the fold until somebody decides otherwise."""
    core = ROOT / "services" / "ledgermq" / "core"
    packages = {path.parent.name for path in core.glob("*/__init__.py")}
    modules = {path.stem for path in core.glob("*.py")} | packages
    modules -= {"__init__"} | VOCABULARY | LANGUAGE
    forbidden = {name.rpartition(".")[2] for name in contract("fold")["forbidden_modules"]}
    assert forbidden == modules


def test_the_vocabulary_knows_nothing_else():
    """What every part may import must not bring the fold along."""
    core = ROOT / "services" / "ledgermq" / "core"
    own = {f"ledgermq.core.{name}" for name in VOCABULARY}
    for name in sorted(VOCABULARY):
        ours = {one for one in imported(core / f"{name}.py") if one.startswith("ledgermq")}
        assert ours <= own, name


def imported(path: Path) -> set[str]:
    """Return what a file imports, with all its dots, wherever in the file it does so."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


def test_core_imports_the_standard_library_and_only_selectors_a_parser():
    """The fold must mean the same wherever it runs, so it rests on nothing that others change."""
    core = ROOT / "services" / "ledgermq" / "core"
    for path in sorted(core.rglob("*.py")):
        roots = {name.partition(".")[0] for name in imported(path)}
        allowed = {"ledgermq", *sys.stdlib_module_names}
        allowed |= {"lark"} if path.is_relative_to(core / "selector") else set()
        assert roots <= allowed, path.relative_to(ROOT)


def test_the_selector_language_knows_nothing_else():
    """What the client may import must not bring the fold along."""
    for path in sorted((ROOT / "services" / "ledgermq" / "core" / "selector").glob("*.py")):
        ours = {name for name in imported(path) if name.startswith("ledgermq")}
        assert all(name.startswith("ledgermq.core.selector") for name in ours), path.name


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
    services = ROOT / "services" / "ledgermq"
    commands = (services / "cli", services / "demo")
    for path in sorted(services.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        lazy = any(path.is_relative_to(folder) for folder in commands)
        assert spark_imports(tree, lazy=lazy) == [], path.relative_to(ROOT)
