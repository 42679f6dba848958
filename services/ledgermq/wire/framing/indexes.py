"""Schemas as fastavro reads by them: the index of a branch or symbol counts from the front only.

fastavro takes branches and symbols out of lists, where Python counts negative indexes from the end.
No other reader of Avro does, so the same bytes would mean something here alone. Out of a dictionary
by index there is nothing but what the schema has.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

PRIMITIVES: Final = frozenset(
    ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
)


class _Union(dict[str | int, Any]):
    """Branches by index, as a type of its own.

    fastavro goes through it for one thing only, whether it has but one record: so what has no name
    is left out, which takes less time than to look at it.
    """

    __slots__ = ("named",)

    def __init__(self, branches: list[Any]) -> None:
        super().__init__(enumerate(branches))
        self["type"] = "union"
        self.named = tuple(
            one for one in branches if not isinstance(one, str) or one not in PRIMITIVES
        )

    def __iter__(self) -> Iterator[Any]:
        return iter(self.named)


def counted_from_the_front(parsed: Any) -> Any:
    """What a parsed schema, or a part of one, is read by; an index that it lacks is a KeyError."""
    if isinstance(parsed, list):
        return _Union([counted_from_the_front(one) for one in parsed])
    if not isinstance(parsed, dict):
        return parsed
    found = dict(parsed)
    if "symbols" in found:
        found["symbols"] = dict(enumerate(found["symbols"]))
    for name in {"type", "items", "values"} & found.keys():
        found[name] = counted_from_the_front(found[name])
    if "fields" in found:
        found["fields"] = [
            {**one, "type": counted_from_the_front(one["type"])} for one in found["fields"]
        ]
    if "__named_schemas" in found:
        found["__named_schemas"] = {
            name: counted_from_the_front(one) for name, one in found["__named_schemas"].items()
        }
    return found
