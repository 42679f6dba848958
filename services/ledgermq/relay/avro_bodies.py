"""Values of records in Confluent framing as bodies: Avro, by schemas that a registry has."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any, BinaryIO

from fastavro.schema import SchemaParseException, UnknownType

from ledgermq.relay.avro_readers import reader_of
from ledgermq.relay.records import map_or_object
from ledgermq.wire.content.content import Body
from ledgermq.wire.framing.confluent import CONFLUENT, CONFLUENT_BYTES
from ledgermq.wire.framing.schema_registry import SchemaRegistry


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
                raise ValueError(f"the schema registry at {self._registry.shown} has no {number}")
            try:
                found = reader_of(json.loads(text))
            except (SchemaParseException, UnknownType, ValueError, TypeError, KeyError) as error:
                raise ValueError(
                    f"schema {number} is no Avro schema that can be read by alone: {error}"
                ) from error
            self._readers[number] = found
        return found
