"""Queries of Spark SQL in the dialect of DuckDB, which answers them as Spark does.

Most of it is the library's work. Here stands what it leaves as it is, though DuckDB has no such
function or does something else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache, reduce
from typing import Any, Final

import sqlglot
from sqlglot import exp

# What one pair of two lists that were joined is called in a lambda.
PAIR: Final = "pair"
TEXT: Final = exp.DataType.build("text")


@lru_cache(maxsize=1024)
def translated(text: str) -> str:
    """A query as DuckDB understands it.

    Raises:
        sqlglot.errors.ParseError: It is no query.
    """
    query = sqlglot.parse_one(text, read="spark")
    # Inner parts come first, as what is made of outer ones has them.
    for node in reversed([*query.find_all(exp.Expression)]):
        made = _own(node)
        if made is not node:
            node.replace(made)
    return str(query.sql("duckdb", copy=False))


def type_of(kind: str) -> str:
    """A type of Spark SQL, as DuckDB has it."""
    return exp.DataType.build(kind, dialect="spark").sql("duckdb")


def _own(node: exp.Expression) -> exp.Expression:
    """A part of a query as DuckDB does the same."""
    if (made := MADE.get(type(node))) is not None:
        return made(node)
    if isinstance(node, exp.Anonymous) and (call := CALLS.get(node.name.lower())) is not None:
        return call(*node.expressions)
    if isinstance(node, exp.Predicate) and "expression" in node.args:
        return _compared(node)
    return node


def _call(name: str, *arguments: Any) -> exp.Expression:
    return exp.Anonymous(this=name, expressions=[*arguments])


def _lambda(body: exp.Expression, *names: str) -> exp.Expression:
    return exp.Lambda(this=body, expressions=[exp.to_identifier(name) for name in names])


def _in_pair(number: int) -> exp.Expression:
    return exp.Bracket(
        this=exp.column(PAIR), expressions=[exp.Literal.number(number + 1)], offset=1
    )


def _element(node: exp.Bracket) -> exp.Expression:
    """Spark counts elements from 0; the library knows that of numbers that are written out."""
    (at,) = node.expressions
    if node.args.get("offset") or at.is_number or at.is_string:
        return node
    return _at(node.this, at)


def _at(items: exp.Expression, at: exp.Expression) -> exp.Expression:
    return _call("list_extract", items, exp.Paren(this=at) + 1)


def _count_if(node: exp.CountIf) -> exp.Expression:
    """DuckDB's own one is null where there is nothing to count."""
    one = exp.If(this=node.this, true=exp.Literal.number(1))
    return exp.Count(this=exp.Case(ifs=[one]))


def _concat(node: exp.Concat) -> exp.Expression:
    """Null where a part is null, which DuckDB's own one leaves out."""
    parts: list[exp.Expression] = [exp.Cast(this=one, to=TEXT.copy()) for one in node.expressions]
    return exp.Paren(this=reduce(lambda one, other: exp.DPipe(this=one, expression=other), parts))


def _arrays_zip(node: exp.ArraysZip) -> exp.Expression:
    fields = [
        exp.PropertyEQ(this=exp.to_identifier(one.name), expression=_in_pair(number))
        for number, one in enumerate(node.expressions)
    ]
    pairs = _call("list_zip", *node.expressions)
    return _call("list_transform", pairs, _lambda(exp.Struct(expressions=fields), PAIR))


def _last_known(node: exp.Window) -> exp.Expression:
    """Over a window the library passes on that nulls are ignored for `last_value` alone."""
    whole = node.this
    if isinstance(whole, exp.IgnoreNulls) and type(whole.this) is exp.Last:
        node.set("this", exp.IgnoreNulls(this=exp.LastValue(this=whole.this.this)))
    return node


def _compared(node: exp.Expression) -> exp.Expression:
    """Spark compares structs by the places of their fields, DuckDB by the names if both have any.

    So what is made for a comparison has no names.
    """
    for side in ("this", "expression"):
        made = node.args.get(side)
        if isinstance(made, exp.Struct):
            values = [
                one.expression if isinstance(one, exp.PropertyEQ) else one.unalias()
                for one in made.expressions
            ]
            node.set(side, _call("row", *values))
    return node


def _from_json(node: exp.FromJson) -> exp.Expression:
    """The schema may be written in parts."""
    schema = "".join(one.name for one in node.expression.find_all(exp.Literal, bfs=False))
    if not re.match(r"\s*(ARRAY|MAP)<", schema):
        schema = f"STRUCT<{_with_colons(schema)}>"
    shape = json.dumps(_shape(exp.DataType.build(schema, dialect="spark")))
    return _call("json_transform", node.this, exp.Literal.string(shape))


def _with_colons(columns: str) -> str:
    return re.sub(r"(\w+) (?=[A-Za-z])", r"\1: ", columns)


def _shape(kind: exp.Expression) -> Any:
    if kind.is_type("struct"):
        return {one.name: _shape(one.args["kind"]) for one in kind.expressions}
    if kind.is_type("array"):
        return [_shape(kind.expressions[0])]
    return kind.sql("duckdb")


def _substring(node: exp.Substring) -> exp.Expression:
    """DuckDB's own one knows no bytes."""
    start, length = node.args["start"], node.args.get("length")
    if length is None:
        return node
    return _call("array_slice", node.this, start, exp.Paren(this=start.copy()) + length - 1)


Made = Callable[..., exp.Expression]
MADE: Final[dict[type, Made]] = {
    # These heed rows whose value is null, as Spark's own ones do.
    exp.ArgMin: lambda node: _call("arg_min_null", node.this, node.expression),
    exp.ArgMax: lambda node: _call("arg_max_null", node.this, node.expression),
    exp.ArraysZip: _arrays_zip,
    exp.Bracket: _element,
    exp.Concat: _concat,
    exp.CountIf: _count_if,
    exp.DateFromUnixDate: lambda node: exp.cast("'1970-01-01'", "date") + node.this,
    exp.FromJson: _from_json,
    exp.Substring: _substring,
    exp.Window: _last_known,
}
CALLS: Final[dict[str, Made]] = {
    "get": _at,
    "timestamp_micros": lambda us: _call("make_timestamp", us),
    "xxhash64": lambda *values: _call("hash", *values),
}
