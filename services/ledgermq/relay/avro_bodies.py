"""Values of records in Confluent framing as bodies: Avro, by schemas that a registry has."""

from __future__ import annotations

import io
import json
from typing import Any, Final

from fastavro import parse_schema, schemaless_reader
from fastavro.schema import SchemaParseException, UnknownType

from ledgermq.wire.content.content import Body
from ledgermq.wire.content.objects import LONG_MAX, LONG_MIN, ObjectBody
from ledgermq.wire.framing.confluent import CONFLUENT, CONFLUENT_BYTES
from ledgermq.wire.framing.schema_registry import SchemaRegistry

PLAIN: Final = (bool, int, float, str, bytes, type(None))
NAME_LENGTH_MAX: Final = 255


class AvroBodies:
    """What values become; each schema is asked for once."""

    def __init__(self, url: str) -> None:
        self._registry = SchemaRegistry(url)
        self._schemas: dict[int, Any] = {}

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
        schema, rest = self._schema(number), io.BytesIO(value[CONFLUENT_BYTES:])
        try:
            read: Any = schemaless_reader(rest, schema, None)
        except (ValueError, TypeError, LookupError, ArithmeticError, EOFError) as error:
            raise ValueError(f"it does not decode by schema {number}: {error}") from error
        if left := len(rest.read()):
            raise ValueError(f"{left} bytes follow what decodes by schema {number}")
        return read if isinstance(read, dict) and _is_flat(read) else ObjectBody(read)

    def _schema(self, number: int) -> Any:
        found = self._schemas.get(number)
        if found is None:
            text = self._registry.text_of(number)
            if text is None:
                raise ValueError(f"the schema registry at {self._registry.shown} has no {number}")
            try:
                found = parse_schema(json.loads(text))
            except (SchemaParseException, UnknownType, ValueError, TypeError, KeyError) as error:
                raise ValueError(
                    f"schema {number} is no Avro schema that stands for itself: {error}"
                ) from error
            self._schemas[number] = found
        return found


def _is_flat(read: dict[str, Any]) -> bool:
    return all(
        type(value) in PLAIN
        and (type(value) is not int or LONG_MIN <= value <= LONG_MAX)
        and 0 < len(name) <= NAME_LENGTH_MAX
        for name, value in read.items()
    )
