"""Mutants of a Python source: the same module with one small thing wrong.

Comparisons, boolean and arithmetic operators, constants, conditions and return values are
exchanged, statements left out. Texts for people (log entries too), type hints, docstrings, lists
of names and the assertions about impossible states are left as they are.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from typing import NamedTuple

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
}
LEFT_ALONE = ("__all__", "__slots__")
FOR_CHECKERS = ("cast", "TypeVar")
Change = Callable[[ast.AST], ast.AST]


class Mutant(NamedTuple):
    """A mutated source: where, what was changed, and the whole text."""

    line: int
    before: str
    after: str
    source: str


def _changes(node: ast.AST, *, in_assert: bool) -> Iterator[Change]:
    """The ways in which one node can be wrong."""
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            if type(operator) in COMPARISONS:
                yield _with_comparison(place, COMPARISONS[type(operator)])
    elif isinstance(node, ast.BoolOp):
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield lambda one: ast.BoolOp(op=other(), values=one.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield lambda one: one.operand
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        operator = ARITHMETIC[type(node.op)]
        yield lambda one: ast.BinOp(left=one.left, op=operator(), right=one.right)
    elif isinstance(node, ast.Constant):
        yield from _constants(node)
    elif isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(
        node.test, ast.Compare | ast.BoolOp | ast.UnaryOp
    ):
        yield _with_opposite_test
    if not in_assert:
        yield from _statements(node)


def _statements(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Return) and node.value is not None:
        if not (isinstance(node.value, ast.Constant) and node.value.value is None):
            yield lambda _: ast.Return(value=ast.Constant(value=None))
    elif _has_effect(node):
        yield lambda _: ast.Pass()
    elif isinstance(node, ast.Continue):
        yield lambda _: ast.Break()
    elif isinstance(node, ast.Break):
        yield lambda _: ast.Continue()
    if isinstance(node, ast.AugAssign) and type(node.op) in ARITHMETIC:
        operator = ARITHMETIC[type(node.op)]
        yield lambda one: ast.AugAssign(target=one.target, op=operator(), value=one.value)


def _has_effect(node: ast.AST) -> bool:
    """Whether a statement changes more than a name of its function."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call)
    if isinstance(node, ast.Assign):
        return not isinstance(node.targets[0], ast.Name | ast.Tuple)
    return isinstance(node, ast.Delete | ast.AugAssign)


def _constants(node: ast.Constant) -> Iterator[Change]:
    value = node.value
    if isinstance(value, bool):
        yield lambda _: ast.Constant(value=not value)
    elif isinstance(value, int):
        yield lambda _: ast.Constant(value=value + 1)
    elif isinstance(value, str | bytes) and (not isinstance(value, str) or " " not in value):
        yield lambda _: ast.Constant(value="XX" + value if isinstance(value, str) else b"X")


def _with_comparison(place: int, operator: type[ast.cmpop]) -> Change:
    def change(node: ast.AST) -> ast.AST:
        assert isinstance(node, ast.Compare)
        node.ops[place] = operator()
        return node

    return change


def _with_opposite_test(node: ast.AST) -> ast.AST:
    node.test = ast.UnaryOp(op=ast.Not(), operand=node.test)  # type: ignore[attr-defined]
    return node


class _Sites(ast.NodeTransformer):
    """Counts the places of possible changes, and makes the one that is wanted."""

    def __init__(self, wanted: int, *, with_asserts: bool) -> None:
        self.wanted = wanted
        self.with_asserts = with_asserts
        self.count = 0
        self.in_assert = False
        self.found: tuple[int, str, str] | None = None

    def visit(self, node: ast.AST) -> ast.AST:
        if _is_left_alone(node) or (isinstance(node, ast.Assert) and not self.with_asserts):
            return node
        if isinstance(node, ast.Assert):
            node.test = self.visit(node.test)
            return node
        for change in _changes(node, in_assert=self.in_assert):
            if self.count == self.wanted:
                before = ast.unparse(node).splitlines()[0]
                changed = change(copy.deepcopy(node))
                after = ast.unparse(ast.fix_missing_locations(changed)).splitlines()[0]
                self.found = (getattr(node, "lineno", 0), before, after)
                self.count += 1
                return changed
            self.count += 1
        if isinstance(node, ast.FunctionDef):
            # Hints and decorators are no behaviour of the fold.
            node.body = [self.visit(one) for one in node.body]
            node.args.defaults = [self.visit(one) for one in node.args.defaults]
            given = node.args.kw_defaults
            node.args.kw_defaults = [one if one is None else self.visit(one) for one in given]
            return node
        if isinstance(node, ast.ClassDef):
            node.body = [self.visit(one) for one in node.body]
            return node
        if isinstance(node, ast.AnnAssign):
            node.value = self.visit(node.value) if node.value is not None else None
            return node
        return self.generic_visit(node)


def _is_left_alone(node: ast.AST) -> bool:
    """Docstrings, imports, f-strings and logs (texts for people), lists of names, type hints."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.Call) and ast.unparse(node.func) in FOR_CHECKERS:
        return True
    if isinstance(node, ast.Expr) and ast.unparse(node.value).startswith("LOGGER."):
        return True
    if isinstance(node, ast.Import | ast.ImportFrom | ast.JoinedStr):
        return True
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return True
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(isinstance(one, ast.Name) and one.id in LEFT_ALONE for one in targets)


def mutants(source: str, *, with_asserts: bool = False) -> Iterator[Mutant]:
    """All mutants of a source, in order of place; `with_asserts` where assertions are its work."""
    wanted = 0
    while True:
        sites = _Sites(wanted, with_asserts=with_asserts)
        tree = ast.fix_missing_locations(sites.visit(ast.parse(source)))
        if sites.found is None:
            return
        yield Mutant(*sites.found, ast.unparse(tree))
        wanted += 1
