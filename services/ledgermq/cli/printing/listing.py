"""Options of lists: which columns are shown, and by which of them the rows are ordered."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import click

from ledgermq.cli.options.together import Command, Read, together
from ledgermq.cli.printing.output import Column, headed


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """How a list is shown.

    Attributes:
        columns: Those of its table.
        keys: Those of its documents for programs.
        sort: By which one rows are ordered; None: as they came.
    """

    columns: Sequence[Column]
    keys: Sequence[str]
    sort: str | None

    def ordered(self, rows: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        """Numbers from the largest, all else from the smallest; rows without a value come last."""
        return rows if self.sort is None else sorted(rows, key=self._place)

    def _place(self, row: Mapping[str, Any]) -> tuple[bool, float, str]:
        value = row.get(self.sort or "")
        if isinstance(value, (int, float)):
            return False, -value, ""
        return value is None, 0, str(value)


def listing_options(status: type[Any], shown: Sequence[Column]) -> Callable[[Command], Command]:
    """`--columns` and `--sort`, which a command gets as `listing`: `shown`, if nothing is said.

    There is a column for each field of the status that is listed, and for each that is shown.
    """
    fields_of_it = [field.name for field in fields(status)]
    known = {one.key: one for one in (*headed(*fields_of_it), *shown)}

    def key_from(text: str) -> str:
        key = text.strip().lower().replace("-", "_").replace(" ", "_")
        if key not in known:
            raise ValueError(f"there is no column {text!r}, but: {', '.join(sorted(known))}")
        return key

    options = together(
        click.option(
            "--columns",
            "chosen",
            type=Read("NAMES", lambda text: [*map(key_from, text.split(","))]),
            help="Print only these, separated by commas: any that --json names.",
        ),
        click.option(
            "--sort",
            type=Read("NAME", key_from),
            help="Order by this column: numbers from the largest, all else from the smallest.",
        ),
    )

    def give(command: Command) -> Command:
        @functools.wraps(command)
        def with_listing(*, chosen: list[str] | None, sort: str | None, **given: Any) -> Any:
            columns = shown if chosen is None else [known[key] for key in chosen]
            listing = Listing(columns=columns, keys=chosen or fields_of_it, sort=sort)
            return command(listing=listing, **given)

        return options(with_listing)  # type: ignore[return-value]

    return give
