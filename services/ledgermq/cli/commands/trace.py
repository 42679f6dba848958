"""`ledgermq trace`: the life of one message, read by Spark from the log alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from ledgermq.cli.options.moments import MESSAGE_ID
from ledgermq.cli.options.spark import spark_job
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.printing.output import Column, Output, iso_time
from ledgermq.errors import LedgerMQError

if TYPE_CHECKING:
    from ledgermq_spark.tables.life import Life


LIFE_COLUMNS: Final = (
    Column(key="position", heading="POSITION", number=True, whole=True),
    Column(key="time", heading="TIME", whole=True),
    Column(key="what", heading="WHAT", whole=True),
    Column(key="reason", heading="REASON"),
)


class MessageUnknownError(LedgerMQError, LookupError):
    """The log holds no put of a message with this id."""

    code = "message-unknown"


@click.command()
@click.argument("message_id")
@target_options
def trace(target: Target, output: Output, message_id: str) -> None:
    """Show the life of the message with MESSAGE_ID, from its put to now, from the log alone."""
    from ledgermq_spark.jobs.run import trace_message

    if not MESSAGE_ID.fullmatch(message_id):
        raise click.UsageError(
            f"{message_id!r} is no message id: it has 32 hexadecimal digits, see `ledgermq browse`"
        )
    target.check_broker()
    with spark_job(target, output, "trace") as job:
        life = trace_message(message_id=message_id, **job)
    if life is None:
        raise MessageUnknownError(
            f"no message {message_id} was ever put on {target.queue_manager}; see "
            "`ledgermq browse QUEUE` for those that wait"
        )
    if output.as_json:
        output.document(life.as_dict())
        return
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
