"""`ledgermq trace`: the lives of messages, read from the log alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ledgermq.cli.commands.messages import MessageUnknownError
from ledgermq.cli.options.bodies import properties_from
from ledgermq.cli.options.facts import archive_option, facts_at, moment_position
from ledgermq.cli.options.moments import GROUP_ID, MESSAGE_ID
from ledgermq.cli.options.once import OnceCommand
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.options.together import OUTPUT_FILE, Count
from ledgermq.cli.printing.output import Column, Output, count_of, headed
from ledgermq.protocol.instants import iso_time

if TYPE_CHECKING:
    from ledgermq_spark.tables.life import Life


LIFE_COLUMNS: Final = (
    Column(key="position", heading="POSITION", number=True, whole=True),
    *headed("time", "what", whole=True),
    Column(key="reason", heading="REASON"),
)


LIVES_DEFAULT: Final = 20
# Of an archive, which knows nothing of what happened after its end.
SINCE: Final = "`ledgermq archive update` adds what came since"


@click.command(cls=OnceCommand)
@click.argument("message_id", required=False, type=MESSAGE_ID)
@click.option("--correlation-id", metavar="TEXT", help="The messages with this correlation id.")
@click.option(
    "--group",
    type=GROUP_ID,
    help="The messages of the group with this id, in hexadecimal (`ledgermq group list`).",
)
@click.option(
    "--property",
    "properties",
    multiple=True,
    metavar="NAME=VALUE",
    help="The messages with this property; if repeated, those with all these properties.",
)
@click.option(
    "--limit",
    type=Count(min=1),
    default=LIVES_DEFAULT,
    show_default=True,
    help="How many messages at most, the first that were put.",
)
@click.option(
    "--html",
    "page",
    type=OUTPUT_FILE,
    metavar="FILE",
    help="Write the lives to this file too, as a timeline for a browser.",
)
@archive_option
@target_options
def trace(
    target: Target,
    output: Output,
    message_id: str | None,
    correlation_id: str | None,
    group: str | None,
    properties: tuple[str, ...],
    limit: int,
    page: Path | None,
    archive: Path | None,
) -> None:
    """Show the lives of messages, from their put to now, from the log alone.

    MESSAGE_ID has 32 hexadecimal digits, as `ledgermq browse` prints it. Give it, or options that
    name the messages. With --archive the lives end where the archive ends. Where a writer gave one
    id to several messages, all are shown; --json has the first, and the rest as its "others".
    """
    from ledgermq_spark.log.durable_files import write_durably
    from ledgermq_spark.pages.timeline import timeline_page
    from ledgermq_spark.tables.life import lives_meant, meant

    if message_id is None and correlation_id is None and group is None and not properties:
        raise click.UsageError(
            "say which messages: give MESSAGE_ID, --correlation-id, --group or --property"
        )
    if message_id is not None and (correlation_id is not None or group is not None or properties):
        raise click.UsageError(
            "MESSAGE_ID means one message: leave it out, or leave out --correlation-id, --group "
            "and --property"
        )
    properties_from(properties)  # Refuses what is not NAME=VALUE, and a name given twice.
    end = None if archive is None else moment_position(target, None, archive)
    with facts_at(target, output, "trace", end, archive) as facts:
        chosen = meant(
            message_id=_bytes_of(message_id),
            correlation_id=correlation_id,
            group_id=_bytes_of(group),
            properties=dict(text.split("=", 1) for text in properties),
        )
        lives = lives_meant(facts, target.queue_manager, chosen, limit + 1)
    if not lives:
        raise _unknown(target, message_id, end)
    shown, more = lives[:limit], len(lives) > limit
    if output.as_json:
        documents = [life.as_dict() for life in shown]
        output.document(documents if message_id is None else _one_of(documents))
    else:
        for number, life in enumerate(shown):
            if number:
                click.echo()
            _print(output, life)
    if page is not None:
        # Only now: where the disk is full, what was read is told all the same.
        write_durably(page, timeline_page(shown, more=more))
        if not output.as_json:
            output.remark(f"timeline: {page}")
    if message_id is not None and len(shown) > 1:
        output.remark(f"{count_of(len(shown), 'message')} were put with this id")
    if end is not None:
        output.remark(f"as the archive has it, up to {target.named(end)}; {SINCE}")
    if more:
        count = count_of(limit, "message")
        output.cut_short(f"{count} shown; more are meant: ask for them with --limit")


def _one_of(documents: list[dict[str, Any]]) -> dict[str, Any]:
    """The message of an id, and what else was put with it: some writer gave it twice."""
    first, *others = documents
    return {**first, "others": others} if others else first


def _unknown(target: Target, message_id: str | None, end: int | None) -> MessageUnknownError:
    """What is said if no message is meant; `end` is that of the archive that was asked."""
    what = "of those that are meant" if message_id is None else message_id
    if end is not None:
        where = f"which has the log up to {target.named(end)}"
        return MessageUnknownError(f"no message {what} is in the archive, {where}; {SINCE}")
    return MessageUnknownError(
        f"no message {what} was ever put on {target.queue_manager}; see "
        "`ledgermq browse QUEUE` for those that wait"
    )


def _bytes_of(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def _print(output: Output, life: Life) -> None:
    topic = life.queue.startswith("topic:")
    number = "none" if life.sequence is None else str(life.sequence)
    output.fields(
        {
            "Message": life.message_id,
            "Topic" if topic else "Queue": life.queue.removeprefix("topic:"),
            "Sequence number": number,
            "Priority": life.priority,
            "Backouts": life.backout_count,
            "Now": life.fate,
        }
    )
    click.echo()
    output.table(LIFE_COLUMNS, life_rows(life))


def life_rows(life: Life) -> list[dict[str, Any]]:
    return [
        {
            "position": f"{life.queue_manager}@{step.position}",
            "time": iso_time(step.time, precision="milliseconds"),
            "what": step.what,
            "reason": step.reason,
        }
        for step in life.steps
    ]
