"""`ledgermq journal`: back up what was put while journaling was on, list it, put it again."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

import click

from ledgermq.cli.options.consent import (
    REASON,
    actor_option,
    confirm,
    dry_run_option,
    yes_option,
)
from ledgermq.cli.options.destinations import valid_destination
from ledgermq.cli.options.journal_choice import (
    backups_directory,
    choice_from,
    choice_options,
    directory_option,
    ids_option,
    ungrouped_option,
)
from ledgermq.cli.options.once import OnceGroup
from ledgermq.cli.options.setting_options import Duration
from ledgermq.cli.options.spark import spark_job
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.options.together import Count
from ledgermq.cli.printing.left_out import LeftOut
from ledgermq.cli.printing.message_rows import message_document, shown_body
from ledgermq.cli.printing.output import Column, Output, count_of, size_text
from ledgermq.client.admin.copies import journal_message, why_no_copy, why_no_put
from ledgermq.client.admin.part import who_asks
from ledgermq.client.admin.republishing import journal_marks
from ledgermq.client.admin.republishing import republish as put_again
from ledgermq.client.connection import Connection
from ledgermq.errors import (
    BrokerUnavailableError,
    LedgerMQError,
    RepublishStoppedError,
    WorkerUnavailableError,
)
from ledgermq.protocol.limits import TIMING_MS_MAX
from ledgermq.system_refusals import check_makeable
from ledgermq.wire.content.journaled import JournaledMessage

LISTED_DEFAULT: Final = 100
SAY_SECONDS: Final = 2.0
COLUMNS: Final = (
    Column(key="position", heading="POSITION", number=True),
    Column(key="destination", heading="PUT TO"),
    Column(key="sequence", heading="SEQ", number=True),
    Column(key="message_id", heading="MESSAGE ID", whole=True),
    Column(key="enqueued_at", heading="ENQUEUED"),
    Column(key="expires_at", heading="EXPIRES"),
    Column(key="where", heading="IN"),
    Column(key="body", heading="BODY", cut=True),
)
# Makes the messages that are meant, anew each time.
Messages = Callable[[], Iterator["JournaledMessage"]]


class JournalEmptyError(LedgerMQError):
    code = "journal-empty"


@click.group(cls=OnceGroup)
def journal() -> None:
    """Back up, list and republish the journal: the messages put while journaling was on.

    They are in the journal for a lifetime of their own, whether consumed or not. It is turned on by
    `ledgermq manager alter --journaling`; `ledgermq manager show` prints its lifetime, where on the
    log it begins, and the last backup.
    """


@journal.command()
@directory_option
@click.option(
    "--reason",
    type=REASON,
    default="backup of the journal",
    show_default=True,
    help="Why it is done; recorded on the log.",
)
@actor_option
@click.option(
    "--from-checkpoint",
    is_flag=True,
    help="If the log is trimmed and earlier backups are lost: back up what came in since the "
    "oldest checkpoint, and give up what came in before. Without it the command refuses.",
)
@dry_run_option
@target_options
def backup(
    target: Target,
    output: Output,
    directory: Path | None,
    reason: str,
    actor: str | None,
    from_checkpoint: bool,
    dry_run: bool,
) -> None:
    """Write the journal to files of Parquet, and remove from it the messages that have expired.

    All messages of the journal are written to --directory, expired or not, and read back before any
    is removed. `ledgermq log trim` can then cut off the log what the journal needs no more.
    """
    from ledgermq_spark.journal.archive import Archive
    from ledgermq_spark.journal.journal import journal_of
    from ledgermq_spark.journal.summary import summary_of

    if not reason:
        raise click.UsageError("say why you back the journal up: --reason TEXT")
    path = backups_directory(target, directory)
    if dry_run:
        check_makeable(path, "backups")
    with contextlib.ExitStack() as stack:
        connection = stack.enter_context(target.connect())
        begins = connection.admin.queue_manager_status().journal_from
        if begins is None:
            raise JournalEmptyError(
                f"the journal of {target.queue_manager} is empty: journaling was never on, or all "
                "has left it; `ledgermq manager alter --journaling` turns it on"
            )
        if not dry_run:
            stack.enter_context(Archive(path).adding())
            # An entry of our own brings the log's time up to now, so that what has expired counts.
            connection.session().close()
        with spark_job(target, output, "backup") as job:
            found = journal_of(archive=path, from_checkpoint=from_checkpoint, **job)
            summary = summary_of(found)
            written = None if dry_run else Archive(path).write(found, summary)
        positions = {"kept_from": summary.kept_from, "needed_from": summary.needed_from}
        position = None
        if written is not None:
            position = connection.admin.back_up_journal(
                through=written.through,
                **positions,
                reason=reason,
                actor=who_asks(actor),
            )
    if found.kept_from is not None and found.kept_from > begins:
        output.remark(f"what came in from {begins} to {found.kept_from - 1} is given up")
    counts = {name: one for name, one in summary.counts.items() if name != "checksum"}
    stay = counts["messages"] - counts["expired"]
    would = "would be archived" if dry_run else "archived"
    leave = "would leave" if dry_run else "left"
    output.done(
        f"{count_of(counts['messages'], 'message')} {would} in {path} "
        f"({size_text(counts['content_bytes'])}, through "
        f"{target.named(found.through - 1)}); {counts['expired']} had expired and {leave} "
        f"the journal, {stay} stay",
        {
            "queue_manager": target.queue_manager,
            "directory": str(path),
            "from": found.kept_from,
            **counts,
            "through": found.through,
            **positions,
            "dry_run": dry_run,
            "position": position,
        },
    )


@journal.command("list")
@choice_options
@click.option(
    "--limit",
    type=Count(min=0),
    default=LISTED_DEFAULT,
    show_default=True,
    help="How many messages at most, the first ones; 0: all.",
)
@target_options
def list_messages(target: Target, output: Output, limit: int, **options: Any) -> None:
    """List messages of the journal and of its backups, in the order in which they were put."""
    with _chosen(target, output, options, limit=limit + 1 if limit else 0) as messages:
        found = messages()
        shown = islice(found, limit) if limit else found
        rows = []
        for one in shown:
            if output.as_json:
                output.line(_document(one))
            else:
                rows.append(_row(one))
        more = limit and next(found, None) is not None
    if not output.as_json:
        output.table(COLUMNS, rows)
    if more:
        output.cut_short(f"there are more: --limit 0 lists all; these are the first {limit}")
    if not rows:
        output.remark("no message of the journal is meant")


@journal.command()
@choice_options
@ids_option
@click.option(
    "--to",
    metavar="DESTINATION",
    help="Where the copies are put: a queue, as NAME or queue:NAME, or topic:NAME.  [default: "
    "where each original was put]",
)
@click.option(
    "--limit",
    type=Count(min=0),
    default=0,
    help="How many messages at most; 0, the default: all.",
)
@click.option("--skip", type=Count(min=0), default=0, help="Leave out so many, the first ones.")
@click.option(
    "--time-to-live",
    type=Duration(0, TIMING_MS_MAX),
    default="none",
    show_default=True,
    help="How long the copies live from now on; none: for ever.",
)
@ungrouped_option
@dry_run_option
@yes_option
@target_options
def republish(
    target: Target,
    output: Output,
    to: str | None,
    limit: int,
    skip: int,
    time_to_live: int,
    ungrouped: bool,
    dry_run: bool,
    yes: bool,
    **options: Any,
) -> None:
    """Put copies of messages of the journal or of its backups on a queue or topic.

    A copy is a new, persistent message; its property LedgerMQ_JournalMessageId is the id of the
    original. Republished twice, a message is there twice, and both copies name that id.
    """
    to = None if to is None else valid_destination(to)
    wanted = limit + skip if limit else 0
    with _chosen(target, output, options, limit=wanted, must_be=True) as messages:
        if dry_run or not yes:
            rows, left_out = _copied(
                target, islice(messages(), skip, None), to=to, groups=not ungrouped
            )
            _check_goals(target, output, rows, to)
            if dry_run:
                _tell(output, rows, left_out, to)
                return
            confirm(f"this would put {count_of(len(rows), 'message')} to {_where(to)} again")
        left_out = LeftOut(queue_manager=target.queue_manager)
        try:
            with target.connect() as connection:
                done = _put_again(
                    output,
                    connection,
                    islice(messages(), skip, None),
                    skip,
                    to=to,
                    time_to_live=time_to_live / 1000,
                    groups=not ungrouped,
                    leave_out=left_out.add,
                )
        finally:
            aside = left_out.say(output)
    text = f"{count_of(done, 'message')} republished to {_where(to)}{aside}"
    output.done(text, {"republished": done, **left_out.document(), "to": to, "dry_run": False})


def _copied(
    target: Target, messages: Iterator[JournaledMessage], **how: Any
) -> tuple[list[dict[str, Any]], LeftOut]:
    """What is copied of messages, as rows, and what is left out."""
    rows, left_out = list[dict[str, Any]](), LeftOut(queue_manager=target.queue_manager)
    for one in messages:
        if why := why_no_copy(one, journal_marks(one), **how):
            left_out.add(one, why)
        else:
            rows.append(_row(one))
    return rows, left_out


def _check_goals(
    target: Target, output: Output, rows: list[dict[str, Any]], to: str | None
) -> None:
    """RepublishStoppedError: what the copies would be put on takes none.

    A look at backups needs no broker: where nobody answers, only this is not known.
    """
    try:
        with target.connect() as connection:
            for goal in dict.fromkeys(to or row["destination"] for row in rows):
                if why := why_no_put(connection, goal):
                    raise RepublishStoppedError(f"no message is republished: {why}")
    except (BrokerUnavailableError, WorkerUnavailableError) as error:
        output.remark(f"whether they can be put to {_where(to)} was not looked at: {error}")


def _put_again(
    output: Output,
    connection: Connection,
    messages: Iterator[JournaledMessage],
    skip: int,
    **how: Any,
) -> int:
    """Puts copies, and tells how far it has come: whoever is stopped must not begin anew."""
    done, said_at = 0, time.monotonic()

    def tell(count: int) -> None:
        nonlocal done, said_at
        done = count
        if time.monotonic() - said_at >= SAY_SECONDS:
            said_at = time.monotonic()
            output.remark(f"{count_of(skip + done, 'message')} are put or left out so far")

    try:
        return put_again(connection, messages, tell=tell, **how)
    except KeyboardInterrupt as stop:
        stop.add_note(
            f"{count_of(done, 'message')} had been republished by then, and the unit of work that "
            f"was just committed may have been: --skip {skip + done} goes on behind those that were"
        )
        raise
    except RepublishStoppedError as stop:
        stop.add_note(f"--skip {skip + done} goes on behind them")
        raise


def _where(to: str | None) -> str:
    return to or "where each was put to"


def _tell(output: Output, rows: list[dict[str, Any]], left_out: LeftOut, to: str | None) -> None:
    would = f"{count_of(len(rows), 'message')} would be republished to {_where(to)}"
    document = {"republished": len(rows), **left_out.document(), "to": to, "dry_run": True}
    output.done(would + left_out.say(output), document | {"messages": rows})
    if rows and not output.as_json:
        output.table(COLUMNS, rows)


@contextlib.contextmanager
def _chosen(
    target: Target, output: Output, options: dict[str, Any], *, limit: int, must_be: bool = False
) -> Iterator[Messages]:
    """The messages that options mean, from the archive, the log or both.

    Raises:
        UsageError: a value cannot be, or the archive is to be there (`must_be`) and is not.
    """
    from ledgermq_spark.journal.archive import Archive
    from ledgermq_spark.journal.choice import chosen
    from ledgermq_spark.journal.journal import journal_of

    choice = choice_from(options, limit)
    source, archive = options["source"], Archive(backups_directory(target, options["directory"]))
    if source == "archive":
        if must_be and not archive.backups(target.queue_manager):
            raise click.UsageError(
                f"there is no backup of {target.queue_manager} in {archive.path}: name its "
                "--directory, or make one with `ledgermq journal backup`"
            )
        yield lambda: chosen(archive.messages(target.queue_manager), choice)
        return
    with spark_job(target, output, "journal") as job:
        found = journal_of(archive=archive.path, apart=source == "log", **job)
        archived = archive.backups(target.queue_manager) if source == "both" else []
        first = max([0, *(one.through for one in archived)])

        def messages() -> Iterator[JournaledMessage]:
            kept_from = found.through if found.kept_from is None else found.kept_from
            if archived:
                for one in archive.messages(target.queue_manager):
                    yield replace(one, is_live=one.position >= kept_from)
            yield from found.messages(first)

        yield lambda: chosen(messages(), choice)


def _place(one: JournaledMessage) -> str:
    parts = ["journal"] if one.is_live else []
    parts += [] if one.backup is None else [f"backup {one.backup}"]
    return ", ".join(parts)


def _row(one: JournaledMessage) -> dict[str, Any]:
    names = ("position", "destination", "sequence", "message_id", "enqueued_at", "expires_at")
    told = {"where": _place(one), "body": shown_body(journal_message(one))}
    return {name: getattr(one, name) for name in names} | told


def _document(one: JournaledMessage) -> dict[str, Any]:
    told = message_document(journal_message(one))
    for name in ("queue", "delivery_count", "redelivered"):
        told.pop(name, None)
    return {
        "position": one.position,
        "destination": one.destination,
        **told,
        "expires_at": one.expires_at,
        "expired": one.expired,
        "in_journal": one.is_live,
        "backup": one.backup,
    }
