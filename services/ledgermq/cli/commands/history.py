"""`ledgermq sql` and `ledgermq tables`: what happened to messages, as tables, read from the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import click

from ledgermq.cli.options.moments import at_option, position_at
from ledgermq.cli.options.spark import spark_job
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.printing.output import Column, Output
from ledgermq.errors import LedgerMQError

ROWS_MAX_DEFAULT = 1_000


class QueryInvalidError(LedgerMQError, ValueError):
    """The text is no query over the tables."""

    code = "query-invalid"


@click.command()
@click.argument("query")
@at_option
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=ROWS_MAX_DEFAULT,
    show_default=True,
    help="Print so many rows at most.",
)
@target_options
def sql(target: Target, output: Output, query: str, at: Any, limit: int) -> None:
    """Answer QUERY, a SELECT over the tables of what happened (docs/tables.md).

    Tables are message_events, operations, outcomes, messages, deliveries, units_of_work, sessions,
    groups, subscriptions and queue_depth.
    """
    from pyspark.errors import AnalysisException, ParseException

    from ledgermq_spark.jobs.run import run_tables
    from ledgermq_spark.tables.all_tables import TABLES

    target.check_broker()
    position = position_at(target, at)
    with spark_job(target, output, "sql") as job:
        facts = run_tables(at=position, **job)
        for name, text in TABLES.items():
            facts.query(text).createOrReplaceTempView(name)
        try:
            answer = job["spark"].sql(query)
        except (AnalysisException, ParseException) as problem:
            told = str(problem).partition("== SQL")[0].partition(";\n")[0].strip()
            raise QueryInvalidError(f"the query cannot be answered: {told}") from None
        columns = [Column(key=name, heading=name.upper(), whole=True) for name in answer.columns]
        found = answer.limit(limit + 1).collect()
    output.table(columns, list(_plain(row.asDict(recursive=True) for row in found[:limit])))
    if len(found) > limit:
        output.remark(f"there are more than these {limit:,} rows; ask for more with --limit")


def _plain(rows: Iterator[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows of values that can be printed: times in ISO 8601, bytes in hexadecimal."""
    for row in rows:
        yield {name: _shown(value) for name, value in row.items()}


def _shown(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC).isoformat()
    if isinstance(value, bytes | bytearray):
        return value.hex()
    if isinstance(value, date) or not isinstance(value, str | int | float | bool | None):
        return str(value)
    return value


@click.group()
def tables() -> None:
    """Write what happened as tables, for other programs."""


@tables.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@at_option
@target_options
def write(target: Target, output: Output, directory: Path, at: Any) -> None:
    """Write all tables (docs/tables.md) as Parquet below DIRECTORY, in place of those there."""
    from ledgermq_spark.jobs.run import run_tables
    from ledgermq_spark.tables.all_tables import TABLES

    target.check_broker()
    position = position_at(target, at)
    with spark_job(target, output, "tables") as job:
        run_tables(at=position, output=directory, **job)
    output.done(
        f"{len(TABLES)} tables are in {directory}",
        {"directory": str(directory), "tables": list(TABLES)},
    )
