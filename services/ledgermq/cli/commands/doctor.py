"""`ledgermq doctor`: looks at everything an installation needs, and says what is wrong with it."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import click
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import ConfigResource, ResourceType  # type: ignore[attr-defined]

from ledgermq.cli.options.once import OnceCommand
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.printing.findings import BAD, GOOD, NOT_LOOKED, WARNING, Finding, print_findings
from ledgermq.cli.printing.output import Output, count_of
from ledgermq.errors import LedgerMQError
from ledgermq.wire.framing.codec import encode_record
from ledgermq.wire.framing.schemas import HEARTBEAT
from ledgermq.wire.kafka.access import raise_if_denied
from ledgermq.wire.kafka.settings import client_options
from ledgermq.wire.topics.log_topics import Topics, made_settings

if TYPE_CHECKING:
    from ledgermq.processor.checkpoints.loading import FoundCheckpoint

CONNECT_SECONDS: Final = 2.0
# A TimeAgreed counts if its writer's clock is within 10 s of the append time (PROTOCOL.md §6).
SKEW_SECONDS_MAX: Final = 10.0
SKEW_SECONDS_NOTABLE: Final = 1.0
LAG_NOTABLE: Final = 10_000
# A clock that is up to 60 s behind log time is waited for (PROTOCOL.md §6).
AHEAD_MAX: Final = timedelta(seconds=60)
# What has been there for longer without being delivered is told, with so many queues by name.
IDLE_NOTABLE: Final = timedelta(minutes=10)
IDLE_SHOWN_MAX: Final = 5
BROKEN_SHOWN_MAX: Final = 3
# Settings of topics that are as the LedgerMQ that made them wanted them. Others are looked at by
# themselves, or for operators to choose.
OF_MAKING: Final = (
    "max.message.bytes",
    "segment.ms",
    "segment.bytes",
    "segment.index.bytes",
    "index.interval.bytes",
)


# Verdict of a check, and what it found or what to do about it.
Result = tuple[str, str]


@click.command(cls=OnceCommand)
@target_options
def doctor(target: Target, output: Output) -> int:
    """Check Java, broker, topics, durability, clocks, checkpoints, the worker, queues and expiry.

    The exit code is 4 if a check failed.
    """
    findings = list(_examine(target))
    return print_findings(
        output, findings, bootstrap=target.bootstrap, queue_manager=target.queue_manager
    )


def _examine(target: Target) -> Iterator[Finding]:
    """The checks in order; what rests on a failed one is skipped."""
    missing = ""
    for check, look in _CHECKS.items():
        verdict, found = (NOT_LOOKED, missing) if missing else _looked(look, target)
        yield Finding(verdict, check, found)
        if verdict == BAD and not missing:
            missing = _RESTS_ON.get(check, "")


def _looked(look: Callable[[Target], Result], target: Target) -> Result:
    try:
        return look(target)
    except KafkaException as error:
        return BAD, error.args[0].str()
    except (LedgerMQError, RuntimeError) as error:
        return BAD, str(error)
    except TimeoutError:
        return BAD, "Kafka gives no answer in time, as where most of its nodes are down"


def _java(_target: Target) -> Result:
    from ledgermq.embedded.java import find_java, java_version

    java = find_java()
    return GOOD, f"version {java_version(java)}, {java}"


def _broker(target: Target) -> Result:
    target.check_broker()
    metadata = target.kafka_admin().list_topics(timeout=min(target.timeout_seconds, 10.0))
    brokers = count_of(len(metadata.brokers), "broker")
    found = f"{brokers} of cluster {metadata.cluster_id} at {target.bootstrap}"
    away = [f"{one.host}:{one.port}" for one in metadata.brokers.values() if _is_away(one)]
    if not away:
        return GOOD, found
    # A cluster most of whose nodes are down goes on telling all of them.
    return WARNING, (
        f"{found}; no connection to {', '.join(away)}: start what is down there; if all run, they "
        "advertise addresses that cannot be reached from here (advertised.listeners)"
    )


def _is_away(broker: Any) -> bool:
    try:
        socket.create_connection((broker.host, broker.port), CONNECT_SECONDS).close()
    except OSError:
        return True
    return False


def _topics(target: Target) -> Result:
    topics = target.topics
    metadata = target.kafka_admin().list_topics(timeout=target.timeout_seconds)
    missing = [name for name in topics.names if name not in metadata.topics]
    if missing:
        with target.reader() as reader:
            # Says so if it is only hidden from us.
            reader.partition_count(missing[0])
        mend = "a worker creates them when it starts, or check --topic-prefix"
        return BAD, f"missing: {', '.join(missing)}; {mend}"
    counts = {name: len(metadata.topics[name].partitions) for name in topics.names}
    operations = counts[topics.operations]
    uneven = [name for name in (topics.questions, topics.checkpoints) if counts[name] != operations]
    if counts[topics.outcomes] % operations or uneven:
        return BAD, f"partition counts do not belong together: {counts}; restore what was changed"
    made = made_settings(topics, len(metadata.topics[topics.operations].partitions[0].replicas))
    outdated: list[str] = []
    for name in topics.names:
        settings = _settings(target, name)
        stamp = settings.get("message.timestamp.type")
        if stamp != "LogAppendTime":
            return BAD, f"{name} stamps {stamp}: set message.timestamp.type=LogAppendTime"
        if keeping := lost_by_keeping(name, topics, settings):
            return BAD, keeping
        if old := outdated_settings(name, made[name], settings, target.bootstrap):
            outdated.append(old)
    lanes = counts[topics.outcomes] // operations
    found = f"room for {operations} queue managers, {lanes} lanes each"
    return (WARNING, "; ".join([found, *outdated])) if outdated else (GOOD, found)


def outdated_settings(
    name: str, made: Mapping[str, str], settings: Mapping[str, str], bootstrap: str
) -> str:
    """What a topic has otherwise than if it were made now, with the command for it; empty: none."""
    wanted = {one: made[one] for one in OF_MAKING if made.get(one, settings[one]) != settings[one]}
    if not wanted:
        return ""
    return (
        f"{name} has {_spelled({one: settings[one] for one in wanted})}, as an older release made "
        f"it: set what new ones have by `kafka-configs.sh --bootstrap-server {bootstrap} --alter "
        f"--topic {name} --add-config {_spelled(wanted)}`"
    )


def _spelled(settings: Mapping[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in settings.items())


def lost_by_keeping(name: str, topics: Topics, settings: dict[str, str]) -> str | None:
    """What Kafka takes away from a topic that is needed, with the remedy; None: nothing."""
    policy = "compact" if name == topics.checkpoints else "delete"
    found = settings.get("cleanup.policy")
    if found != policy:
        return f"{name} has cleanup.policy={found}, and so loses what is needed: set {policy}"
    if name not in (topics.registry, topics.operations):
        return None
    for limit in ("retention.ms", "retention.bytes"):
        if settings.get(limit) != "-1":
            return f"{name} is not kept for ever: {limit} is {settings.get(limit)}, set it to -1"
    return None


def _settings(target: Target, topic: str) -> dict[str, str]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    # The answer comes to nobody if the client that asked is gone.
    admin = target.kafka_admin()
    (future,) = admin.describe_configs([resource]).values()
    try:
        found = future.result(timeout=target.timeout_seconds)
    except KafkaException as error:
        raise_if_denied(error, topic, "DescribeConfigs")
        raise
    return {name: entry.value for name, entry in found.items()}


def _durability(target: Target) -> Result:
    operations = target.topics.operations
    metadata = target.kafka_admin().list_topics(operations, timeout=target.timeout_seconds)
    partitions = metadata.topics[operations].partitions.values()
    replicas = min(len(one.replicas) for one in partitions)
    in_sync = min(len(one.isrs) for one in partitions)
    return durability(replicas, in_sync, _settings(target, operations))


def durability(replicas: int, in_sync: int, settings: dict[str, str]) -> Result:
    """Which durability a confirmed operation has: flushed, replicated, or neither (D13)."""
    needed = int(settings.get("min.insync.replicas", "1"))
    if settings.get("unclean.leader.election.enable") == "true":
        return BAD, "unclean leader election is on: confirmed operations can be lost, turn it off"
    if replicas >= 3 and needed >= 2:
        found = f"replicated: {replicas} copies, a confirmed operation is on at least {needed}"
        if in_sync < needed:
            found += f"; {in_sync} in sync now, so it takes none: start the nodes that are down"
            return BAD, found
        lagging = f"{found}; {in_sync} in sync now"
        return (GOOD, found) if in_sync >= replicas else (WARNING, lagging)
    if settings.get("flush.messages") == "1":
        found = "single broker, flushed: a confirmed operation is on disk, and survives power loss"
        return GOOD, found
    return BAD, (
        f"neither: {replicas} copies, min.insync.replicas={needed}, no flush. A confirmed "
        "operation can be lost: set flush.messages=1 on a single broker, or use 3 replicas with "
        "min.insync.replicas=2"
    )


def _clock(target: Target) -> Result:
    skew = _skew_seconds(target)
    found = f"the broker's clock is {abs(skew):.3f} s {'ahead' if skew > 0 else 'behind'}"
    if abs(skew) > SKEW_SECONDS_MAX:
        return BAD, f"{found}: a worker here could not agree on time; synchronise the clocks"
    return (WARNING if abs(skew) > SKEW_SECONDS_NOTABLE else GOOD), found


def _skew_seconds(target: Target) -> float:
    """How far the broker's clock is ahead, by its stamp on a heartbeat that nobody waits for."""
    stamps: list[Any] = []
    producer = Producer(client_options(target.bootstrap, {"log_level": 0}))
    skews = []
    for _ in range(3):
        before = time.time()
        producer.produce(
            target.topics.questions,
            value=encode_record(HEARTBEAT, {"connection": os.urandom(16)}),
            partition=0,
            on_delivery=lambda problem, record: stamps.append(problem or record.timestamp()[1]),
        )
        producer.flush(target.timeout_seconds)
        after = time.time()
        if not stamps or not isinstance(stamps[-1], int):
            if stamps:
                raise_if_denied(KafkaException(stamps[-1]), target.topics.questions, "Write")
            told = stamps[-1] if stamps else "no answer"
            raise RuntimeError(f"the broker did not take a record: {told}")
        skews.append((after - before, stamps[-1] / 1000 - (before + after) / 2))
    return min(skews)[1]


