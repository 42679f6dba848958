"""A topic of Kafka as the goal of transfers: each is a transaction, which notes its number too.

The number is kept where Kafka keeps positions of a consumer group, in the same transaction as the
records: either both are there or none, and whoever begins ends what another one left open.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

from ledgermq.client.messages.message import Message
from ledgermq.errors import (
    AccessDeniedError,
    BrokerUnavailableError,
    LedgerMQError,
    MessageTooLargeError,
)
from ledgermq.protocol.outcomes import DeliveredMessage
from ledgermq.relay.records import BINARY_KEY, HEADERS, KEY, Headers
from ledgermq.relay.running import Tell
from ledgermq.wire.content.bodies import StreamBody
from ledgermq.wire.content.objects import ObjectBody
from ledgermq.wire.kafka.access import check_rights, denied
from ledgermq.wire.kafka.rights import BRIDGES
from ledgermq.wire.kafka.settings import CONNECTION_LIMITS, client_options
from ledgermq.wire.topics.reading import reader_settings

RECORD_BYTES_MAX: Final = 16 * 1024 * 1024
# What is left is more than a message has for key and headers.
VALUE_BYTES_MAX: Final = RECORD_BYTES_MAX - 1024 * 1024
HEADER_PREFIX: Final = "ledgermq-"
# How much later than its time-out a call to Kafka's library may end.
LATE_SECONDS: Final = 5.0


class RecordRefusedError(LedgerMQError):
    """Kafka does not take a record: it is too large, or may not be written there."""

    code = "record-refused"


class PositionLostError(LedgerMQError):
    """Kafka does not know any longer which transfers were written."""

    code = "position-lost"


class TopicGoal:
    """For one process at a time: an earlier one is fenced off when another begins.

    `assume_untaken`: where Kafka knows nothing of the transfers, nothing of what waits was written.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        source: str,
        timeout_seconds: float,
        *,
        assume_untaken: bool = False,
        tell: Tell = print,
    ) -> None:
        self._assume_untaken = assume_untaken
        self._topic = topic
        self._source = source
        self._timeout_seconds = timeout_seconds
        self._name = name = BRIDGES + hashlib.sha256(f"{source} {topic}".encode()).hexdigest()[:32]
        # What the number of a transfer is noted at.
        self._place = TopicPartition(topic, 0)
        self._failures: list[KafkaError] = []
        self._producer = Producer(
            client_options(
                bootstrap,
                {
                    "transactional.id": name,
                    "message.max.bytes": RECORD_BYTES_MAX,
                    **CONNECTION_LIMITS,
                    "log_level": 0,
                },
            )
        )
        self._notes = Consumer(
            reader_settings(
                bootstrap, name, {"group.id": name, "isolation.level": "read_committed"}
            )
        )
        try:
            self._taken = self._begin(bootstrap, tell)
        except BaseException:
            self._notes.close()
            raise

    def _begin(self, bootstrap: str, tell: Tell) -> int | None:
        """Ends what an earlier goal left open and fences it off; the last transfer that it made."""
        try:
            self._check_topic(bootstrap)
            self._finish_open(bootstrap, tell)
            self._producer.init_transactions(self._timeout_seconds)
            return self._noted()
        except KafkaException as error:
            refused = denied(error.args[0], self._name, "Write") or self._group_refused()
            raise refused or BrokerUnavailableError(
                f"topic {self._topic} cannot be written at {bootstrap}: {error.args[0].str()}; "
                "run it again when Kafka answers"
            ) from error

    def _check_topic(self, bootstrap: str) -> None:
        found = self._producer.list_topics(self._topic, timeout=self._timeout_seconds)
        error = found.topics[self._topic].error
        if error is not None:
            raise denied(error, self._topic, "Write") or RecordRefusedError(
                f"there is no topic {self._topic} of Kafka to write to: create it first"
            )
        # In a transaction the want of a right would show as an invalid state, which may pass.
        check_rights(bootstrap, self._topic, ("Read", "Write"), self._timeout_seconds)

    def _finish_open(self, bootstrap: str, tell: Tell) -> None:
        """Before the producer begins anew: then Kafka forgets how the last transaction ended."""
        try:
            from ledgermq.relay.transaction_markers import finish_transaction, remedy
        except ModuleNotFoundError:
            # What it needs comes with workers.
            return

        def check_position() -> None:
            try:
                self._noted()
            except KafkaException as error:
                raise self._group_refused() or BrokerUnavailableError(
                    f"Kafka does not tell the position of group {self._name}; if it stays so, a "
                    f"transaction was left open when a broker was killed: {remedy()}"
                ) from error

        done = finish_transaction(
            bootstrap,
            self._name,
            self._topic,
            self._timeout_seconds,
            check_position=check_position,
        )
        if done:
            tell(done)

    def _group_refused(self) -> AccessDeniedError | None:
        """What librdkafka would try for ever, and reports beside the time-out of its answer."""
        while (report := self._notes.poll(0.1)) is not None:
            error = report.error()
            refused = None if error is None else denied(error, self._name, "Read")
            if refused is not None:
                return refused
        return None

    def _noted(self) -> int | None:
        (found,) = self._notes.committed([self._place], self._timeout_seconds)
        if found.error is not None:
            raise KafkaException(found.error)
        return found.offset - 1 if found.offset >= 0 else None

    @property
    def taken(self) -> int | None:
        """The last transfer whose records are on the topic."""
        return self._taken

    @staticmethod
    def check(message: DeliveredMessage) -> None:
        """See whether a record can be made of a message.

        Raises:
            MessageUndecodableError: It cannot be read.
            MessageTooLargeError: Its body is too large, as JSON.
        """
        _, value, _ = record_of(message, "")
        if value is not None and len(value) > VALUE_BYTES_MAX:
            raise MessageTooLargeError(
                f"its body would take {len(value):,} bytes in a record, more than "
                f"{VALUE_BYTES_MAX:,}"
            )

    def take(self, number: int, messages: Sequence[DeliveredMessage]) -> None:
        """Writes the records of a transfer in one transaction.

        Raises:
            MessageUndecodableError: A message cannot be read.
            RecordRefusedError: Kafka refuses one for good; nothing of the transfer is there.
            AccessDeniedError: We may not write there.
            BrokerUnavailableError: It is not known whether they are there; the next goal knows.
            PositionLostError: Kafka no longer knows whether they are there.
        """
        if self._taken is None and number and not self._assume_untaken:
            raise PositionLostError(
                f"transfers before {number} were made, and Kafka has no position of group "
                f"{self._name}: it keeps none for long if nobody writes, and none of a topic that "
                "was deleted. See whether topic "
                f"{self._topic} has records whose header ledgermq-source ends with /{number}/0; if "
                "not, run it with --assume-untaken"
            )
        # Before the transaction: one that cannot be read would leave it open.
        records = [
            record_of(raw, f"{self._source}/{number}/{at}") for at, raw in enumerate(messages)
        ]
        producer = self._producer
        try:
            producer.begin_transaction()
            self._write(records)
            self._note(number)
            producer.commit_transaction(self._timeout_seconds)
        except KafkaException as error:
            raise self._refused(error.args[0], number, messages) from error
        self._taken = number

    def _write(self, records: Sequence[tuple[bytes | None, bytes | None, Headers]]) -> None:
        """Writes records; KafkaException: one was not taken, and the transaction is ended."""
        self._failures.clear()
        try:
            for record in records:
                self._produce(*record)
            self._producer.flush(self._timeout_seconds)
            if self._failures:
                raise KafkaException(self._failures[0])
        except KafkaException:
            with suppress(KafkaException):
                self._producer.abort_transaction(self._timeout_seconds)
            raise

    def _note(self, number: int) -> None:
        """Notes the number of a transfer; KafkaException: Kafka did not take it in time.

        librdkafka may wait without end for a coordinator that went away, whatever its time-out
        (confluentinc/librdkafka, issue 5456): it is left to a thread that nobody waits for. The
        next goal fences its producer off.
        """
        note = TopicPartition(self._topic, 0, number + 1)
        done: Future[None] = Future()

        def send() -> None:
            try:
                self._producer.send_offsets_to_transaction(
                    [note], self._notes.consumer_group_metadata(), self._timeout_seconds
                )
            except BaseException as error:
                done.set_exception(error)
            else:
                done.set_result(None)

        threading.Thread(target=send, daemon=True).start()
        try:
            done.result(self._timeout_seconds + LATE_SECONDS)
        except TimeoutError as error:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from error

    def _produce(self, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        told: list[tuple[str, Any]] = list(headers)
        while True:
            try:
                self._producer.produce(
                    self._topic, value, key, headers=told, on_delivery=self._delivered
                )
            except BufferError:
                self._producer.poll(0.1)
            else:
                self._producer.poll(0)
                return

    def _delivered(self, error: KafkaError | None, _: object) -> None:
        if error is not None:
            self._failures.append(error)

    def _refused(
        self, error: KafkaError, number: int, messages: Sequence[DeliveredMessage]
    ) -> LedgerMQError:
        refused = denied(error, self._topic, "Write")
        if refused is not None:
            return refused
        lasting = (
            KafkaError.MSG_SIZE_TOO_LARGE,
            KafkaError.UNKNOWN_TOPIC_OR_PART,
            KafkaError._UNKNOWN_TOPIC,
            KafkaError.INVALID_RECORD,
        )
        kind = RecordRefusedError if error.code() in lasting else BrokerUnavailableError
        text = f"transfer {number} was not written to topic {self._topic} of Kafka: {error.str()}"
        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            largest = max(messages, key=lambda one: len(one["content"]))
            text += (
                f"; its largest message is {largest['message_id'].hex()}, of "
                f"{len(largest['content']):,} bytes: raise the topic's max.message.bytes"
            )
        elif error.code() == KafkaError.INVALID_RECORD:
            text += "; a topic that is compacted takes no record without a key"
        return kind(text)

    def __enter__(self) -> TopicGoal:
        return self

    def __exit__(self, *_error: object) -> None:
        self._notes.close()


def record_of(raw: DeliveredMessage, source: str) -> tuple[bytes | None, bytes | None, Headers]:
    """Key, value and headers of a message: a record that came from Kafka has its key again."""
    message = Message(raw, "")
    properties = dict(message.properties)
    key = _key(properties, message)
    headers = _headers(properties.pop(HEADERS, None))
    headers += [(name, _text(value)) for name, value in properties.items()]
    told = {
        "source": source,
        "message-id": message.message_id,
        "body": message.kind,
        "correlation-id": message.correlation_id,
        "type": message.type,
        "reply-to": message.reply_to,
    }
    headers += [(HEADER_PREFIX + name, _text(one)) for name, one in told.items() if one is not None]
    return key, _value(message), headers


def _headers(told: Any) -> Headers:
    """The headers of a record that came from Kafka, where they stand in one property."""
    if told is None:
        return []
    try:
        found = [
            (str(name), None if value is None else base64.b64decode(value, validate=True))
            for name, value in json.loads(told)
        ]
        for name, _ in found:
            # Kafka's library ends the process at a name that is no UTF-8.
            name.encode()
    except (ValueError, TypeError, RecursionError):
        return [(HEADERS, _text(told))]
    return found


def _key(properties: dict[str, Any], message: Message) -> bytes | None:
    binary, text = properties.pop(BINARY_KEY, None), properties.pop(KEY, None)
    if isinstance(binary, str):
        try:
            return base64.b64decode(binary, validate=True)
        except ValueError:
            return binary.encode()
    if text is not None:
        return _text(text)
    return message.group_id


def _text(value: Any) -> bytes:
    if isinstance(value, bool):
        return b"true" if value else b"false"
    return str(value).encode()


def _value(message: Message) -> bytes | None:
    """Bytes and text as they are; maps, streams and objects as JSON; no body: none."""
    body = message.unloaded_body
    if body is None or isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, ObjectBody):
        return body.data
    values: Any = list(body) if isinstance(body, StreamBody) else dict(body)
    return ObjectBody(values).data
