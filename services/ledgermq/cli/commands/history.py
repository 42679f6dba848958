"""`ledgermq sql`, `tables` and `diff`: what happened to messages, as tables, read from the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ledgermq.cli.options.facts import archive_option, facts_at, moment_position
from ledgermq.cli.options.moments import MOMENT, at_option
from ledgermq.cli.options.once import OnceCommand, OnceGroup
from ledgermq.cli.options.spark import archive_job
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.options.together import DIRECTORY, Count
from ledgermq.cli.printing.output import Column, Output, count_of, headed

if TYPE_CHECKING:
    from ledgermq_spark.laws.facts import Facts
    from ledgermq_spark.log.session import LazySession
    from ledgermq_spark.tables.changes import PlaceChanges

ROWS_MAX_DEFAULT = 1_000
# With which a query begins whose answer is in the log, whatever else is right or wrong with it.
READING: Final = ("SELECT", "WITH", "VALUES", "FROM", "TABLE")
CHANGES_COLUMNS: Final = (
    Column(key="place", heading="QUEUE, TOPIC OR SUBSCRIPTION", whole=True),
    *headed("before", "came", "went", "after", number=True),
    Column(key="events", heading="WHAT HAPPENED"),
    Column(key="operations", heading="THROUGH"),
)


@click.command(cls=OnceCommand)
@click.argument("query")
@at_option
@click.option(
    "--limit",
    type=Count(min=1),
    default=ROWS_MAX_DEFAULT,
    show_default=True,
    help="How many rows are printed at most; a remark says if there are more.",
)
@archive_option
@target_options
def sql(
    target: Target, output: Output, query: str, at: Any, limit: int, archive: Path | None
) -> None:
    """Answer QUERY, one SELECT in the SQL of Spark over tables that are made from the log.

    The tables are message_events, operations, outcomes, messages, deliveries, units_of_work,
    sessions, groups, subscriptions and queue_depth; docs/tables.md has their columns. Only queries
    are run: statements that change anything are refused.
    """
    from ledgermq_spark.archive.archived import facts_of_nothing
    from ledgermq_spark.tables.asking import answer_query, check_query

    def check(spark: LazySession) -> Facts | None:
        nothing = facts_of_nothing(spark.begin())
        is_of_rows = check_query(query, nothing, apart=output.as_json)
        return None if is_of_rows else nothing

    is_read = query.upper().lstrip("( \n\t").startswith(READING)
    with facts_at(target, output, "sql", at, archive, check, is_read=is_read) as facts:
        answer = answer_query(query, facts, limit)
    # Several columns may have one name.
    numbers = [str(number) for number in range(len(answer.columns))]
    columns = [
        Column(key=number, heading=name.upper(), whole=True)
        for number, name in zip(numbers, answer.columns, strict=True)
    ]
    rows = [dict(zip(numbers, row, strict=True)) for row in answer.rows]
    document = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    output.table(columns, rows, document=document)
    if answer.has_more:
        told = f"{count_of(limit, 'row')} shown; there are more: ask for them with --limit"
        output.cut_short(told)


@click.group(cls=OnceGroup)
def tables() -> None:
    """Write what happened as tables, for other programs."""


@tables.command()
@click.argument("directory", type=DIRECTORY)
@at_option
@click.option(
    "--format",
    "table_format",
    type=click.Choice(("parquet", "delta")),
    default="parquet",
    show_default=True,
    help="parquet: files of Parquet; delta: Delta Lake tables, which need --archive.",
)
@archive_option
@target_options
def write(
    target: Target,
    output: Output,
    directory: Path,
    at: Any,
    table_format: str,
    archive: Path | None,
) -> None:
    """Write all tables that `ledgermq sql` knows into DIRECTORY; docs/tables.md describes them.

    Without --archive all tables are written as Parquet, in place of those that are there. With
    --archive, what is new since the last time is added, by queue manager and day. Use a directory
    for one of the two ways only.
    """
    if archive is not None:
        if at is not None:
            raise click.UsageError("with --archive tables have all of it: leave out --at")
        _add_new(target, output, archive, directory, table_format)
        return
    if table_format != "parquet":
        raise click.UsageError("Delta Lake tables are written from an archive: give --archive")
    from ledgermq_spark.tables.all_tables import TABLES
    from ledgermq_spark.tables.writing import check_whole, write_tables

    check_whole(directory)
    with facts_at(target, output, "tables", at, None) as facts:
        write_tables(facts, directory)
    output.done(
        f"{len(TABLES)} tables are in {directory}",
        {"directory": str(directory), "tables": list(TABLES)},
    )


def _add_new(
    target: Target, output: Output, archive: Path, directory: Path, table_format: str
) -> None:
    from ledgermq_spark.archive.written_tables import check_grown, write_new
    from ledgermq_spark.tables.all_tables import TABLES

    name = target.queue_manager
    operations = moment_position(target, None, archive) + 1
    check_grown(directory, table_format)
    with archive_job(output, "tables", operations, delta=table_format == "delta") as job:
        written = write_new(archive, name, directory, table_format=table_format, **job)
    text = f"{len(TABLES)} tables are in {directory}"
    if written.stretches:
        text += f", with {count_of(written.stretches, 'stretch', 'stretches')} more of {name}"
    if written.mended:
        text += f"; {', '.join(written.mended)} lacked what others had, and have it now"
    if not written.stretches and not written.mended:
        text += f", which had all of {name} that is in {archive}"
    told = {"directory": str(directory), "tables": list(TABLES)}
    output.done(text, {**told, "stretches": written.stretches, "mended": written.mended})


@click.command(cls=OnceCommand)
@click.option("--from", "since", type=MOMENT, required=True, help="The earlier moment.")
@click.option("--to", "until", type=MOMENT, help="The later moment.  [default: the log's end]")
@archive_option
@target_options
def diff(target: Target, output: Output, since: Any, until: Any, archive: Path | None) -> None:
    """Show what changed after one moment, up to another, and through which operations."""
    from ledgermq_spark.tables.changes import changes_since

    first = moment_position(target, since, archive)
    last = None if until is None else moment_position(target, until, archive)
    if last is not None and first > last:
        raise click.UsageError(
            f"--from {target.named(first)} lies after --to {target.named(last)}; turn them round"
        )
    with facts_at(target, output, "diff", last, archive) as facts:
        changes = changes_since(facts, first)
    if output.as_json:
        document = changes.as_dict()
        output.document({"queue_manager": target.queue_manager, "from": first, **document})
        return
    asked = count_of(sum(changes.operations.values()), "operation")
    caption = f"after {target.named(first)}, up to {target.named(changes.position)}: {asked}"
    caption += f": {_counted(changes.operations)}" if changes.operations else ""
    caption += f"\nrefused: {_counted(changes.refused)}" if changes.refused else ""
    output.table(CHANGES_COLUMNS, [_change_row(one) for one in changes.places], caption=caption)


def _change_row(one: PlaceChanges) -> dict[str, Any]:
    place = one.destination
    if one.subscription is not None:
        place += f" to {one.subscription or 'a subscription without a name'}"
    made = (["made"] if one.made else []) + (["ended"] if one.gone else [])
    return {
        **asdict(one),
        "place": place,
        "events": ", ".join([*made, _counted(one.events)] if one.events else made),
        "operations": _counted(one.operations),
    }


def _counted(counts: Mapping[str, int]) -> str:
    """Names with their counts, the largest first."""
    ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    return ", ".join(f"{name} {count:,}" for name, count in ordered)
