"""The codec: operations, outcomes and all other records to bytes and back.

Single-object framing (PROTOCOL.md §2). Reading an operation never raises: what cannot be read
becomes `Unreadable` with its reason, for the fold to refuse. Everything else raises
`UndecodableError`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from io import BytesIO
from itertools import chain, islice
from types import ModuleType
from typing import Any, Final, TypeVar

from fastavro import schemaless_reader, schemaless_writer

from ledgermq.protocol import administration, operations, outcomes
from ledgermq.protocol.limits import LIST_ENTRIES_MAX, PROTOCOL_VERSION
from ledgermq.protocol.operations import NO_HEADER, Operation, Put, Unreadable
from ledgermq.protocol.outcomes import EMPTY_HEADER, Delivered, Outcome
from ledgermq.protocol.reasons import Reason
from ledgermq.wire.framing.confluent import SINGLE_OBJECT, SINGLE_OBJECT_BYTES
from ledgermq.wire.framing.header_lists import join, split
from ledgermq.wire.framing.list_entries import has_too_many_entries
from ledgermq.wire.framing.schemas import CHUNK, KnownSchema, by_fingerprint, by_name

OPERATION: Final = "ledgermq.operation."
OUTCOME: Final = "ledgermq.outcome."
PART_ENTRIES: Final = 63

# What every reader of the log makes of a record that carries its writer's time.
NOT_STAMPED: Final = Unreadable(
    reason=Reason.TIMESTAMP_UNTRUSTED.value,
    detail="the record carries its writer's time; set message.timestamp.type of the operations "
    "topic to LogAppendTime again",
)


class UndecodableError(ValueError):
    """Bytes that are no record of this protocol version; the text says why."""


class UnknownSchemaError(UndecodableError):
    """A record in a schema that this release does not have, as a newer one may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Outcomes of one connection, in order, and the outcome before the first of them.

    `chain` is the digest chain over the operations up to the position of the last outcome, which
    every worker owes (PROTOCOL.md §10).
    """

    previous_position: int
    previous_index: int
    outcomes: list[Outcome]
    chain: bytes | None = None


K = TypeVar("K", Operation, Outcome)


def kinds_in(module: ModuleType, base: type[K]) -> list[type[K]]:
    """The operations or outcomes that a module defines, those that others derive from too."""
    classes = [one for one in vars(module).values() if isinstance(one, type)]
    return [one for one in classes if issubclass(one, base) and one.__module__ == module.__name__]


_OPERATIONS: Final = {
    OPERATION + one.__name__: one
    for one in (*kinds_in(operations, Operation), *kinds_in(administration, Operation))
}
_OUTCOMES: Final = {OUTCOME + one.__name__: one for one in kinds_in(outcomes, Outcome)}
_FIELDS: Final[dict[type[Operation | Outcome], tuple[str, ...]]] = {
    kind: tuple(field.name for field in fields(kind))
    for found in (_OPERATIONS, _OUTCOMES)
    for kind in found.values()
}


def full_name_of(record: Operation | Outcome) -> str:
    prefix = OPERATION if isinstance(record, Operation) else OUTCOME
    return prefix + type(record).__name__


def _write(known: KnownSchema, datum: Any) -> bytes:
    buffer = BytesIO()
    buffer.write(SINGLE_OBJECT)
    buffer.write(known.fingerprint)
    schemaless_writer(buffer, known.schema, datum)
    return buffer.getvalue()


def encode_operation(operation: Operation) -> bytes:
    """An operation as the value of a record of the operations topic."""
    kind = type(operation)
    datum = {name: getattr(operation, name) for name in _FIELDS[kind]}
    if isinstance(operation, Put):
        datum["headers"] = split(operation.messages, NO_HEADER)
    return encode_record(OPERATION + kind.__name__, datum)


def decode_operation(value: bytes | None, active_version: int = PROTOCOL_VERSION) -> Operation:
    """The operation in a record's value; `Unreadable` with the reason where there is none."""
    if not value:
        return Unreadable(reason=Reason.RECORD_EMPTY.value, detail="the record has no value")
    if value[:2] != SINGLE_OBJECT or len(value) < SINGLE_OBJECT_BYTES:
        detail = "the record does not begin with a single-object marker and a fingerprint"
        return Unreadable(reason=Reason.SCHEMA_UNKNOWN.value, detail=detail)
    fingerprint = value[2:SINGLE_OBJECT_BYTES]
    known = by_fingerprint().get(fingerprint)
    kind = None if known is None else _OPERATIONS.get(known.full_name)
    if known is None or kind is None:
        detail = (
            f"fingerprint {fingerprint.hex()} is no operation that this version knows; "
            "the writer may be newer: upgrade the workers"
        )
        return Unreadable(reason=Reason.SCHEMA_UNKNOWN.value, detail=detail)
    if known.version > active_version:
        detail = f"{known.full_name} belongs to version {known.version}, active: {active_version}"
        return Unreadable(reason=Reason.VERSION_INACTIVE.value, detail=detail)
    try:
        _check_lists(known, value)
        datum = _read(known, value)
        if kind is Put:
            join(datum["messages"], datum.pop("headers"), NO_HEADER)
        return kind(**datum)
    except ValueError as error:
        return Unreadable(reason=Reason.RECORD_UNREADABLE.value, detail=str(error))