def _queue_manager(target: Target) -> Result:
    claim = target.claim()
    return GOOD, f"{claim.queue_manager} is partition {claim.partition}"


def _checkpoints(target: Target) -> Result:
    from ledgermq.processor.checkpoints.digests import CHAIN_START
    from ledgermq.processor.checkpoints.restoring import find_checkpoints
    from ledgermq.processor.lanes.anchors import anchors_on_lanes, check_ahead

    ledger = target.ledger_of(target.claim())
    found = find_checkpoints(ledger, loads=False)
    if any(one.problem for one in found):
        # A worker may have taken one away, and Kafka its records, while they were read.
        found = find_checkpoints(ledger, loads=False)
    with target.reader() as reader:
        # No worker starts on a log of which they tell more, or otherwise.
        anchors = anchors_on_lanes(reader, ledger)
        begins, _ = reader.ends(*ledger.operations)
        usable = [(one.position, one.chain) for one in found if not one.problem]
        position, chain = max(usable, default=(-1, CHAIN_START))
        if begins <= position + 1:
            check_ahead(reader, ledger, anchors, position, chain)
    return checkpoints(found, begins, target.named)


def checkpoints(
    found: Sequence[FoundCheckpoint], begins: int, named: Callable[[int], str]
) -> Result:
    """Whether and from where the next worker can start; the log `begins` at a position (H13, H14).

    A worker takes the newest checkpoint that is whole, and refuses one that is whole and of another
    log, or of another release.
    """
    usable = max((one.position for one in found if not one.problem), default=-1)
    broken = [one for one in reversed(found) if one.problem]
    starts = f"from that at {named(usable)}" if usable >= 0 else "from the log's beginning"
    shown = broken[:BROKEN_SHOWN_MAX]
    told = "; ".join(f"that at {named(one.position)} is unusable: {one.problem}" for one in shown)
    told += f"; {len(broken) - len(shown)} more as well" if len(broken) > len(shown) else ""
    if any(one.of_another_release and one.position > usable for one in broken):
        return BAD, f"{told}. No worker of this release starts: start that one, or a later one"
    if usable < 0 and begins > 0 and any(one.lacks_outcomes for one in broken):
        return WARNING, f"{told}. The log is trimmed: the next worker starts without these outcomes"
    if usable < 0 and begins > 0:
        return BAD, (
            f"{told or 'there is none'}; and the log begins at {named(begins)}, so no worker can "
            "start: restore the log or the checkpoints from a backup"
        )
    if any(one.foreign and one.position > usable for one in broken):
        return BAD, f"{told}. No worker starts on one of another log: `ledgermq restore` mends that"
    if broken:
        return WARNING, (
            f"{told}. The next worker starts {starts}; to have a whole one, stop all workers and "
            "call `ledgermq restore`"
        )
    if not found:
        return GOOD, f"there is none yet: the next worker starts {starts}"
    count = count_of(len(found), "checkpoint")
    return GOOD, f"{count}, all whole; the newest is at {named(usable)}"


