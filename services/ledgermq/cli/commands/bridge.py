"""`ledgermq bridge`: from a topic of Kafka to a queue or topic here, or from a queue to one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ledgermq.cli.options.destinations import destination_named, queue_from
from ledgermq.cli.options.once import OnceCommand
from ledgermq.cli.options.stopping import stopped_by_signals
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.printing.output import Output, count_of

if TYPE_CHECKING:
    from threading import Event


@click.command(cls=OnceCommand)
@click.option("--from-topic", metavar="TOPIC", help="Topic of Kafka to take from.")
@click.option("--to", metavar="DESTINATION", help="Queue or topic:NAME to put to.")
@click.option("--from", "from_", metavar="QUEUE", help="Queue to take from.")
@click.option("--to-topic", metavar="TOPIC", help="Topic of Kafka to write to.")
@click.option(
    "--kafka",
    metavar="HOST:PORT",
    help="Kafka that has the topic.  [default: that of the queue manager]",
)
@click.option(
    "--body",
    type=click.Choice(("bytes", "text", "json", "avro")),
    default="bytes",
    show_default=True,
    help="What values of records are; bytes carry anything as it is, avro is in Confluent framing.",
)
@click.option(
    "--registry",
    metavar="URL",
    envvar="LEDGERMQ_SCHEMA_REGISTRY",
    default="",
    show_envvar=True,
    help="Schema registry that has the schemas of --body avro.",
)
@click.option("--bad", metavar="DESTINATION", help="Where records go that are no message.")
@click.option(
    "--skip-lost", is_flag=True, help="Go on behind records that Kafka deleted too early."
)
@click.option("--until-end", is_flag=True, help="Stop when there is nothing more to take.")
@click.option(
    "--assume-untaken",
    is_flag=True,
    help="If Kafka has forgotten what was written: nothing of what waits.",
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
    registry: str,
    **more: Any,
) -> None:
    """Take messages from a topic of Kafka or to one, each exactly once.

    It runs until it is stopped, and goes on where it was when the same is run again. Headers become
    properties, and properties headers; key, timestamp and place of a record are properties.
    """
    given = (bool(from_topic), bool(to), bool(from_), bool(to_topic))
    if given not in ((True, True, False, False), (False, False, True, True)):
        raise click.UsageError("give --from-topic and --to, or --from and --to-topic")
    if more["body"] == "avro" and not registry:
        raise click.UsageError("--body avro needs a schema registry: give --registry")
    target.check_broker()
    with stopped_by_signals(output) as stopping:
        if from_topic and to:
            _take_in(
                target,
                output,
                kafka or target.bootstrap,
                from_topic,
                to,
                registry,
                stopping,
                **more,
            )
        elif from_ and to_topic:
            _take_out(target, output, kafka or target.bootstrap, from_, to_topic, stopping, **more)


def _take_in(
    target: Target,
    output: Output,
    kafka: str,
    topic: str,
    to: str,
    registry: str,
    stopping: Event,
    *,
    body: str,
    bad: str | None,
    skip_lost: bool,
    until_end: bool,
    assume_untaken: bool,
) -> None:
    from ledgermq.relay.bridge_in import BridgeIn

    if assume_untaken:
        raise click.UsageError("--assume-untaken is for --to-topic")
    way = BridgeIn(
        connect=target.connect,
        bootstrap=kafka,
        topic=topic,
        target=destination_named(to),
        body=body,
        schema_registry=registry,
        bad=None if bad is None else destination_named(bad),
        skip_lost=skip_lost,
        until_end=until_end,
        timeout_seconds=target.timeout_seconds,
        tell=output.remark,
        stopping=stopping,
    )
    way.run()
    aside = f", {count_of(way.put_bad, 'record')} to {way.bad}" if way.put_bad else ""
    text = f"{count_of(way.put, 'message')} put to {way.target}{aside}"
    output.done(text, {"to": way.target, "put": way.put, "bad": way.put_bad})


def _take_out(
    target: Target,
    output: Output,
    kafka: str,
    from_: str,
    topic: str,
    stopping: Event,
    *,
    body: str,
    bad: str | None,
    skip_lost: bool,
    until_end: bool,
    assume_untaken: bool,
) -> None:
    from ledgermq.relay.definitions import bridge_transfers, source_name
    from ledgermq.relay.relaying import Relaying
    from ledgermq.relay.topic_goal import TopicGoal

    if body != "bytes" or bad or skip_lost:
        raise click.UsageError("--body, --bad and --skip-lost are for --from-topic")
    queue = queue_from(from_, why="take from a queue")
    with target.connect() as connection:
        transfers = bridge_transfers(connection, queue, topic)
        source = source_name(
            connection, transfers, target.bootstrap, target.topics, target.timeout_seconds
        )
    way = Relaying(
        connect=target.connect,
        queue=queue,
        transfers=transfers,
        goal=lambda _: TopicGoal(
            kafka, topic, source, target.timeout_seconds, assume_untaken=assume_untaken
        ),
        until_end=until_end,
        tell=output.remark,
        stopping=stopping,
    )
    way.run()
    text = f"{count_of(way.forwarded, 'message')} written to topic {topic} of Kafka"
    output.done(text, {"to_topic": topic, "forwarded": way.forwarded})
