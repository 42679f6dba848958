"""Avro schema resolution as a check: whether a reader's schema reads all that a writer's wrote.

Written from the Avro specification 1.11, "Schema Resolution"; a set of schemas is a mapping from
full name to what stands in its `.avsc`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schemas = Mapping[str, Any]
PROMOTIONS = {
    "int": {"long", "float", "double"},
    "long": {"float", "double"},
    "float": {"double"},
    "string": {"bytes"},
    "bytes": {"string"},
}


def problems(reader: Schemas, writer: Schemas) -> list[str]:
    """What the reader could not read of the writer's records, one sentence each."""
    found: list[str] = []
    for name in writer:
        if name in reader:
            found += _check(name, name, name, reader, writer, frozenset())
        else:
            found.append(f"{name}: unknown to the reader")
    return found


def _resolve(schema: Any, schemas: Schemas) -> Any:
    while isinstance(schema, str) and schema in schemas:
        schema = schemas[schema]
    if isinstance(schema, dict) and "logicalType" in schema:
        schema = schema["type"]
    return schema


def _name(schema: Any) -> str:
    return f"{schema.get('namespace', '')}.{schema['name']}"


def _check(
    where: str, read: Any, written: Any, reader: Schemas, writer: Schemas, seen: frozenset[str]
) -> list[str]:
    read, written = _resolve(read, reader), _resolve(written, writer)
    if isinstance(written, list):
        return [
            problem
            for branch in written
            for problem in _check(where, read, branch, reader, writer, seen)
        ]
    if isinstance(read, list):
        answers = [_check(where, branch, written, reader, writer, seen) for branch in read]
        return [] if [] in answers else [f"{where}: no branch of the union reads it"]
    if isinstance(read, str) or isinstance(written, str):
        same = isinstance(read, str) and isinstance(written, str)
        same = same and (read == written or read in PROMOTIONS.get(written, set()))
        return [] if same else [f"{where}: {_kind(written)} became {_kind(read)}"]
    if read["type"] != written["type"]:
        return [f"{where}: {_kind(written)} became {_kind(read)}"]
    if read["type"] in ("array", "map"):
        part = "items" if read["type"] == "array" else "values"
        return _check(f"{where}[]", read[part], written[part], reader, writer, seen)
    if _name(read) != _name(written):
        return [f"{where}: {_name(written)} became {_name(read)}"]
    return _check_named(where, read, written, reader, writer, seen)


def _check_named(
    where: str, read: Any, written: Any, reader: Schemas, writer: Schemas, seen: frozenset[str]
) -> list[str]:
    if read["type"] == "fixed":
        return [] if read["size"] == written["size"] else [f"{where}: another size"]
    if read["type"] == "enum":
        unknown = set(written["symbols"]) - set(read["symbols"])
        return [f"{where}: {sorted(unknown)} unknown"] if unknown and "default" not in read else []
    if _name(read) in seen:
        return []
    seen |= {_name(read)}
    fields = {field["name"]: field for field in written["fields"]}
    found: list[str] = []
    for field in read["fields"]:
        inside = f"{where}.{field['name']}"
        if field["name"] in fields:
            there = fields[field["name"]]["type"]
            found += _check(inside, field["type"], there, reader, writer, seen)
        elif "default" not in field:
            found.append(f"{inside}: new, without a default")
    return found


def _kind(schema: Any) -> str:
    return schema if isinstance(schema, str) else str(schema["type"])