def _worker(target: Target) -> Result:
    with target.connect() as connection:
        status = connection.admin.queue_manager_status()
    claim = target.claim()
    with target.reader() as reader:
        _, end = reader.ends(target.topics.operations, claim.partition)
    behind = max(0, end - 1 - status.position)
    found = f"{status.worker} answers at {target.named(status.position)}, protocol version "
    found += str(status.version)
    if behind > LAG_NOTABLE:
        return WARNING, f"{found}; it is {behind} entries behind the log"
    return GOOD, found


def _log_time(target: Target) -> Result:
    with target.connect() as connection:
        status = connection.admin.queue_manager_status()
    skew = timedelta(seconds=_skew_seconds(target))
    moving = status.time_reference is not None
    return log_time(status.time, datetime.now(UTC) + skew, moving=moving)


def log_time(time: datetime | None, clock: datetime, *, moving: bool) -> Result:
    """Whether log time is ahead of the broker's clock, and if so what that means (H6)."""
    if time is None:
        return GOOD, "nothing is on the log yet"
    ahead = time - clock
    if ahead <= AHEAD_MAX and not moving:
        return GOOD, "not ahead of the broker's clock"
    # Whoever asks wants to know how long, not how many microseconds.
    behind = timedelta(seconds=max(0, round(ahead.total_seconds())))
    found = f"{behind} ahead of the broker's clock, which was set back: "
    if moving:
        found += f"it goes on at 7/8 of the clock's pace until that has caught up, in {8 * behind}"
        return WARNING, found + "; what waits for a time waits a seventh longer until then"
    return WARNING, found + (
        "it stands still until a worker whose clock is the broker's has agreed on the time, which "
        "it does when anything waits for a time; nothing expires and no dead client is found lost "
        "before"
    )


