"""Sample data of every schema, made by walking the `.avsc` files, and their form in JSON."""

from __future__ import annotations

import json
from typing import Any

from support.checkout import SCHEMAS

VARIANTS = (0, 1, 2)
SCALARS: dict[str, tuple[Any, Any, Any]] = {
    "null": (None, None, None),
    "boolean": (False, True, True),
    "int": (0, 1, 2**31 - 1),
    "long": (0, -1, 2**63 - 1),
    "double": (0.0, 1.5, -2.25),
    "string": ("", "text", "Grüße ✓"),
    "bytes": (b"", b"\x00\xff", b"content"),
}


def schema_of(name: str) -> Any:
    """A schema as it stands in its file."""
    return json.loads((SCHEMAS / f"{name}.avsc").read_text(encoding="utf-8"))


def record_names() -> list[str]:
    """Full names of all schemas that are records."""
    names = sorted(path.stem for path in SCHEMAS.glob("*.avsc"))
    return [name for name in names if schema_of(name)["type"] == "record"]


def sample(schema: Any, variant: int) -> Any:
    """A datum: variant 0 is the least, 1 has one of everything, 2 large numbers and two of each."""
    if isinstance(schema, list):
        chosen = schema[(0, len(schema) // 2, len(schema) - 1)[variant]]
        value = sample(chosen, variant)
        # Where a union has but one record, nobody asks which it is.
        named = sum("." in str(branch) for branch in schema) > 1
        return (chosen, value) if isinstance(value, dict) and named else value
    if isinstance(schema, str):
        return SCALARS[schema][variant] if schema in SCALARS else sample(schema_of(schema), variant)
    kind = schema["type"]
    if kind == "record":
        return {field["name"]: sample(field["type"], variant) for field in schema["fields"]}
    if kind == "enum":
        return schema["symbols"][(0, 1, -1)[variant]]
    if kind == "fixed":
        return bytes(range(variant, variant + schema["size"]))
    if kind == "array":
        return [sample(schema["items"], one) for one in VARIANTS[1 : variant + 1]]
    if kind == "map":
        return {f"key{one}": sample(schema["values"], one) for one in VARIANTS[1 : variant + 1]}
    return sample(kind, variant)


def to_json(value: Any) -> Any:
    """A datum as JSON: bytes as hexadecimal, a record in a union with its name."""
    if isinstance(value, bytes):
        return {"$bytes": value.hex()}
    if isinstance(value, tuple):
        return {"$branch": value[0], "value": to_json(value[1])}
    if isinstance(value, dict):
        return {name: to_json(one) for name, one in value.items()}
    if isinstance(value, list):
        return [to_json(one) for one in value]
    return value


def from_json(value: Any) -> Any:
    """The datum that `to_json` wrote."""
    if isinstance(value, list):
        return [from_json(one) for one in value]
    if not isinstance(value, dict):
        return value
    if "$bytes" in value:
        return bytes.fromhex(value["$bytes"])
    if "$branch" in value:
        return (value["$branch"], from_json(value["value"]))
    return {name: from_json(one) for name, one in value.items()}
