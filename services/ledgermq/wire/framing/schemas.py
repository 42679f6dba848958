"""The schemas: loaded from the `.avsc` files, known by full name and by fingerprint.

Logical types are left out of the parsed schemas: times travel and are held as microseconds,
because making a datetime of each would cost more than decoding the rest of a message. The
fingerprint does not depend on them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

from fastavro.schema import parse_schema, to_parsing_canonical_form
from fastavro.types import Schema

from ledgermq.protocol.limits import FIRST_VERSION
from ledgermq.wire.framing.indexes import counted_from_the_front

# Full names of what stands on the lanes and among the questions.
CHUNK: Final = "ledgermq.outcome.Chunk"
ANSWER: Final = "ledgermq.question.Answer"
ASK: Final = "ledgermq.question.Ask"
HEARTBEAT: Final = "ledgermq.question.Heartbeat"

# The fingerprint of nothing, in CRC-64-AVRO.
_EMPTY: Final = 0xC15D213AA4D7A795


@dataclass(frozen=True, kw_only=True)
class KnownSchema:
    """A schema of the protocol.

    `shorter` is the schema without the last field, if that is `optional`: a record in which the
    field has its default is written so, as it was before there was that field.
    """

    full_name: str
    schema: Schema
    fingerprint: bytes
    version: int
    shorter: KnownSchema | None
    left_out: dict[str, Any]

    @cached_property
    def read_by(self) -> Any:
        """The schema as the reader of Avro is given it, see `indexes.py`."""
        return counted_from_the_front(self.schema)

    @property
    def is_record(self) -> bool:
        """Whether a datum of it may stand by itself: an enum stands in a field of a record."""
        return "fields" in self.schema

    def fitting(self, datum: dict[str, Any]) -> KnownSchema:
        """The shortest schema that has room for all of a record: in that it is written."""
        found = self
        while found.shorter is not None:
            if any(datum[name] != told for name, told in found.shorter.left_out.items()):
                break
            found = found.shorter
        return found


@cache
def _file_of(full_name: str) -> Any:
    return json.loads((schema_directory() / f"{full_name}.avsc").read_text(encoding="utf-8"))


@cache
def _plain_file_of(full_name: str) -> Any:
    return _without_logical_types(_file_of(full_name))


def _without_logical_types(schema: Any) -> Any:
    if isinstance(schema, dict):
        kept = {key: _without_logical_types(value) for key, value in schema.items()}
        return kept["type"] if kept.pop("logicalType", None) is not None else kept
    if isinstance(schema, list):
        return [_without_logical_types(one) for one in schema]
    return schema


@cache
def schema_directory() -> Path:
    """Where the `.avsc` files are: beside the installed package, or at the top of a checkout."""
    package = Path(__file__).resolve().parents[2]
    installed = package / "schemas"
    return installed if installed.is_dir() else package.parents[1] / "schemas"


@cache
def names() -> tuple[str, ...]:
    """Full names of all schemas of this version, sorted."""
    return tuple(sorted(path.stem for path in schema_directory().glob("*.avsc")))


@cache
def by_name(full_name: str) -> KnownSchema:
    """The schema of a full name; KeyError if the protocol has none such."""
    if full_name not in names():
        raise KeyError(full_name)
    whole = _inlined(full_name, _plain_file_of)
    return _known(full_name, parse_schema(whole), {})


def fingerprint_of_text(text: str) -> bytes:
    """The fingerprint of a schema in JSON; SchemaParseException if it is none."""
    return _fingerprint(parse_schema(json.loads(text)))


def _fingerprint(schema: Any) -> bytes:
    table, found = _table(), _EMPTY
    for byte in to_parsing_canonical_form(schema).encode():
        found = (found >> 8) ^ table[(found ^ byte) & 0xFF]
    return found.to_bytes(8, "little")


@cache
def _table() -> list[int]:
    # fastavro makes it anew for each fingerprint, which took as long as all the rest.
    table = list(range(256))
    for _ in range(8):
        table = [(one >> 1) ^ (_EMPTY if one & 1 else 0) for one in table]
    return table


def _known(full_name: str, schema: Any, left_out: dict[str, Any]) -> KnownSchema:
    shorter = None
    last = schema["fields"][-1] if schema.get("fields") else {}
    if last.get("optional"):
        rest = {**schema, "fields": schema["fields"][:-1]}
        shorter = _known(full_name, rest, left_out | {last["name"]: last["default"]})
    return KnownSchema(
        full_name=full_name,
        schema=schema,
        fingerprint=_fingerprint(schema),
        version=FIRST_VERSION,
        shorter=shorter,
        left_out=left_out,
    )


def forms_of(full_name: str) -> list[KnownSchema]:
    """What a record may be written in, the shortest first; KeyError as of `by_name`."""
    found: list[KnownSchema] = []
    known: KnownSchema | None = by_name(full_name)
    while known is not None:
        found.insert(0, known)
        known = known.shorter
    return found


def self_contained(known: KnownSchema) -> str:
    """The text of a schema with those that it names inside it, as the `.avsc` files say them."""
    found = _inlined(known.full_name, _file_of)
    if known.left_out:
        found["fields"] = [one for one in found["fields"] if one["name"] not in known.left_out]
    return json.dumps(found, ensure_ascii=False)


def _inlined(full_name: str, schema_of: Callable[[str], Any]) -> Any:
    """A schema with those that it names inside it, each where it is named first."""
    told: set[str] = set()

    def inlined(schema: Any) -> Any:
        if isinstance(schema, list):
            return [inlined(one) for one in schema]
        if isinstance(schema, str):
            if schema not in names() or schema in told:
                return schema
            told.add(schema)
            return inlined(schema_of(schema))
        found = dict(schema)
        for key in {"type", "items", "values"} & found.keys():
            found[key] = inlined(found[key])
        if "fields" in found:
            found["fields"] = [{**one, "type": inlined(one["type"])} for one in found["fields"]]
        return found

    return inlined(full_name)


@cache
def by_fingerprint() -> dict[bytes, KnownSchema]:
    """All schemas of this version by the eight bytes that stand in front of a datum."""
    return {
        form.fingerprint: form
        for name in names()
        for form in (*forms_of(name), *_before_symbols_were_added(by_name(name)))
    }


def _before_symbols_were_added(known: KnownSchema) -> Iterator[KnownSchema]:
    """A record as older releases write it: without the last `added_symbols` of a field's enum."""
    schema: Any = known.schema
    for at, field in enumerate(schema.get("fields", ())):
        kind = field["type"]
        added = kind.get("added_symbols", 0) if isinstance(kind, dict) else 0
        for count in range(1, added + 1):
            fields = list(schema["fields"])
            fields[at] = {**field, "type": {**kind, "symbols": kind["symbols"][:-count]}}
            yield _known(known.full_name, {**schema, "fields": fields}, {})