def _queues(target: Target) -> Result:
    with target.connect() as connection:
        now = connection.admin.queue_manager_status().time
        queues = connection.admin.list_queues()
    return waiting_queues({one.name: one.first_enqueued_at for one in queues if one.current}, now)


def waiting_queues(first_at: dict[str, datetime | None], now: datetime | None) -> Result:
    """Which queues have kept for long what could be delivered, by when their first message came."""
    idle = [
        name
        for name, at in first_at.items()
        if at is not None and now is not None and now - at > IDLE_NOTABLE
    ]
    if not idle:
        return GOOD, "no queue keeps what could be delivered for long"
    named = ", ".join(idle[:IDLE_SHOWN_MAX])
    more = f" and {len(idle) - IDLE_SHOWN_MAX} more" if len(idle) > IDLE_SHOWN_MAX else ""
    found = f"messages that could be delivered wait in {named}{more}: "
    return WARNING, found + f"`ledgermq queue why {idle[0]}` says why"


def _expiry(target: Target) -> Result:
    with target.connect() as connection:
        found = {f"queue:{one.name}": one.settings for one in connection.admin.list_queues()}
        found |= {f"topic:{one.name}": one.settings for one in connection.admin.topics()}
    return expiry_circle({name: one.get("expiry_destination") or "" for name, one in found.items()})


def expiry_circle(expiry_destinations: dict[str, str]) -> Result:
    """Whether messages multiply: by expiry destinations one comes back to a topic that it left."""
    for topic in expiry_destinations:
        if not topic.startswith("topic:"):
            continue
        path = [topic]
        while (following := expiry_destinations.get(path[-1], "")) and following not in path:
            path.append(following)
        if following == topic:
            return WARNING, (
                f"messages that expire go round in {' -> '.join([*path, topic])}, and become one "
                "for each subscription whenever they come by a topic; give one of these another "
                "expiry destination, or none"
            )
    return GOOD, "no message that expires comes back to a topic"


def _unrouted(target: Target) -> Result:
    with target.connect() as connection:
        moving = [one for one in connection.admin.topics() if one.settings["moves_unrouted"]]
    return unrouted_messages(
        {
            one.name: one.settings["error_destination"] or one.inherited.get("error_destination")
            for one in moving
        }
    )


def unrouted_messages(error_destinations: Mapping[str, str | None]) -> Result:
    """Whether topics that move what no subscription wants have somewhere to move it to."""
    nowhere = sorted(name for name, destination in error_destinations.items() if not destination)
    if not nowhere:
        return GOOD, "no topic moves what no subscription wants to nowhere"
    return WARNING, (
        f"topic {nowhere[0]} moves what no subscription wants, but has no error destination, so "
        "that it is dropped: give it one with `ledgermq topic alter "
        f"{nowhere[0]} --error-destination queue:NAME`"
    )


_CHECKS: Final[dict[str, Callable[[Target], Result]]] = {
    "Java": _java,
    "broker": _broker,
    "topics": _topics,
    "durability": _durability,
    "clock": _clock,
    "queue manager": _queue_manager,
    "checkpoints": _checkpoints,
    "worker": _worker,
    "log time": _log_time,
    "queues": _queues,
    "expiry": _expiry,
    "unrouted": _unrouted,
}
# What all checks after these need, in words for when it is not there.
_RESTS_ON: Final = {
    "broker": "the broker does not answer",
    "topics": "the log topics are not right, or cannot be looked at",
    "worker": "the worker does not answer",
}
