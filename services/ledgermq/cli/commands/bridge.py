"""`ledgermq bridge`: from a topic of Kafka to a queue or topic here, or from a queue to one."""

from __future__ import annotations

from typing import Any

import click

from ledgermq.cli.options.destinations import DESTINATION, queue_from
from ledgermq.cli.options.once import OnceCommand
from ledgermq.cli.options.stopping import stopped_by_signals
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.printing.output import Output, count_of
from ledgermq.relay.definitions import bridge_transfers, check_topic, source_name
from ledgermq.relay.relaying import Relaying
from ledgermq.wire.topics.address import parse_servers


@click.command(cls=OnceCommand)
@click.option("--from-topic", metavar="TOPIC", help="Kafka topic whose records are taken.")
@click.option(
    "--to",
    type=DESTINATION,
    help="Where they are put.",
)
@click.option("--from", "from_", metavar="QUEUE", help="Queue whose messages are taken.")
@click.option(
    "--to-topic", metavar="TOPIC", help="Kafka topic to which they are written; it must exist."
)
@click.option(
    "--kafka",
    metavar="HOST:PORT",
    help="Address of the Kafka that has the topic.  [default: that of the queue manager]",
)
@click.option(
    "--body",
    type=click.Choice(("bytes", "text", "json", "avro")),
    default="bytes",
    show_default=True,
    help="With --from-topic: what the value of a record is, and so the body of its message. "
    "bytes: taken as it is; text: UTF-8; json: an object; avro: Avro in Confluent framing, with "
    "--registry.",
)
@click.option(
    "--registry",
    metavar="URL",
    envvar="LEDGERMQ_SCHEMA_REGISTRY",
    default="",
    show_envvar=True,
    help="With --body avro: address of the schema registry that has the schemas of the records.",
)
@click.option(
    "--bad",
    type=DESTINATION,
    help="With --from-topic: where records are put that cannot become a message, invalid JSON for "
    "example. Without --bad the first one stops the bridge.",
)
@click.option(
    "--skip-lost",
    is_flag=True,
    help="With --from-topic: if Kafka deleted records before they were taken, go on after them; a "
    "message to queue:bridge/lost says which. Without it the bridge stops with the error "
    "records-lost.",
)
@click.option(
    "--until-end",
    is_flag=True,
    help="Stop when all there is has been taken. Without it the bridge waits for more.",
)
@click.option(
    "--assume-untaken",
    is_flag=True,
    help="With --to-topic, after the error position-lost: go on although Kafka has forgotten how "
    "far the bridge had written. Messages that wait are taken for unwritten; those that are on "
    "the topic already are written there a second time, so look first, as the error says.",
)
@target_options
def bridge(
    target: Target,
    output: Output,
    from_topic: str | None,
    to: str | None,
    from_: str | None,
    to_topic: str | None,
    kafka: str | None,
    body: str,
    registry: str,
    bad: str | None,
    skip_lost: bool,
    until_end: bool,
    assume_untaken: bool,
) -> None:
    """Carry records of a Kafka topic to a queue or topic, or messages of a queue to a Kafka topic.

    Give --from-topic and --to, or --from and --to-topic. Each message is carried exactly once. The
    bridge runs until Ctrl-C or SIGTERM, and goes on where it was when the same is run again.
    Headers become properties and properties become headers; key, timestamp and place of a record
    become properties, too.
    """
    from ledgermq.relay.bridge_in import BridgeIn

    given = (bool(from_topic), bool(to), bool(from_), bool(to_topic))
    if given not in ((True, True, False, False), (False, False, True, True)):
        raise click.UsageError("give --from-topic and --to, or --from and --to-topic")
    if body == "avro" and not registry:
        raise click.UsageError("--body avro needs a schema registry: give --registry")
    if from_topic and assume_untaken:
        raise click.UsageError("--assume-untaken goes with --to-topic, not with --from-topic")
    if to_topic and (body != "bytes" or bad or skip_lost):
        raise click.UsageError(
            "--body, --bad and --skip-lost go with --from-topic, not with --to-topic"
        )
    queue = "" if from_ is None else queue_from(from_, why="--from takes a queue")
    address = parse_servers(kafka, "--kafka") if kafka else target.bootstrap
    target.check_broker()
    check_topic(address, from_topic or to_topic or "", target.timeout_seconds)
    with stopped_by_signals(output) as stopping:
        running: dict[str, Any] = {
            "connect": target.connect,
            "until_end": until_end,
            "tell": output.remark,
            "stopping": stopping,
        }
        if from_topic and to:
            way = BridgeIn(
                bootstrap=address,
                topic=from_topic,
                target=to,
                body=body,
                schema_registry=registry,
                bad=bad,
                skip_lost=skip_lost,
                timeout_seconds=target.timeout_seconds,
                **running,
            )
            way.run()
            aside = f", {count_of(way.put_bad, 'record')} to {way.bad}" if way.put_bad else ""
            text = f"{count_of(way.put, 'message')} put to {way.target}{aside}"
            output.done(text, {"to": way.target, "put": way.put, "bad": way.put_bad})
        elif to_topic:
            _take_out(target, output, queue, address, to_topic, assume_untaken, running)


def _take_out(
    target: Target,
    output: Output,
    queue: str,
    kafka: str,
    topic: str,
    assume_untaken: bool,
    running: dict[str, Any],
) -> None:
    from ledgermq.relay.topic_goal import TopicGoal

    with target.connect() as connection:
        transfers = bridge_transfers(connection, queue, topic)
        source = source_name(
            connection, transfers, target.bootstrap, target.topics, target.timeout_seconds
        )
    way = Relaying(
        queue=queue,
        transfers=transfers,
        goal=lambda _: TopicGoal(
            kafka,
            topic,
            source,
            target.timeout_seconds,
            assume_untaken=assume_untaken,
            tell=output.remark,
        ),
        **running,
    )
    way.run()
    text = f"{count_of(way.forwarded, 'message')} written to topic {topic} of Kafka"
    output.done(text, {"to_topic": topic, "forwarded": way.forwarded})
