"""The group that workers share the queue managers in, and who is in it."""

from __future__ import annotations

import logging
import time

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclOperation,
    AdminClient,
    ConfigResource,
    ResourceType,
)

from ledgermq.errors import LedgerMQError
from ledgermq.processor.worker.readiness import is_stopped
from ledgermq.wire.kafka.access import missing_right, raise_if_denied
from ledgermq.wire.kafka.settings import client_options, kafka_settings
from ledgermq.wire.topics.ledger import Ledger
from ledgermq.wire.topics.log_topics import Topics
from ledgermq.wire.topics.reading import LogUnreadableError

log = logging.getLogger(__name__)

# Kafka's own default; what it takes if it does not say.
SHORTEST_SESSION_SECONDS = 6.0
AGAIN_SECONDS = 0.2
SHORTEST_SESSION = "group.min.session.timeout.ms"
# A broker that has just come up answers so for a moment, and without a text.
COORDINATOR_COMES_UP = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)


class SessionTimeoutError(LedgerMQError):
    """Kafka does not take the session time-out that the worker asks for."""

    code = "session-timeout-refused"

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"Kafka does not let this worker into its group with a session time-out of "
            f"{seconds:g} s: give it one between group.min.session.timeout.ms and "
            "group.max.session.timeout.ms of the broker (LEDGERMQ_SESSION_TIMEOUT_SECONDS, at "
            "least three times LEDGERMQ_HEARTBEAT_SECONDS)"
        )


class GroupSharedOtherwiseError(LedgerMQError):
    """Members of the workers' group share out in a way that this release does not know."""

    code = "group-shared-otherwise"

    def __init__(self, topics: Topics) -> None:
        super().__init__(
            f"the members of the group {workers_group(topics)} share out queue managers in another "
            "way than this worker: they are workers of another release, or no workers at all. "
            "Stop them; this one can join once they have left"
        )


def workers_group(topics: Topics) -> str:
    return f"{topics.prefix}.workers"


def check_may_join(bootstrap: str, topics: Topics, timeout_seconds: float) -> None:
    """Raises AccessDeniedError if Kafka does not let us into the group: aiokafka would wait."""
    kafka = kafka_settings()
    if kafka.protocol == "PLAINTEXT":
        return
    group = workers_group(topics)
    admin = AdminClient(client_options(bootstrap, {"log_level": 0}, kafka))
    asked = admin.describe_consumer_groups(
        [group], include_authorized_operations=True, request_timeout=timeout_seconds
    )
    try:
        allowed = asked[group].result().authorized_operations
    except KafkaException as error:
        if error.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
            raise missing_right("group", group, "Read", kafka) from error
        # There is no such group yet, or nobody to ask; that says nothing about rights.
        return
    if allowed and AclOperation.READ not in allowed:
        raise missing_right("group", group, "Read", kafka)


def running_workers(bootstrap: str, topics: Topics, timeout_seconds: float) -> list[str]:
    """The workers that the group counts, by name; one that was killed counts until its time-out.

    Raises:
        LogUnreadableError: Kafka did not answer.
    """
    group = workers_group(topics)
    admin = AdminClient(client_options(bootstrap, {"log_level": 0}))
    limit = time.monotonic() + timeout_seconds
    while True:
        try:
            described = admin.describe_consumer_groups([group], request_timeout=timeout_seconds)
            members = described[group].result().members
            break
        except KafkaException as failed:
            error = failed.args[0]
            if error.code() == KafkaError.GROUP_ID_NOT_FOUND:
                return []
            raise_if_denied(failed, group, "Describe")
            if error.code() not in COORDINATOR_COMES_UP or time.monotonic() >= limit:
                raise LogUnreadableError(
                    f"the group {group} at {bootstrap} cannot be described: "
                    f"{error.name()} {error.str()}"
                ) from failed
        time.sleep(AGAIN_SECONDS)
    return sorted(one.group_instance_id or one.client_id for one in members)


def refuse_if_workers_run(
    ledger: Ledger, refusal: type[LedgerMQError], *, patience_seconds: float = 0.0
) -> None:
    """Raises a refusal if workers run: they take for stored what somebody else takes away.

    Those that are counted may be waited for, as they may have been killed. None is in the way that
    has stopped the queue manager: what it loads when it tries again is what is there then.

    Raises:
        LogUnreadableError: Kafka did not answer.
    """
    limit = time.monotonic() + patience_seconds
    where = (ledger.bootstrap, ledger.topics, ledger.timeout_seconds)
    while workers := running_workers(*where):
        if time.monotonic() >= limit:
            if is_stopped(ledger):
                return
            raise refusal(
                f"workers run at {ledger.bootstrap} ({', '.join(workers)}): stop all workers "
                "first. One that was killed counts until its session times out, in a few seconds"
            )
        time.sleep(AGAIN_SECONDS)


def session_timeout_seconds(bootstrap: str, wanted: float, timeout_seconds: float) -> float:
    """The session time-out that a worker asks for: the one wanted, or the shortest Kafka takes."""
    admin = AdminClient(client_options(bootstrap, {"log_level": 0}))
    shortest, unread = SHORTEST_SESSION_SECONDS, ""
    try:
        node = next(iter(admin.list_topics(timeout=timeout_seconds).brokers))
        of_broker = ConfigResource(ResourceType.BROKER, str(node))
        asked = admin.describe_configs([of_broker], request_timeout=timeout_seconds)
        shortest = int(asked[of_broker].result()[SHORTEST_SESSION].value) / 1000
    except KafkaException as error:
        refused = error.args[0].code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED
        missing = "the right to DescribeConfigs on the cluster is missing"
        unread = missing if refused else error.args[0].str()
    except (KeyError, StopIteration, ValueError) as error:
        unread = repr(error)
    if wanted < shortest:
        log.info(
            "other workers notice after %.3g s that this one is gone, not after %.3g s: the "
            "broker's %s is %s",
            shortest,
            wanted,
            SHORTEST_SESSION,
            f"not known ({unread})" if unread else f"{shortest * 1000:.0f}",
        )
    return max(wanted, shortest)
