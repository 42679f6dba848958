"""`ledgermq schema`: what a registry has of LedgerMQ's schemas, and whether the log fits it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import click

from ledgermq.cli.options.once import OnceGroup
from ledgermq.cli.options.target import Target, json_option, target_options
from ledgermq.cli.options.together import Count
from ledgermq.cli.printing.exits import CHECK_FAILED, OK
from ledgermq.cli.printing.output import Column, Output, count_of
from ledgermq.wire.framing.confluent import headers_of, id_and_fingerprint
from ledgermq.wire.framing.schema_registry import SchemaRegistry, SchemaStatus, registered_forms
from ledgermq.wire.framing.schemas import by_fingerprint

COLUMNS: Final = (
    Column(key="subject", heading="SUBJECT", whole=True),
    Column(key="id", heading="ID", number=True),
    Column(key="compatibility", heading="COMPATIBILITY"),
)
RECORDS_DEFAULT: Final = 10_000


_registry_option = click.option(
    "--registry",
    "url",
    metavar="URL",
    envvar="LEDGERMQ_SCHEMA_REGISTRY",
    required=True,
    show_envvar=True,
    help="Address of the schema registry, http://[USER:PASSWORD@]HOST:PORT/PATH. Give one with a "
    "password by the environment: arguments are seen by others.",
)


@click.group(cls=OnceGroup)
def schema() -> None:
    """Look after LedgerMQ's schemas in a schema registry."""


def _row(one: SchemaStatus) -> dict[str, Any]:
    return {"subject": one.subject, "id": one.schema_id, "compatibility": one.compatibility}


@schema.command("list")
@_registry_option
@json_option
def list_schemas(url: str, as_json: bool) -> None:
    """List LedgerMQ's schemas with their ids in the registry; one without id is not registered."""
    registry = SchemaRegistry(url)
    rows = [_row(one) for one in registry.statuses()]
    Output(as_json=as_json).table(COLUMNS, rows, caption=registry.shown)


@schema.command()
@_registry_option
@json_option
def register(url: str, as_json: bool) -> None:
    """Register the schemas that are not registered yet, if they fit what their subjects have.

    Workers and clients do so themselves when they start, where they may.
    """
    registry = SchemaRegistry(url)
    missing = sum(one.schema_id is None for one in registry.statuses())
    registered = len(registry.register().ids)
    told = f"{count_of(registered, 'schema')} are registered at {registry.shown}, {missing} of them"
    Output(as_json=as_json).done(
        f"{told} now", {"registry": registry.shown, "schemas": registered, "added": missing}
    )


@schema.command()
@_registry_option
@click.option(
    "--records",
    type=Count(min=0),
    default=RECORDS_DEFAULT,
    show_default=True,
    help="How many records at the end of each partition are looked at.",
)
@target_options
def check(target: Target, output: Output, url: str, records: int) -> int:
    """Check that tools decode what is on the log as LedgerMQ does; change nothing.

    Every schema must be registered, compatible with all versions of its subject, and the ids on
    the log must stand for the schemas of their records. If not, the exit code is 4.
    """
    registry = SchemaRegistry(url)
    found = [*_of_registry(registry), *_of_log(target, registry, records)]
    if output.as_json:
        output.document({"registry": registry.shown, "problems": found})
    else:
        for problem in found:
            click.echo(problem)
        if not found:
            click.echo(f"all is well at {registry.shown}")
    return CHECK_FAILED if found else OK


def _of_registry(registry: SchemaRegistry) -> Iterator[str]:
    for form, one in zip(registered_forms(), registry.statuses(), strict=True):
        if not registry.is_compatible(form):
            yield f"{one.subject}: its subject has versions that it is not compatible with"
        elif one.schema_id is None:
            yield f"{one.subject} is not registered: `ledgermq schema register`"
        elif one.compatibility != "FULL_TRANSITIVE":
            level = one.compatibility or "not set"
            yield f"{one.subject}: its compatibility is {level}, not FULL_TRANSITIVE"


def _of_log(target: Target, registry: SchemaRegistry, records: int) -> Iterator[str]:
    """Ids that stand for another schema than that of their record, or for none."""
    known = by_fingerprint()
    for (number, fingerprint), (count, place) in sorted(_framings(target, records).items()):
        name = known[fingerprint].full_name if fingerprint in known else fingerprint.hex()
        meant = registry.fingerprint_of(number)
        if meant == fingerprint:
            continue
        has = "no schema" if meant is None else "another schema"
        yield (
            f"{count_of(count, 'record')}, the first at {place}, of {name}: of their id {number} "
            f"the registry has {has}, so tools cannot decode them (LedgerMQ can)"
        )


def _framings(target: Target, records: int) -> dict[tuple[int, bytes], tuple[int, str]]:
    """Ids and fingerprints of records in Confluent framing: how many, and where the first is."""
    target.check_broker()
    topics = target.topics
    found: dict[tuple[int, bytes], tuple[int, str]] = {}
    with target.reader(as_written=True) as reader:
        for topic in (topics.operations, topics.outcomes, topics.questions):
            for partition in range(reader.partition_count(topic)):
                first, end = reader.ends(topic, partition)
                start = max(first, end - records)
                for record in reader.records(topic, partition, start, end):
                    pair = id_and_fingerprint(record.value(), headers_of(record))
                    if pair is not None:
                        count, place = found.get(
                            pair, (0, f"{topic}-{partition}@{record.offset()}")
                        )
                        found[pair] = (count + 1, place)
    return found