def _check_lists(known: KnownSchema, value: bytes) -> None:
    """Raises UndecodableError for lists that are too long, before anything is made of them."""
    if has_too_many_entries(known.full_name, value, SINGLE_OBJECT_BYTES):
        raise UndecodableError(
            f"the lists of a {known.full_name} have more than {LIST_ENTRIES_MAX} entries"
        )


def _read(known: KnownSchema, value: bytes) -> Any:
    """The datum behind the framing; all of the value must be used up."""
    datum, end = _read_at(known, value, SINGLE_OBJECT_BYTES)
    if end != len(value):
        spare = len(value) - end
        raise UndecodableError(f"{known.full_name} is followed by {spare} bytes too many")
    return datum


def _read_at(known: KnownSchema, value: bytes, start: int) -> tuple[Any, int]:
    buffer = BytesIO(value)
    buffer.seek(start)
    try:
        datum = schemaless_reader(
            buffer,
            known.read_by,
            None,
            return_record_name=True,
            return_record_name_override=True,
        )
    except (EOFError, LookupError, ValueError, OverflowError, MemoryError, TypeError) as error:
        # Not what the library says: its words differ between versions, and may quote an address.
        raise UndecodableError(f"{known.full_name} does not decode") from error
    return datum, buffer.tell()


def decode_within(full_name: str, value: bytes, start: int) -> tuple[dict[str, Any], int]:
    """The datum of a record within another one's bytes, and where it ends."""
    return _read_at(by_name(full_name), value, start)


def outcome_to_union(outcome: Outcome) -> tuple[str, dict[str, Any]]:
    kind = type(outcome)
    datum = {name: getattr(outcome, name) for name in _FIELDS[kind]}
    if isinstance(outcome, Delivered):
        datum["headers"] = split(outcome.messages, EMPTY_HEADER)
    return (OUTCOME + kind.__name__, datum)


def outcome_from_union(branch: tuple[str, dict[str, Any]]) -> Outcome:
    name, datum = branch
    kind = _OUTCOMES[name]
    if kind is Delivered:
        join_delivered(datum)
    return kind(**datum)


def join_delivered(datum: dict[str, Any]) -> None:
    """Gives delivered messages the headers that stand beside them; UndecodableError if torn."""
    try:
        join(datum["messages"], datum.pop("headers"), EMPTY_HEADER)
    except ValueError as error:
        raise UndecodableError(str(error)) from error


def encode_chunk(
    previous_position: int,
    previous_index: int,
    found: Iterable[Outcome],
    chain: bytes | None = None,
) -> bytes:
    """Outcomes of one connection as the value of a record of the outcomes topic.

    `chain` is the digest chain over the operations up to the last outcome's position.
    """
    datum = {
        "previous_position": previous_position,
        "previous_index": previous_index,
        "outcomes": [outcome_to_union(one) for one in found],
        "chain": chain,
    }
    return _write(by_name(CHUNK), datum)


