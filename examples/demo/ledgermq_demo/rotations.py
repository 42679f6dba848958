"""The demo's groups: what one aircraft flies on one day, put by three airports, got in order.

Each airport puts the flights that leave it, in the order of its own day, so the flights of an
aircraft that leaves from several airports arrive in the queue in any order, between those of
hundreds of others. A rotation is a group: its number is the place in the aircraft's day.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ledgermq_demo.flights import ORIGINS, Flights

ROTATIONS_QUEUE: Final = "rotations"
GROUP_ID_BYTES: Final = 24


def departure(flight: dict[str, Any]) -> tuple[Any, ...]:
    """What the flights of an aircraft are ordered by: the day's schedule, then flight number."""
    fields = ("year", "month", "day", "sched_dep_time", "carrier", "flight", "origin", "dest")
    return tuple(flight[name] for name in fields)


def _aircraft_day(flight: dict[str, Any]) -> tuple[Any, ...]:
    return (flight["tailnum"], flight["year"], flight["month"], flight["day"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotations:
    """The flights of all aircraft, written to one file of JSON lines per airport.

    Attributes:
        files: The file of each airport of origin.
        count: How many rotations there are.
        flights: Flights in them.
        single: Flights without a tail number, which belong to no rotation.
    """

    files: dict[str, Path]
    count: int
    flights: int
    single: int

    @classmethod
    def write(cls, directory: Path, flights: Flights) -> Rotations:
        by_origin = {origin: _read(flights.files[origin]) for origin in ORIGINS}
        rotations: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
        single = 0
        for rows in by_origin.values():
            for flight in rows:
                if flight["tailnum"] is None:
                    single += 1
                else:
                    rotations[_aircraft_day(flight)].append(flight)
        for rotation in rotations.values():
            rotation.sort(key=departure)
        files: dict[str, Path] = {}
        for origin, rows in by_origin.items():
            files[origin] = directory / f"rotations-{origin}.jsonl"
            with files[origin].open("w", encoding="utf-8") as handle:
                for flight in sorted(rows, key=departure):
                    line = {"flight": flight, **_place(flight, rotations)}
                    handle.write(json.dumps(line) + "\n")
        return cls(
            files=files,
            count=len(rotations),
            flights=flights.total - single,
            single=single,
        )


def _read(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as handle:
        return [json.loads(line) for line in handle]


def _place(
    flight: dict[str, Any], rotations: dict[tuple[Any, ...], list[dict[str, Any]]]
) -> dict[str, Any]:
    """Where a flight stands in its rotation: group id, number from 1, whether it is the last."""
    if flight["tailnum"] is None:
        return {"group_id": None}
    key = _aircraft_day(flight)
    rotation = rotations[key]
    # The same flight object, not one that merely looks alike.
    number = next(place for place, one in enumerate(rotation, 1) if one is flight)
    group_id = hashlib.sha256(repr(key).encode()).digest()[:GROUP_ID_BYTES]
    return {
        "group_id": group_id.hex(),
        "group_sequence": number,
        "last_in_group": number == len(rotation),
    }
