"""Values of records in Confluent framing as bodies: Avro, by schemas that a registry has.

These are anybody's, and whatever stands in a value, reading ends or raises.

fastavro rounds a decimal with more digits than its schema names, and takes minutes for one of a
megabyte: decimals are read here, as they are, up to a length that no number has.

A schema of a kilobyte, too, may double what takes no bytes until no memory holds it: such a one is
refused.

Its compiled reader believes two things that a value says. An array whose items take no bytes
may claim 2**62 of them in ten bytes, which is refused by the schema. And a type that holds itself
recurses in C as deep as a value of a few kilobytes says, which ends the process: such a schema is
read by fastavro's reader in Python, whose depth Python bounds.
"""

from __future__ import annotations

import decimal
import io
import json
from collections.abc import Callable
from typing import Any, BinaryIO, Final

from fastavro import _read_py, parse_schema, schemaless_reader
from fastavro.io.binary_decoder import BinaryDecoder
from fastavro.read import LOGICAL_READERS
from fastavro.schema import SchemaParseException, UnknownType

from ledgermq.relay.records import map_or_object
from ledgermq.wire.content.content import Body
from ledgermq.wire.framing.confluent import CONFLUENT, CONFLUENT_BYTES
from ledgermq.wire.framing.indexes import counted_from_the_front
from ledgermq.wire.framing.schema_registry import SchemaRegistry

RECORDS: Final = ("record", "error")
LONG_BITS: Final = 64
# Values that take no bytes, in a record that takes none.
EMPTY_MAX: Final = 1_000
# Nearly ten thousand digits.
DECIMAL_BYTES_MAX: Final = 4096
# What a decimal is called in a schema that is read by; nobody else's reading changes.
WHOLE_DECIMAL: Final = "ledgermq-decimal"
EXACT: Final = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


def _read_decimal(data: bytes, schema: Any, *_: object) -> decimal.Decimal:
    """ValueError: it is too long."""
    if len(data) > DECIMAL_BYTES_MAX:
        raise ValueError(f"a decimal has {len(data):,} bytes, more than {DECIMAL_BYTES_MAX:,}")
    unscaled = decimal.Decimal(int.from_bytes(data, "big", signed=True))
    return unscaled.scaleb(-schema.get("scale", 0), EXACT)


LOGICAL_READERS.update({f"{kind}-{WHOLE_DECIMAL}": _read_decimal for kind in ("bytes", "fixed")})


def reader_of(schema: Any) -> Callable[[BinaryIO], Any]:
    """What reads by a schema.

    Raises:
        ValueError: Nothing can, in bounds.
    """
    named: dict[str, Any] = {}
    parsed = parse_schema(schema, named)
    look = _Look()
    look.at(parsed)
    read_by = counted_from_the_front(parsed)
    names = {name: counted_from_the_front(one) for name, one in named.items()}
    if look.holds_itself:
        read: Any = _read_py.read_data
        return lambda file: read(_Decoder(file), read_by, {"writer": names, "reader": {}})
    if isinstance(read_by, dict):
        # What does not say that it was parsed would be parsed again; of its own only records do.
        read_by |= {"__fastavro_parsed": True, "__named_schemas": names}
    return lambda file: schemaless_reader(file, read_by, None)


class _Decoder(BinaryDecoder):
    """Its numbers end: fastavro's grow with each byte, and so does the time for the next."""

    def __init__(self, file: BinaryIO) -> None:
        made: Any = super().__init__
        made(file)
        self._file = file

    def read_long(self) -> int:
        found = 0
        for shift in range(0, LONG_BITS, 7):
            read: bytes = self._file.read(1)
            if not read:
                raise EOFError("it ends within a number")
            byte = read[0]
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (found >> 1) ^ -(found & 1)
        raise ValueError("a number in it does not end")

    read_int = read_long


class _Look:
    """One way through a schema; what is named is looked at once."""

    def __init__(self) -> None:
        self.holds_itself = False
        # None: still being looked at.
        self._named: dict[str, int | None] = {}

    def at(self, schema: Any) -> int:
        """Where values may take no bytes how many there are, with all in them; else 0."""
        if isinstance(schema, list):
            for one in schema:
                self.at(one)
            return 0
        if isinstance(schema, str):
            return self._at_name(schema)
        if schema.get("logicalType") == "decimal" and "precision" in schema:
            schema["logicalType"] = WHOLE_DECIMAL
        kind = schema["type"]
        if kind in RECORDS:
            return self._at_record(schema)
        if kind == "fixed":
            self._named[schema["name"]] = empty = int(schema["size"] == 0)
            return empty
        if kind == "array" and self.at(schema["items"]):
            raise ValueError("items of an array take no bytes, so that nothing bounds their count")
        if kind == "map":
            self.at(schema["values"])
        return 0 if kind in ("array", "map", "enum") else self.at(kind)

    def _at_name(self, name: str) -> int:
        found = self._named.get(name, int(name == "null"))
        if found is None:
            # It holds an array, map or union that takes a byte, or no value of it ever ends.
            self.holds_itself = True
        return found or 0

    def _at_record(self, schema: Any) -> int:
        name, fields = schema["name"], schema["fields"]
        self._named[name] = None
        if len({one["name"] for one in fields}) < len(fields):
            raise ValueError(f"{name} has two fields of a name")
        found = [self.at(one["type"]) for one in fields]
        self._named[name] = empty = 1 + sum(found) if all(found) else 0
        if empty > EMPTY_MAX:
            raise ValueError(f"{name} holds more than {EMPTY_MAX:,} that take no bytes")
        return empty


class AvroBodies:
    """What values become; each schema is asked for once."""

    def __init__(self, url: str) -> None:
        self._registry = SchemaRegistry(url)
        self._readers: dict[int, Callable[[BinaryIO], Any]] = {}

    def __call__(self, value: bytes | None) -> Body:
        """A flat record as a map, anything else as an object, no value as no body.

        Raises:
            ValueError: It is no Avro in this framing, or the registry has no such schema.
            SchemaRegistryUnavailableError: The registry does not answer.
            SchemaRegistryError: What answers is no registry, or forbids it.
        """
        if value is None:
            return None
        if value[:1] != CONFLUENT or len(value) < CONFLUENT_BYTES:
            raise ValueError("it does not begin with the id of a schema")
        number = int.from_bytes(value[len(CONFLUENT) : CONFLUENT_BYTES], "big")
        reader, rest = self._reader(number), io.BytesIO(value[CONFLUENT_BYTES:])
        try:
            read: Any = reader(rest)
        except RecursionError as error:
            raise ValueError(f"it is nested too deep to decode by schema {number}") from error
        except (ValueError, TypeError, LookupError, ArithmeticError, EOFError) as error:
            raise ValueError(f"it does not decode by schema {number}: {error}") from error
        if left := len(rest.read()):
            raise ValueError(f"{left} bytes follow what decodes by schema {number}")
        return map_or_object(read)

    def _reader(self, number: int) -> Callable[[BinaryIO], Any]:
        found = self._readers.get(number)
        if found is None:
            text = self._registry.text_of(number)
            if text is None:
                where = self._registry.shown
                raise ValueError(f"the schema registry at {where} has no Avro schema {number}")
            try:
                found = reader_of(json.loads(text))
            except (SchemaParseException, UnknownType, ValueError, TypeError, KeyError) as error:
                raise ValueError(
                    f"schema {number} is no Avro schema that can be read by alone: {error}"
                ) from error
            self._readers[number] = found
        return found
