"""Record headers: CloudEvents attributes, and where a refusal would go (§2, H29)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

Headers: TypeAlias = list[tuple[str, bytes]]

CONNECTION: Final = "ledgermq-connection"
LANE: Final = "ledgermq-lane"
SESSION: Final = "ledgermq-session"
SEQUENCE: Final = "ledgermq-sequence"


class Address(NamedTuple):
    """Where a refusal goes when the value cannot tell; connection None if nothing is known."""

    connection: bytes | None
    lane: int
    session: int
    session_sequence: int


def common_headers(source: str, full_name: str) -> Headers:
    """What every record has, as CloudEvents attributes; its own `ce_id` comes behind."""
    return [
        ("content-type", b"avro/binary"),
        ("ce_specversion", b"1.0"),
        ("ce_type", full_name.encode()),
        ("ce_source", source.encode()),
    ]


def operation_headers(
    queue_manager: str, connection: bytes, lane: int, session: int, full_name: str
) -> Headers:
    """The headers that all operations of one kind in one session share."""
    name = connection.hex()
    return [
        *common_headers(f"/ledgermq/{queue_manager}/{name}", full_name),
        (CONNECTION, name.encode()),
        (LANE, b"%d" % lane),
        (SESSION, b"%d" % session),
    ]


def with_identity(shared: Headers, session: int, session_sequence: int) -> Headers:
    """The headers of one operation: what is shared, and its identity."""
    identity = b"%d:%d" % (session, session_sequence)
    return [*shared, ("ce_id", identity), (SEQUENCE, b"%d" % session_sequence)]


def chunk_headers(
    queue_manager: str, connection: bytes | None, position: int, index: int, full_name: str
) -> Headers:
    """The headers of a record of the outcomes topic, named by its first outcome."""
    name = "" if connection is None else connection.hex()
    return [
        *common_headers(f"/ledgermq/{queue_manager}/{name}", full_name),
        ("ce_id", b"%d:%d" % (position, index)),
        (CONNECTION, name.encode()),
    ]


def _number(found: Mapping[str, bytes], name: str, otherwise: int) -> int:
    text = found.get(name, b"")
    return int(text) if text.isdigit() and len(text) < 19 else otherwise


def address_of(headers: Iterable[tuple[str, bytes | None]] | None) -> Address:
    """Connection, lane, session and number in the headers; what is malformed is absent."""
    found = {name: value for name, value in headers or () if isinstance(value, bytes)}
    try:
        connection = bytes.fromhex(found.get(CONNECTION, b"").decode("ascii"))
    except ValueError:
        connection = b""
    return Address(
        connection if len(connection) == 16 else None,
        _number(found, LANE, 0),
        _number(found, SESSION, -1),
        _number(found, SEQUENCE, 0),
    )
