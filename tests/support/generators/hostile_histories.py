"""Histories of writers of another make: what a schema allows in a field may stand there.

Each writer draws what suits the state, as always; then fields of what it wrote get any value of
their schema, so that one operation is odd in one place and right in all others.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from hypothesis.errors import InvalidArgument

from ledgermq.protocol.operations import Operation
from ledgermq.wire.framing.codec import decode_record, encode_operation, encode_record
from ledgermq.wire.framing.schemas import by_name
from support.checks.bad_records import DOUBLES, BadRecords
from support.generators.generators import Entry, Writer
from support.generators.mixed_histories import WRITERS, mixed_history
from support.generators.settings_generators import SettingsWriter
from support.generators.topic_generators import BindingWriter

# Another value there makes of an operation a retry, a gap or nobody's: nothing of it is looked at.
NUMBERING = ("session", "session_sequence")
ODD_SHARE = 0.3
ALL_WRITERS = (*WRITERS, BindingWriter, SettingsWriter, SettingsWriter)


class Place(NamedTuple):
    """A field, entry or branch within a datum: where its value is kept, and its schema."""

    held_by: Any
    key: Any
    schema: Any


def places(schema: Any, datum: Any, named: dict[str, Any]) -> Iterator[Place]:
    """Every place of a datum, those within it too."""
    schema = named.get(schema, schema) if isinstance(schema, str) else schema
    if isinstance(schema, list):
        if isinstance(datum, tuple):
            schema, datum = datum[0], datum[1]
        else:
            records = [one for one in schema if _is_record(one, named)]
            if not isinstance(datum, dict) or not records:
                return
            schema = records[0]
        yield from places(schema, datum, named)
        return
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind == "record":
        for field in schema["fields"]:
            yield Place(datum, field["name"], field["type"])
            yield from places(field["type"], datum[field["name"]], named)
    elif kind == "array":
        for number, one in enumerate(datum):
            yield Place(datum, number, schema["items"])
            yield from places(schema["items"], one, named)
    elif kind == "map":
        for key, one in datum.items():
            yield Place(datum, key, schema["values"])
            yield from places(schema["values"], one, named)


def _is_record(schema: Any, named: dict[str, Any]) -> bool:
    schema = named.get(schema, schema) if isinstance(schema, str) else schema
    return isinstance(schema, dict) and schema["type"] in ("record", "map")


class Odd:
    """Makes operations odd, from a seed."""

    def __init__(self, chance: random.Random) -> None:
        self.bad = BadRecords(0)
        self.bad.random = chance
        # Read again, NaN is equal to nothing, which checks take for another value.
        self.bad.doubles = DOUBLES[:-1]

    def made_odd(self, value: bytes) -> bytes:
        """The record with other values in some of its fields."""
        full_name, datum = decode_record(value)
        schema = by_name(full_name).schema
        named = schema["__named_schemas"]
        chance = self.bad.random
        for _ in range(chance.choice((1, 1, 1, 2, 5))):
            found = [one for one in places(schema, datum, named) if one.key not in NUMBERING]
            if found:
                place = chance.choice(found)
                place.held_by[place.key] = self.bad.datum(place.schema, named)
        return encode_record(full_name, datum)


@cache
def odd_kind(kind: type[Writer]) -> type[Writer]:
    """The writer as one of another make."""

    class OddWriter(kind):  # type: ignore[misc, valid-type]
        def write(self, operation: Operation | bytes) -> None:
            value = encode_operation(operation) if isinstance(operation, Operation) else operation
            if value and isinstance(operation, Operation) and self.random.random() < ODD_SHARE:
                value = Odd(self.random).made_odd(value)
            try:
                super().write(value)
            except LookupError as error:
                raise AssertionError("the model is total") from error

        def step(self) -> None:
            # What it draws next may take for granted that what it wrote was taken.
            with contextlib.suppress(LookupError, InvalidArgument):
                super().step()

        def prelude(self) -> None:
            with contextlib.suppress(LookupError, InvalidArgument):
                getattr(super(), "begin", super().prelude)()

        begin = prelude

    OddWriter.__name__ = f"Odd{kind.__name__}"
    return OddWriter


def hostile_history(seed: int, steps: int = 150) -> list[Entry]:
    """A history of writers of all generators, each of another make; the same for each seed."""
    chance = random.Random(seed)
    kinds = [odd_kind(chance.choice(ALL_WRITERS)) for _ in range(chance.choice((1, 2, 4, 8)))]
    return mixed_history(seed, steps, kinds)
