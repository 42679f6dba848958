"""Appending a single record to a log topic, and waiting until the log has it."""

from __future__ import annotations

from confluent_kafka import KafkaError, Message, Producer

from ledgermq.wire.framing.confluent import ConfluentFraming, framed
from ledgermq.wire.framing.headers import Headers


class NotAppendedError(RuntimeError):
    """The log did not take the record; the text says why."""


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
    """The offset of a record that is appended; NotAppendedError if Kafka took none in time."""
    appended: list[int] = []
    problems: list[str] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            problems.append(error.str())
        else:
            appended.append(message.offset() or 0)

    value, headers = framed(framing, value, headers or [])
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "message.timeout.ms": int(timeout_seconds * 1000),
            "log_level": 0,
        }
    )
    producer.produce(topic, value, key, partition, headers=list(headers), on_delivery=delivered)
    # A moment longer than the record itself, so that Kafka's own reason is heard.
    producer.flush(timeout_seconds + 1)
    if not appended:
        raise NotAppendedError(problems[0] if problems else "no answer")
    return appended[0]
