"""Answers queries of people over the tables, and nothing but queries: nothing is written or set."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import ParseException, PySparkException, PySparkNotImplementedError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from ledgermq.errors import LedgerMQError
from ledgermq.protocol.instants import utc_text
from ledgermq_spark.laws.facts import Facts
from ledgermq_spark.tables.all_tables import TABLES

# The one of the statements below whose answer depends on what is read.
PLANS: Final = "ExplainCommand"
# Statements that only tell what there is, by the class that Spark parses each to.
HARMLESS: Final = (
    *("ShowTables", "ShowColumns", "ShowFunctions", PLANS, "DescribeRelation"),
    *("DescribeColumn", "DescribeQueryCommand", "DescribeFunction"),
)
# Functions that call whatever method of Java a query names.
CALLS_OF_JAVA: Final = ("reflect", "java_method", "try_reflect")
# Classes of SQLSTATE that are the fault of a query: too many rows, values, syntax and names, what
# Spark cannot do, what the query raises itself.
FAULTS: Final = ("21", "22", "42", "0A", "P0")
UNKNOWN_TABLE: Final = "TABLE_OR_VIEW_NOT_FOUND"
# What Spark's errors say besides: their class, their SQLSTATE, settings that nobody can set here.
BESIDES: Final = re.compile(
    r"^\[[\w.]+\] | SQLSTATE: \w+| If necessary set .* to bypass this error\."
)
# What Python says of times and dates that it does not know.
BEYOND: Final = re.compile(r"out of range|ordinal must be|too large")
PLACE: Final = re.compile(r"line (\d+),? pos(?:ition)? (\d+)")


class QueryInvalidError(LedgerMQError, ValueError):
    """The text is no query over the tables, or its answer cannot be worked out."""

    code = "query-invalid"


class NoQueryError(QueryInvalidError):
    """The text is a statement that does something: it was not run."""

    code = "no-query"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The first rows of an answer, with values that can be printed, and whether there are more."""

    columns: list[str]
    rows: list[list[Any]]
    has_more: bool


def check_query(text: str, nothing: Facts, *, apart: bool = False) -> bool:
    """See that a text is a query over tables, by the facts of a log without a record.

    Returns whether a log is to be read for it: what tells of names and types alone is answered by
    these facts.

    Args:
        text: The query.
        nothing: Such facts, by which names and types are looked up before anything is read.
        apart: Whether each column must have a name of its own.

    Raises:
        NoQueryError: It does anything besides answering.
        QueryInvalidError: It cannot be understood, or names what is not there.
    """
    kind = _refuse_statements(nothing.engine.spark, text)
    _forget_calls_of_java(nothing.engine.spark)
    columns = _asked(text, nothing).columns
    if apart and (twice := sorted({one for one in columns if columns.count(one) > 1})):
        raise QueryInvalidError(
            f"several columns are called {', '.join(twice)}: name them apart with AS"
        )
    return kind in (None, PLANS)


def answer_query(text: str, facts: Facts, rows_max: int) -> Answer:
    """The answer to a query that was checked, so many rows of it at most.

    Raises:
        QueryInvalidError: It cannot be worked out, as where it divides by zero.
    """
    frame = _asked(text, facts)
    with _told():
        found = _with_times_apart(frame.limit(rows_max + 1)).collect()
    kinds = [one.dataType for one in frame.schema.fields]
    return Answer(
        columns=frame.columns,
        rows=[list(map(_plain, row, kinds)) for row in found[:rows_max]],
        has_more=len(found) > rows_max,
    )


def _with_times_apart(frame: DataFrame) -> DataFrame:
    """The same rows with times without a zone, which are those in UTC.

    Spark hands others over in the zone of this machine, in which the first and the last hours that
    Python knows are none: `0001-01-01` nowhere, `9999-12-31 23:59:59` not east of Greenwich.
    """
    # Several columns may have one name.
    named = frame.toDF(*(str(number) for number in range(len(frame.columns))))
    kinds = [(one.dataType, _without_zone(one.dataType)) for one in named.schema.fields]
    return named.select(
        *(
            f.col(str(number)) if kind == other else f.col(str(number)).cast(other)
            for number, (kind, other) in enumerate(kinds)
        )
    )


def _without_zone(kind: t.DataType) -> t.DataType:
    """A type whose times have no zone."""
    if isinstance(kind, t.TimestampType):
        return t.TimestampNTZType()
    if isinstance(kind, t.ArrayType):
        return t.ArrayType(_without_zone(kind.elementType), kind.containsNull)
    if isinstance(kind, t.MapType):
        key, value = _without_zone(kind.keyType), _without_zone(kind.valueType)
        return t.MapType(key, value, kind.valueContainsNull)
    if isinstance(kind, t.StructType):
        return t.StructType(
            [
                t.StructField(one.name, _without_zone(one.dataType), one.nullable)
                for one in kind.fields
            ]
        )
    return kind


