"""Appending a single record to a log topic, and waiting until the log has it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import KafkaError, Message, Producer

from ledgermq.wire.framing.confluent import ConfluentFraming, framed
from ledgermq.wire.framing.headers import Headers
from ledgermq.wire.kafka.access import Reports, denied
from ledgermq.wire.kafka.settings import client_options, kafka_settings

TURN_SECONDS: Final = 0.5
REACH_SECONDS: Final = 0.05


class NotAppendedError(RuntimeError):
    """The log did not take the record; the text says why."""


def numbered_producer(options: Mapping[str, Any]) -> Producer:
    """An idempotent producer that has reached a broker, where one is near.

    One that is handed a record before that asks for its number half a second later.
    """
    producer = Producer({**options, "enable.idempotence": True})
    producer.poll(REACH_SECONDS)
    return producer


def append_record(
    bootstrap: str,
    topic: str,
    partition: int,
    key: str,
    value: bytes,
    headers: Headers | None = None,
    *,
    timeout_seconds: float,
    framing: ConfluentFraming | None = None,
) -> int:
    """The offset of a record that is appended.

    Raises:
        NotAppendedError: Kafka took none in time.
        AuthenticationFailedError, AccessDeniedError: It never will.
    """
    appended: list[int] = []
    problems: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            problems.append(error)
        else:
            appended.append(message.offset() or 0)

    value, headers = framed(framing, value, headers or [])
    kafka = kafka_settings()
    reports = Reports(kafka, bootstrap)
    own = {
        "message.timeout.ms": int(timeout_seconds * 1000),
        "log_level": 0,
        "error_cb": reports,
    }
    producer = numbered_producer(client_options(bootstrap, own, kafka))
    producer.produce(topic, value, key, partition, headers=list(headers), on_delivery=delivered)
    # A moment longer than the record itself, so that Kafka's own reason is heard.
    deadline = time.monotonic() + timeout_seconds + 1
    while producer.flush(TURN_SECONDS) and time.monotonic() < deadline:
        if reports.refused is not None:
            raise reports.refused
    if appended:
        return appended[0]
    if not problems:
        raise NotAppendedError("no answer")
    raise denied(problems[0], topic, "Write", kafka) or NotAppendedError(problems[0].str())
