"""Deduplication ids: those that a destination remembers, and those of puts without a number."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple


class KnownId(NamedTuple):
    """A deduplication id that was put: when it was numbered, in µs, and its first number."""

    since: int
    first_sequence: int


@dataclass(slots=True, eq=False, repr=False)
class Deduplication:
    """What a destination that looks for puts that come twice remembers, the oldest first (§5)."""

    window_ms: int
    ids_max: int
    ids: OrderedDict[str, KnownId] = field(default_factory=OrderedDict)


class OpenId(NamedTuple):
    """The deduplication id of a put in a unit of work, and which of its open puts is the first."""

    destination: str
    deduplication_id: str
    first_put: int