def _asked(text: str, facts: Facts) -> DataFrame:
    words = text.lower()
    # Others are not even worked out, unless names are put together or all are asked for.
    all_of_them = "identifier" in words or "show" in words
    for name, query in TABLES.items():
        if name in words or all_of_them:
            facts.engine.frame(facts.query(query)).createOrReplaceTempView(name)
    with _told():
        return facts.engine.spark.sql(text)


def _refuse_statements(spark: SparkSession, text: str) -> str | None:
    """Raises NoQueryError unless Spark's own parser takes the text for a query.

    Returns None for a query, and which of the harmless statements it is otherwise.
    """
    parser = spark._jsparkSession.sessionState().sqlParser()
    refused = NoQueryError(
        "this is no query, and was not run: `ledgermq sql` takes SELECT, WITH and VALUES, and "
        f"DESCRIBE, SHOW and EXPLAIN; tables are {', '.join(TABLES)}"
    )
    try:
        # Nothing but queries is in this part of the grammar; a semicolon is not, either.
        query = parser.parseQuery(text.strip().removesuffix(";"))
    except ParseException:
        with _told():
            try:
                statement = parser.parsePlan(text)
            except Py4JError:
                raise refused from None
        kind = str(statement.getClass().getSimpleName())
        if kind not in HARMLESS:
            raise refused from None
        return kind
    if "ScriptTransformation" in _parts(query):
        raise NoQueryError("SELECT TRANSFORM runs a program: `ledgermq sql` runs none")
    return None


def _forget_calls_of_java(spark: SparkSession) -> None:
    """Takes the functions from the session, however a query names them."""
    registry = spark._jsparkSession.sessionState().functionRegistry()
    java: Any = spark._jvm
    identifier = java.org.apache.spark.sql.catalyst.FunctionIdentifier
    for name in CALLS_OF_JAVA:
        registry.dropFunction(identifier(name))


def _parts(plan: Any) -> Iterator[str]:
    """The classes of a parsed query and of all in it."""
    yield plan.getClass().getSimpleName()
    for group in (plan.children(), plan.innerChildren()):
        for number in range(group.size()):
            yield from _parts(group.apply(number))


@contextmanager
def _told() -> Iterator[None]:
    """What Spark says against a query becomes a sentence, without a word of Java."""
    try:
        yield
    except PySparkNotImplementedError:
        raise QueryInvalidError(
            "the answer has values that cannot be shown, as intervals of months and days are: "
            "cast them to STRING"
        ) from None
    except (PySparkException, Py4JJavaError) as problem:
        fault = _fault(problem)
        if fault is None:
            raise
        raise QueryInvalidError(f"the query cannot be answered{fault}") from None
    except (ValueError, OverflowError) as problem:
        if not BEYOND.search(str(problem)):
            raise
        raise QueryInvalidError(
            "the answer has times or dates that cannot be shown, before the year 1 or after 9999: "
            "cast them to STRING"
        ) from None


def _fault(problem: Any) -> str | None:
    """What is wrong with a query, and where; None: it is not the query that is wrong."""
    # As Spark made an error of Python of it, or as it came from Java.
    error: Any = getattr(problem, "_origin", None) or getattr(problem, "java_exception", None)
    try:
        state, condition = error.getSqlState(), error.getCondition()
    except (AttributeError, Py4JError):
        return None
    if not (state or "").startswith(FAULTS):
        return None
    said = error.getMessage().strip()
    text = BESIDES.sub("", said.partition("\n")[0]).strip()
    if condition == UNKNOWN_TABLE:
        text = f"{text.partition('. ')[0]}; there are {', '.join(TABLES)}"
    place = PLACE.search(said)
    return f" (line {place[1]}, position {place[2]}): {text}" if place else f": {text}"


def _plain(value: Any, kind: t.DataType) -> Any:
    """A value as JSON can have it.

    Times become ISO 8601, bytes hexadecimal, what is no number text: `NaN`, `Infinity`.
    """
    if value is None:
        return None
    if isinstance(kind, t.ArrayType):
        return [_plain(one, kind.elementType) for one in value]
    if isinstance(kind, t.MapType):
        return {
            str(_plain(key, kind.keyType)): _plain(one, kind.valueType)
            for key, one in value.items()
        }
    if isinstance(kind, t.StructType):
        values = [
            _plain(one, field.dataType) for one, field in zip(value, kind.fields, strict=True)
        ]
        has_names = len(set(kind.names)) == len(kind.names)
        return dict(zip(kind.names, values, strict=True)) if has_names else values
    if isinstance(kind, t.TimestampType):
        return utc_text(value.replace(tzinfo=UTC))
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value if isinstance(value, str | int | float) else str(value)