def decode_chunk(value: bytes) -> Chunk:
    """The chunk in a record's value; UndecodableError if it is none."""
    datum = decode_as(CHUNK, value)
    return Chunk(
        previous_position=datum["previous_position"],
        previous_index=datum["previous_index"],
        outcomes=[outcome_from_union(one) for one in datum["outcomes"]],
        chain=datum["chain"],
    )


def encode_record(full_name: str, datum: dict[str, Any]) -> bytes:
    """Any record of the protocol, framed; KeyError for a name that the protocol lacks."""
    return _write(by_name(full_name).fitting(datum), datum)


def encode_in_parts(full_name: str, datum: dict[str, Any]) -> bytes:
    """What `encode_record` gives, for very long lists, which may be given by iterators.

    The codec holds up all threads while it works, so lists are handed to it some entries at a time.
    """
    known = by_name(full_name).fitting(datum)
    schema: Any = known.schema
    parts = [SINGLE_OBJECT, known.fingerprint]
    # Fields that follow one another and have few entries are one part.
    fields: list[Any] = []
    few: dict[str, Any] = {}
    entries = 0
    for field in schema["fields"]:
        name, found = field["name"], datum[field["name"]]
        if isinstance(field["type"], dict) and field["type"]["type"] == "array":
            rest = iter(found)
            found = list(islice(rest, PART_ENTRIES + 1 - entries))
            entries += len(found)
            if entries > PART_ENTRIES or (found and isinstance(found[0], bytes)):
                parts.append(_bare({**schema, "fields": fields}, few))
                parts += _list_parts({**schema, "fields": [field]}, name, chain(found, rest))
                fields, few, entries = [], {}, 0
                continue
        fields.append(field)
        few[name] = found
    parts.append(_bare({**schema, "fields": fields}, few))
    return b"".join(parts)


def _list_parts(schema: Any, name: str, entries: Iterable[Any]) -> list[bytes]:
    """A list as Avro writes it: how many entries, these, and the end.

    Entries that are records may be given as their bytes.
    """
    parts = [b""]
    rest, count = iter(entries), 0
    while part := list(islice(rest, PART_ENTRIES)):
        count += len(part)
        if isinstance(part[0], bytes):
            parts += part
            continue
        # So few that their number is one byte, as the end is.
        parts.append(_bare(schema, {name: part})[1:-1])
    parts[0] = avro_long(count) if count else b""
    return [*parts, avro_long(0)]


def _bare(schema: Any, datum: dict[str, Any]) -> bytes:
    buffer = BytesIO()
    schemaless_writer(buffer, schema, datum)
    return buffer.getvalue()


def avro_long(number: int) -> bytes:
    """A number as Avro writes it: zigzag, seven bits a byte."""
    rest = number << 1 if number >= 0 else (-number << 1) - 1
    found = bytearray()
    while rest > 127:
        found.append(rest & 127 | 128)
        rest >>= 7
    found.append(rest)
    return bytes(found)


def schema_of(value: bytes) -> KnownSchema:
    """The schema of a framed record; UndecodableError if it is none, or is in no schema of ours."""
    if value[:2] != SINGLE_OBJECT or len(value) < SINGLE_OBJECT_BYTES:
        raise UndecodableError("no single-object marker and fingerprint at the start")
    known = by_fingerprint().get(value[2:SINGLE_OBJECT_BYTES])
    if known is None:
        raise UnknownSchemaError(f"unknown fingerprint {value[2:SINGLE_OBJECT_BYTES].hex()}")
    if not known.is_record:
        raise UndecodableError(f"{known.full_name} is a type within records, and no record")
    return known


def decode_record(value: bytes | None, *, short_lists: bool = False) -> tuple[str, dict[str, Any]]:
    """Full name and datum of any framed record; UndecodableError if it is none.

    With `short_lists` also if its lists have more entries than those of an operation may have.
    """
    value = value or b""
    known = schema_of(value)
    if short_lists:
        _check_lists(known, value)
    datum: dict[str, Any] = _read(known, value)
    if known.left_out:
        datum |= known.left_out
    return known.full_name, datum


def decode_as(full_name: str, value: bytes | None) -> dict[str, Any]:
    """The datum of a framed record of one kind; UndecodableError if it is none such."""
    found, datum = decode_record(value)
    if found != full_name:
        raise UndecodableError(f"expected {full_name}, found {found}")
    return datum
