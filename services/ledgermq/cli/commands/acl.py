"""`ledgermq acl`: the rights that a role needs on Kafka, for whoever administers that."""

from __future__ import annotations

import re
from typing import Final

import click

from ledgermq.cli.options.once import OnceCommand
from ledgermq.cli.options.target import BOOTSTRAP_DEFAULT, json_option, topic_prefix_option
from ledgermq.cli.printing.output import Output
from ledgermq.errors.shown import shown
from ledgermq.wire.kafka.rights import ROLES, kafka_acls_lines, rights_of, rights_of_bridge

TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")


@click.command(cls=OnceCommand)
@click.argument("role", metavar="ROLE", type=click.Choice(ROLES))
@click.option(
    "--principal",
    metavar="TYPE:NAME",
    help="User of Kafka who gets the rights.  [default: User:ledgermq-ROLE]",
)
@click.option(
    "--bootstrap",
    metavar="HOST:PORT",
    default=BOOTSTRAP_DEFAULT,
    envvar="LEDGERMQ_BOOTSTRAP",
    show_envvar=True,
    help="Address of Kafka in the printed commands; nothing is sent there.",
)
@click.option(
    "--command-config",
    metavar="FILE",
    default="admin.properties",
    show_default=True,
    help="File of Java properties in the printed commands, with which kafka-acls.sh logs in.",
)
@click.option(
    "--from-topic",
    "from_topics",
    metavar="TOPIC",
    multiple=True,
    help="Add the rights that `ledgermq bridge --from-topic TOPIC` needs. May be repeated.",
)
@click.option(
    "--to-topic",
    "to_topics",
    metavar="TOPIC",
    multiple=True,
    help="Add the rights that `ledgermq bridge --to-topic TOPIC` needs. May be repeated.",
)
@topic_prefix_option
@json_option
def acl(
    role: str,
    principal: str | None,
    bootstrap: str,
    command_config: str,
    from_topics: tuple[str, ...],
    to_topics: tuple[str, ...],
    topic_prefix: str,
    as_json: bool,
) -> None:
    """Print the rights that ROLE needs on Kafka, as commands that give them.

    client: programs that put and get. worker: `ledgermq worker`. auditor: rebuild, audit, trace,
    tables and archive, which only read. administrator: every command of `ledgermq`. A relay is a
    client on both sides; a bridge is a client that also reads or writes a topic of Kafka.
    """
    output = Output(as_json=as_json)
    who = principal or f"User:ledgermq-{role}"
    if ":" not in who or "'" in who:
        raise click.UsageError(
            f"--principal {who!r} is no principal of Kafka: write TYPE:NAME without quotes, as in "
            "User:orders"
        )
    for topic in (*from_topics, *to_topics):
        if not TOPIC.fullmatch(topic):
            raise click.UsageError(
                f"{shown(topic)} is no name of a topic of Kafka: it has 1 to 249 characters of "
                "A-Z a-z 0-9 . _ -"
            )
    rights = rights_of(role, topic_prefix) + rights_of_bridge(from_topics, to_topics)
    if as_json:
        output.document([{"principal": who, **one._asdict()} for one in rights])
        return
    program = f"kafka-acls.sh --bootstrap-server {bootstrap} --command-config {command_config}"
    for line in kafka_acls_lines(rights, program, who):
        click.echo(line)
