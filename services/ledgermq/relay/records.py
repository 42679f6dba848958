"""Records of a topic of Kafka as messages: nothing of a record is lost, or it is none.

Headers whose names and values are those of text properties become these; where one cannot, all of
the record's stand in one property, as JSON. Key, timestamp and place are properties.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from confluent_kafka import Message as Record

from ledgermq.client.messages.property_access import check_property_names
from ledgermq.client.sansio.sizes import MESSAGE_BYTES_MAX, encoded_bytes
from ledgermq.client.sending.making import Sending, make_message
from ledgermq.errors import LedgerMQError, MessageFormatError, MessageTooLargeError
from ledgermq.protocol.operations import PutMessage
from ledgermq.wire.content.content import NAME_CHARACTERS_MAX, Body
from ledgermq.wire.content.objects import LONG_MAX, LONG_MIN, ObjectBody, strict_json
from ledgermq.wire.framing.confluent import readable_headers

Headers = list[tuple[str, bytes | None]]
BodyOf = Callable[[bytes | None], Body]
PREFIX: Final = "LedgerMQ_Kafka"
# Properties whose names begin so are set by clients and by LedgerMQ itself.
RESERVED: Final = ("JMS", "LedgerMQ_")
TOPIC, PARTITION, OFFSET = f"{PREFIX}Topic", f"{PREFIX}Partition", f"{PREFIX}Offset"
# What Kafka says of a record whose writer gave none.
NO_TIMESTAMP: Final = -1
TIMESTAMP, HEADERS = f"{PREFIX}Timestamp", f"{PREFIX}Headers"
# A key that is no text stands in the second, as base64.
KEY, BINARY_KEY = f"{PREFIX}Key", f"{PREFIX}KeyBase64"
# What a map holds.
FLAT: Final = (bool, int, float, str, bytes, type(None))
# What a Put says of its source.
SOURCE_BYTES_MAX: Final = 4096


class RecordInvalidError(LedgerMQError):
    """A record that cannot become a message as was asked."""

    code = "record-invalid"


def place_of(record: Record) -> str:
    """Where a record stands, for people."""
    return f"{record.topic()}-{record.partition()}@{record.offset()}"


def headers_of(record: Record) -> Headers:
    """RecordInvalidError for a name that is no text."""
    given: Any = readable_headers(record)
    if given is None:
        raise RecordInvalidError(f"a header of record {place_of(record)} has no name")
    return [(name, _bytes(value)) for name, value in given]


def message_of(record: Record, body_of: BodyOf, target: str) -> PutMessage:
    """A record as a message with the body that its value becomes; RecordInvalidError: it is none.

    Raises:
        SchemaRegistryUnavailableError: A body takes a registry that does not answer.
    """
    try:
        return _made(target, body_of(record.value()), properties_of(record))
    except (ValueError, RecursionError, MessageFormatError, MessageTooLargeError) as error:
        raise RecordInvalidError(f"record {place_of(record)} is no message: {error}") from error


def bad_message_of(record: Record, reason: str, target: str) -> PutMessage:
    """A record that is no message, whole, as an object; of what is too large, what tells it."""
    try:
        headers = [list(one) for one in headers_of(record)]
    except RecordInvalidError:
        headers = []
    told: dict[str, Any] = {
        "topic": record.topic(),
        "partition": record.partition(),
        "offset": record.offset(),
        "timestamp": record.timestamp()[1],
        "reason": reason,
        "key": record.key(),
        "headers": headers,
        "value": record.value(),
    }
    properties = {TOPIC: record.topic(), PARTITION: record.partition(), OFFSET: record.offset()}
    try:
        return _made(target, ObjectBody(told), properties)
    except MessageTooLargeError:
        parts = ("key", "headers", "value")
        told |= {name: _digest(told[name]) for name in parts}
        return _made(target, ObjectBody(told), properties)


def properties_of(record: Record) -> dict[str, Any]:
    """Headers, key, timestamp and place of a record."""
    given = headers_of(record)
    names = [name for name, _ in given]
    texts = {name: text for name, value in given if (text := _text(value)) is not None}
    properties: dict[str, Any] = texts
    reserved = any(name.startswith(RESERVED) for name in names)
    if len(texts) < len(names) or reserved or not _are_names(texts):
        pairs = [[name, None if value is None else _base64(value)] for name, value in given]
        properties = {HEADERS: json.dumps(pairs)}
    properties |= {TOPIC: record.topic(), PARTITION: record.partition(), OFFSET: record.offset()}
    key, (kind, timestamp) = _bytes(record.key()), record.timestamp()
    if kind and timestamp != NO_TIMESTAMP:
        properties[TIMESTAMP] = timestamp
    if key is not None:
        text = _text(key)
        properties |= {BINARY_KEY: _base64(key)} if text is None else {KEY: text}
    return properties


def _are_names(properties: Mapping[str, str]) -> bool:
    try:
        check_property_names(properties)
    except MessageFormatError:
        return False
    return True


def _made(target: str, body: Body, properties: Mapping[str, Any]) -> PutMessage:
    message = make_message(target, body, Sending(properties=properties))
    size_bytes = encoded_bytes(message)
    if size_bytes > MESSAGE_BYTES_MAX - SOURCE_BYTES_MAX:
        raise MessageTooLargeError(f"it takes {size_bytes:,} bytes as a message")
    return message


def map_or_object(read: Any) -> Body:
    """A flat dict as a map, if a map may have its names and numbers; anything else as an object."""
    is_map = isinstance(read, dict) and all(
        type(value) in FLAT
        and (type(value) is not int or LONG_MIN <= value <= LONG_MAX)
        and 0 < len(name) <= NAME_CHARACTERS_MAX
        for name, value in read.items()
    )
    return read if is_map else ObjectBody(read)


def _text_body(value: bytes | None) -> Body:
    return None if value is None else value.decode()


def _json_body(value: bytes | None) -> Body:
    if value is None:
        return None
    return map_or_object(strict_json(value))


# What a record's value becomes. Bytes carry anything as it is, Avro and Protobuf too.
BODIES: Final[Mapping[str, BodyOf]] = {
    "bytes": lambda value: value,
    "text": _text_body,
    "json": _json_body,
}


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _digest(value: Any) -> dict[str, Any]:
    """What tells a value that is left on Kafka."""
    if value is None:
        return {"bytes": 0, "sha256": None}
    whole = value if isinstance(value, bytes) else repr(value).encode()
    return {"bytes": len(whole), "sha256": hashlib.sha256(whole).hexdigest()}
