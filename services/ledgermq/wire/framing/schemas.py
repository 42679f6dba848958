"""The schemas: loaded from the `.avsc` files, known by full name and by fingerprint.

Logical types are left out of the parsed schemas: times travel and are held as microseconds,
because making a datetime of each would cost more than decoding the rest of a message. The
fingerprint does not depend on them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from fastavro.repository import AbstractSchemaRepository
from fastavro.schema import fingerprint, load_schema, parse_schema, to_parsing_canonical_form
from fastavro.types import Schema

from ledgermq.protocol.limits import FIRST_VERSION
from ledgermq.wire.framing.indexes import counted_from_the_front

# Full names of what stands on the lanes and among the questions.
CHUNK: Final = "ledgermq.outcome.Chunk"
ANSWER: Final = "ledgermq.question.Answer"
ASK: Final = "ledgermq.question.Ask"
HEARTBEAT: Final = "ledgermq.question.Heartbeat"


class KnownSchema(NamedTuple):
    """A schema of the protocol.

    `read_by` is the schema as the reader of Avro is given it, see `indexes.py`.
    `shorter` is the schema without the last field, if that is `optional`: a record in which the
    field has its default is written so, as it was before there was that field.
    """

    full_name: str
    schema: Schema
    read_by: Schema
    fingerprint: bytes
    version: int
    shorter: KnownSchema | None
    left_out: dict[str, Any]

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


class _Files(AbstractSchemaRepository):
    """Schema files named by full name, without logical types."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def load(self, subject: str) -> Schema:
        text = (self.directory / f"{subject}.avsc").read_text(encoding="utf-8")
        return _without_logical_types(json.loads(text))  # type: ignore[no-any-return]


def _without_logical_types(schema: Any) -> Any:
    if isinstance(schema, dict):
        kept = {key: _without_logical_types(value) for key, value in schema.items()}
        return kept["type"] if kept.pop("logicalType", None) is not None else kept
    if isinstance(schema, list):
        return [_without_logical_types(one) for one in schema]
    return schema


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
    return _known(full_name, load_schema(full_name, repo=_Files(schema_directory())), {})


def fingerprint_of_text(text: str) -> bytes:
    """The fingerprint of a schema in JSON; SchemaParseException if it is none."""
    return _fingerprint(parse_schema(json.loads(text)))


def _fingerprint(schema: Any) -> bytes:
    return bytes.fromhex(fingerprint(to_parsing_canonical_form(schema), "CRC-64-AVRO"))


def _known(full_name: str, schema: Any, left_out: dict[str, Any]) -> KnownSchema:
    shorter = None
    last = schema["fields"][-1] if schema.get("fields") else {}
    if last.get("optional"):
        rest = {**schema, "fields": schema["fields"][:-1]}
        shorter = _known(full_name, rest, left_out | {last["name"]: last["default"]})
    read_by = counted_from_the_front(schema)
    digest = _fingerprint(schema)
    return KnownSchema(full_name, schema, read_by, digest, FIRST_VERSION, shorter, left_out)


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
    told: set[str] = set()

    def inlined(schema: Any) -> Any:
        if isinstance(schema, list):
            return [inlined(one) for one in schema]
        if isinstance(schema, str):
            if schema not in names() or schema in told:
                return schema
            told.add(schema)
            text = (schema_directory() / f"{schema}.avsc").read_text(encoding="utf-8")
            return inlined(json.loads(text))
        found = dict(schema)
        for key in {"type", "items", "values"} & found.keys():
            found[key] = inlined(found[key])
        if "fields" in found:
            found["fields"] = [{**one, "type": inlined(one["type"])} for one in found["fields"]]
        return found

    found = inlined(known.full_name)
    if known.left_out:
        found["fields"] = [one for one in found["fields"] if one["name"] not in known.left_out]
    return json.dumps(found, ensure_ascii=False)


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
