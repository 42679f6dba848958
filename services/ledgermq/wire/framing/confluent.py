"""Confluent framing, in which the tools of Kafka read records too (PROTOCOL.md §2).

The id in it is for those tools. What a record says by it is what its header `ledgermq-schema` says,
the fingerprint of its schema: so no reader asks a registry, and what a record means does not depend
on one. Records are turned into single-object framing where they come in, and out of it where they
go out; whatever lies between knows that framing alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from operator import methodcaller
from typing import Any, Final

from ledgermq.wire.framing.headers import Headers

SINGLE_OBJECT: Final = b"\xc3\x01"
CONFLUENT: Final = b"\x00"
# What stands before the datum: marker and fingerprint; marker and id.
SINGLE_OBJECT_BYTES: Final = 10
CONFLUENT_BYTES: Final = 5
SCHEMA_HEADER: Final = "ledgermq-schema"
# What Java, and with it Spark, makes of a name that is no UTF-8.
NOT_TEXT: Final = "\ufffd"
# Of a name that is no UTF-8 confluent-kafka returns a list and sets an error at once. Python
# reports that where C calls; a plain call, once it is specialized, lets the error out later.
_headers: Final = methodcaller("headers")
# Then it keeps a list with nothing at all in a place, and whoever looks there ends the process.
_TORN: Final[list[tuple[str, bytes | None]]] = [(NOT_TEXT, None)]
_FINGERPRINT: Final = re.compile(rb"[0-9a-f]{16}")


def single_object(
    value: bytes | None, headers: Iterable[tuple[str, bytes | None]] | None
) -> bytes | None:
    """A record's value in single-object framing; what is not in Confluent framing stays as it is.

    Of several headers the last one that has a value counts; none does beside one whose name is not
    text.
    """
    found = id_and_fingerprint(value, headers)
    if value is None or found is None:
        return value
    return SINGLE_OBJECT + found[1] + value[CONFLUENT_BYTES:]


def id_and_fingerprint(
    value: bytes | None, headers: Iterable[tuple[str, bytes | None]] | None
) -> tuple[int, bytes] | None:
    """The id in a value and the fingerprint beside it; None without Confluent framing."""
    if value is None or value[:1] != CONFLUENT or len(value) < CONFLUENT_BYTES:
        return None
    headers = list(headers or ())
    given = [found for name, found in headers if name == SCHEMA_HEADER and found is not None]
    if any(NOT_TEXT in name for name, _ in headers):
        return None
    if not given or _FINGERPRINT.fullmatch(given[-1]) is None:
        return None
    number = int.from_bytes(value[len(CONFLUENT) : CONFLUENT_BYTES], "big")
    return number, bytes.fromhex(given[-1].decode("ascii"))


def value_of(record: Any) -> bytes | None:
    """The value of a record that librdkafka read, in single-object framing."""
    value: bytes | None = record.value()
    if value is None or value[:1] != CONFLUENT:
        return value
    return single_object(value, headers_of(record))


def headers_of(record: Any) -> list[tuple[str, bytes | None]]:
    """The headers of a record that librdkafka read; none if a name of one is no UTF-8."""
    return readable_headers(record) or []


def readable_headers(record: Any) -> list[tuple[str, bytes | None]] | None:
    """The same; None if a name of one is no UTF-8, for whoever must tell that apart."""
    try:
        found: list[tuple[str, bytes | None]] = _headers(record) or []
    except (SystemError, UnicodeDecodeError):
        record.set_headers(_TORN)
        return None
    return None if found is _TORN else found


class ConfluentFraming:
    """How a writer frames records, by the ids that a registry gave to fingerprints."""

    def __init__(self, ids: Mapping[bytes, int]) -> None:
        self.ids = dict(ids)
        self._starts = {
            fingerprint: (
                CONFLUENT + number.to_bytes(CONFLUENT_BYTES - 1, "big"),
                (SCHEMA_HEADER, fingerprint.hex().encode()),
            )
            for fingerprint, number in ids.items()
        }

    def framed(self, value: bytes, headers: Headers) -> tuple[bytes, Headers]:
        """A value in single-object framing and its headers, as they are written."""
        start, header = self._starts[value[len(SINGLE_OBJECT) : SINGLE_OBJECT_BYTES]]
        return start + value[SINGLE_OBJECT_BYTES:], [*headers, header]


def framed(
    framing: ConfluentFraming | None, value: bytes, headers: Headers
) -> tuple[bytes, Headers]:
    """A value and its headers as a writer with or without a registry writes them."""
    return (value, headers) if framing is None else framing.framed(value, headers)
