"""What Kafka refuses for good, told from trouble that passes: who we are, and what we may do.

librdkafka tries again for ever, whatever the broker said, and a call waits for its whole time-out.
So whoever asks Kafka for something lets `ask` do it: it asks in short turns, and between them hears
what was reported meanwhile.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient  # type: ignore[attr-defined]

from ledgermq.errors import AccessDeniedError, AuthenticationFailedError, LedgerMQError
from ledgermq.wire.kafka.certificates import why_not_trusted
from ledgermq.wire.kafka.settings import KafkaSettings, client_options, kafka_settings

T = TypeVar("T")

TURN_FIRST_SECONDS: Final = 0.5
# A poll that waits for nothing brings one report.
REPORTS_MAX: Final = 50
# A broker that has just come up, or whose partition just moved, answers so for a moment.
COMING_UP: Final = (
    KafkaError._TRANSPORT,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.OFFSET_NOT_AVAILABLE,
)
PASSING: Final = (*COMING_UP, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT)
NOT_LET_IN: Final = (
    KafkaError._AUTHENTICATION,
    KafkaError._SSL,
    KafkaError.SASL_AUTHENTICATION_FAILED,
)
# The broker's own word about our certificate comes as trouble of the connection.
ALERT: Final = "SSL alert"
# Where Kafka's library was, as its reports end, when trouble came between connecting and work.
SHAKING_HANDS: Final = re.compile(r"in state (?!CONNECT\)|UP\))")
# Which right is missing where Kafka refuses with these, and of what.
MISSING: Final = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "group",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "cluster",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactional id",
}


class Reports:
    """What a client of librdkafka reports: its `error_cb`, called when the client is polled."""

    def __init__(self, kafka: KafkaSettings, bootstrap: str) -> None:
        self.kafka = kafka
        self._bootstrap = bootstrap
        self.last = ""
        # What no further try would change.
        self.refused: LedgerMQError | None = None

    def __call__(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self.last = error.str()
        if self.refused is not None:
            # Said again with each try, and why a certificate is not trusted takes a try of its own.
            return
        if error.code() in NOT_LET_IN or ALERT in error.str():
            why = why_not_trusted(error.str(), self.kafka.librdkafka)
            told = f"{why}; {error.str()}" if why else error.str()
            self.refused = AuthenticationFailedError(
                f"Kafka at {self._bootstrap} and {self.kafka.user} do not trust each other "
                f"({told}): check user, password, mechanism and certificates"
            )
        elif error.code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED:
            # An idempotent producer gets its number if there is any topic that it may write to.
            self.refused = missing_right("any", "topic", "Write", self.kafka)


def ask(
    question: Callable[[float], T],
    poll: Callable[[float], Any],
    reports: Reports,
    timeout_seconds: float,
) -> T:
    """The answer to a question, which is given how many seconds it may take.

    Raises:
        AuthenticationFailedError: We are not let in.
        AccessDeniedError: We may not write anywhere.
        KafkaException: What was raised in the last turn, for another reason.
    """
    # What was refused before may be allowed by now.
    reports.refused = None
    deadline = time.monotonic() + timeout_seconds
    turn = TURN_FIRST_SECONDS
    while True:
        left = deadline - time.monotonic()
        try:
            return question(min(max(left, 0.0), turn))
        except KafkaException as error:
            for _ in range(REPORTS_MAX):
                poll(0)
            if reports.refused is not None:
                raise reports.refused from error
            if error.args[0].code() not in PASSING or left <= turn:
                raise
            turn *= 2


def metadata_of(client: Any, reports: Reports, timeout_seconds: float) -> Any:
    """All that a client may see of Kafka's topics and brokers; raises what `ask` does."""
    return ask(
        lambda seconds: client.list_topics(timeout=seconds), client.poll, reports, timeout_seconds
    )


def partition_count_of(
    consumer: Any, topic: str, timeout_seconds: float, kafka: KafkaSettings | None = None
) -> int:
    """How many partitions a topic has, 0 if there is none; nothing is asked of all the others.

    For consumers only: asked by others Kafka may create the topic.

    Raises:
        AccessDeniedError: Kafka does not let us know.
        KafkaException: It did not answer.
    """
    found = consumer.list_topics(topic, timeout=timeout_seconds).topics.get(topic)
    if found is None:
        return 0
    if found.error is not None and (refused := denied(found.error, topic, "Describe", kafka)):
        raise refused
    return len(found.partitions)


def denied(
    error: KafkaError, what: str, operation: str, kafka: KafkaSettings | None = None
) -> AccessDeniedError | None:
    """The error to raise if Kafka refuses this for want of a right; else None.

    Args:
        error: What Kafka said.
        what: Name of the topic or group.
        operation: What was tried, as Kafka calls the right: Read, Write, Describe.
        kafka: Whose settings; else those of the environment.
    """
    kind = MISSING.get(error.code())
    return None if kind is None else missing_right(kind, what, operation, kafka)


def check_rights(
    bootstrap: str, topic: str, operations: Iterable[str], timeout_seconds: float
) -> None:
    """AccessDeniedError if we may know of a topic, and may not do all of some operations there.

    Who tries them is told so late or badly.
    """
    admin = AdminClient(client_options(bootstrap, {"log_level": 0}))
    asked = admin.describe_topics(
        TopicCollection([topic]),
        include_authorized_operations=True,
        request_timeout=timeout_seconds,
    )
    allowed = asked[topic].result().authorized_operations
    for operation in operations:
        if allowed and AclOperation[operation.upper()] not in allowed:
            raise missing_right("topic", topic, operation)


def missing_right(
    kind: str, what: str, operation: str, kafka: KafkaSettings | None = None
) -> AccessDeniedError:
    """The error for a right that is missing: which, of whom, and how to find out what is needed."""
    user = (kafka_settings() if kafka is None else kafka).user
    return AccessDeniedError(
        f"Kafka does not let {user} {operation} on {kind} {what}: an administrator of Kafka must "
        "give that right; `ledgermq acl` prints all that are needed"
    )


def text_of(error: KafkaException, reports: Reports) -> str:
    """Why Kafka did not answer: what was reported last says more than that it did not."""
    found: KafkaError = error.args[0]
    if found.code() not in PASSING:
        return found.str()
    protocol = f"security.protocol {reports.kafka.protocol}"
    if SHAKING_HANDS.search(reports.last):
        return f"{reports.last}; if it stays so, {protocol} may not be that of the listener"
    # Where a listener expects TLS or users, and we give none, librdkafka tells its log alone.
    return reports.last or (
        f"{found.str()}: nothing answered by {protocol}, which must be that of the listener"
    )


def raise_if_denied(error: KafkaException, what: str, operation: str) -> None:
    """Raises AccessDeniedError where Kafka refused for want of a right."""
    refused = denied(error.args[0], what, operation)
    if refused is not None:
        raise refused from error
