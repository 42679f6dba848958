"""How commands print: tables for people on a terminal, tab-separated when piped, JSON for scripts.

What a command found goes to standard output; remarks and errors go to standard error, so that a
pipe carries nothing but the answer.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from ledgermq.protocol.instants import utc_text

if TYPE_CHECKING:
    from rich.table import Table


# Between two columns, in characters.
GAP: Final = 2
# What a column that may be folded or cut needs of its width.
FOLDED_CHARACTERS_MIN: Final = 10
UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB")
# What steers a terminal, ends a line for some or turns the direction of writing: who puts a message
# or gives a reason does not draw on the screen of whoever reads it. Neither can it be a half of a
# surrogate pair, as JSON may name one, which no output can encode.
_STEERING: Final = (
    *(range(0x20), range(0x7F, 0xA0), range(0x2028, 0x202F), range(0x2066, 0x206A)),
    range(0xD800, 0xE000),
)
# A value stays on its line and in its column. JSON has escaped what is below 0x20 by then, and what
# is above stays JSON.
_IN_A_CELL: Final = {
    code: repr(chr(code))[1:-1] if code < 0x20 else f"\\u{code:04x}"
    for codes in _STEERING
    for code in codes
}
_IN_A_TEXT: Final = {code: shown for code, shown in _IN_A_CELL.items() if chr(code) not in "\n\t"}
_IN_JSON: Final = {code: shown for code, shown in _IN_A_CELL.items() if code >= 0x7F}


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a table: the key of its values and its heading.

    Attributes:
        number: Whether it holds numbers, which stand to the right.
        whole: Whether its values are shown whole, also where the terminal is narrow.
        cut: Whether its values are cut to one line on a terminal.
        detail: Whether it is left out on a terminal where no row has a value for it.
    """

    key: str
    heading: str
    number: bool = False
    whole: bool = False
    cut: bool = False
    detail: bool = False


def headed(*keys: str, **kind: bool) -> list[Column]:
    """Columns of one kind that are headed as their values are called."""
    return [Column(key=key, heading=key.replace("_", " ").upper(), **kind) for key in keys]


class Output:
    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.for_people = sys.stdout.isatty() and not as_json

    def table(
        self,
        columns: Sequence[Column],
        rows: Iterable[Mapping[str, Any]],
        *,
        caption: str = "",
        document: Any = None,
    ) -> None:
        """Print rows, as JSON the document or else the rows; the caption is for people only."""
        if self.as_json:
            self.document([dict(row) for row in rows] if document is None else document)
        elif self.for_people:
            self._drawn(columns, rows, caption)
        else:
            click.echo("\t".join(column.heading for column in columns))
            for row in rows:
                click.echo("\t".join(cell_text(row.get(column.key)) for column in columns))

    def _drawn(
        self, columns: Sequence[Column], rows: Iterable[Mapping[str, Any]], caption: str
    ) -> None:
        from rich.console import Console
        from rich.text import Text

        console = Console(highlight=False)
        console.print(drawn_table(columns, rows))
        if caption:
            console.print(Text(caption, style="dim"))

    def fields(self, rows: Mapping[str, Any], *, document: Any = None) -> None:
        """Print labelled values, one a line; as JSON the document, or else the values."""
        if self.as_json:
            self.document(dict(rows) if document is None else document)
            return
        width = max((len(label) for label in rows), default=0)
        for label, value in rows.items():
            if self.for_people:
                click.echo(f"{_styled(label.ljust(width), bold=True)}  {cell_text(value)}")
            else:
                click.echo(f"{label}\t{cell_text(value)}")

    def document(self, document: Any) -> None:
        click.echo(json_text(document, indent=2))

    def line(self, document: Any) -> None:
        click.echo(json_text(document))

    def done(self, text: str, document: Any) -> None:
        """Print that something was done: a sentence, or the document as JSON."""
        if self.as_json:
            self.document(document)
        else:
            click.echo(plain(text))

    def remark(self, text: str, **style: Any) -> None:
        """Print something for people beside the answer, in a style of `click.style`."""
        if not self.as_json:
            _say_beside(_styled(plain(text), **style))

    def cut_short(self, text: str) -> None:
        """Say that there is more than was printed: with --json, too, where nothing else tells."""
        if self.as_json:
            _say_beside(json_text({"remark": text}))
        else:
            self.remark(text)

    def error(self, code: str, text: str) -> None:
        """Print why a command ends without its answer."""
        if self.as_json:
            _say_beside(json_text({"error": {"code": code, "message": text}}))
        else:
            _say_beside(f"{_styled('error:', fg='red', bold=True)} {plain(text)}")


def _say_beside(text: str) -> None:
    """Write to standard error; where that is full or gone, the exit code says enough."""
    with contextlib.suppress(OSError):
        click.echo(text, err=True)


def _styled(text: str, **style: Any) -> str:
    """A text in a style of `click.style`, as far as the terminal and its user have it."""
    if os.environ.get("TERM") == "dumb":
        return text
    if os.environ.get("NO_COLOR"):
        style.pop("fg", None)
    return click.style(text, **style)


def count_of(count: int, what: str, plural: str | None = None) -> str:
    return f"{count:,} {what if count == 1 else plural or what + 's'}"


def size_text(size_bytes: int) -> str:
    """A size in the largest unit that leaves a whole number before the point: `1.5 MiB`."""
    size, unit = float(size_bytes), 0
    while size >= 1024 and unit < len(UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.4g} {UNITS[unit]}" if unit else f"{size_bytes} {UNITS[0]}"


def shown_columns(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> list[Column]:
    return [one for one in columns if not one.detail or any(row.get(one.key) for row in rows)]


def drawn_table(
    columns: Sequence[Column], rows: Iterable[Mapping[str, Any]], *, indent: int = 0
) -> Table:
    """A table for a terminal, of which `indent` characters are taken.

    Where the terminal has no room for it, details are left out, and named. If that is not enough,
    each row is shown as lines of heading and value: of a number or an id that is cut nobody would
    see that it is another one.
    """
    from rich.table import Table
    from rich.text import Text

    rows = list(rows)
    width = shutil.get_terminal_size().columns - indent
    told = shown_columns(columns, rows)
    columns = _fitting(told, _cells(told, rows), width)
    if not columns:
        return _drawn_apart(told, _cells(told, rows))
    cells = _cells(columns, rows)
    cells = _cut(columns, cells, width)
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, GAP, 0, 0))
    for column in columns:
        justify: Literal["left", "right"] = "right" if column.number else "left"
        is_whole = column.whole or column.number
        table.add_column(column.heading, justify=justify, no_wrap=is_whole, overflow="fold")
    for row in cells:
        table.add_row(*(Text(text) for text in row))
    if left_out := [one.heading for one in told if one not in columns]:
        table.caption = Text(f"no room for {', '.join(left_out)}: --json has all", style="dim")
        table.caption_justify = "left"
    return table


def _cells(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    return [[cell_text(row.get(column.key)) for column in columns] for row in rows]


def _fitting(columns: Sequence[Column], cells: list[list[str]], width: int) -> list[Column]:
    """The columns for which there is room, with as many details as possible; none: too little."""
    fitting = list(zip(columns, _least(columns, cells), strict=True))
    while sum(least + GAP for _, least in fitting) - GAP > width:
        details = [one for one in fitting if one[0].detail]
        if not details:
            return []
        fitting.remove(details[-1])
    return [column for column, _ in fitting]


def _widths(columns: Sequence[Column], cells: list[list[str]]) -> list[int]:
    return [
        max([len(column.heading), *(len(row[at]) for row in cells)])
        for at, column in enumerate(columns)
    ]


def _least(columns: Sequence[Column], cells: list[list[str]]) -> list[int]:
    """How many characters each column needs: all, or some where it is folded or cut."""
    return [
        width
        if column.whole or column.number
        else max(*map(len, column.heading.split(" ")), min(width, FOLDED_CHARACTERS_MIN))
        for width, column in zip(_widths(columns, cells), columns, strict=True)
    ]


def _drawn_apart(columns: Sequence[Column], cells: list[list[str]]) -> Table:
    """Rows as blocks of lines, an empty line between them."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, GAP, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for number, row in enumerate(cells):
        if number:
            table.add_row()
        for column, text in zip(columns, row, strict=True):
            table.add_row(column.heading, Text(text))
    return table


def _cut(columns: Sequence[Column], cells: list[list[str]], width: int) -> list[list[str]]:
    """The cells, those of the columns to cut no longer than what the others leave."""
    widths = zip(_widths(columns, cells), columns, strict=True)
    taken = sum(width + GAP for width, column in widths if not column.cut)
    room = max(FOLDED_CHARACTERS_MIN, width - taken)
    return [
        [
            text[: room - 1] + "…" if column.cut and len(text) > room else text
            for text, column in zip(row, columns, strict=True)
        ]
        for row in cells
    ]


def json_text(document: Any, *, indent: int | None = None) -> str:
    """A document as JSON; bytes become text if they are UTF-8, else hexadecimal.

    What would steer a terminal is escaped, which means the same to programs. Numbers that JSON does
    not know are the texts "NaN", "Infinity" and "-Infinity".
    """
    given: Any = {"indent": indent, "default": _unusual, "ensure_ascii": False, "allow_nan": False}
    try:
        text = json.dumps(document, **given)
    except ValueError:
        text = json.dumps(_finite(document), **given)
    return text.translate(_IN_JSON)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)
    return value


def _unusual(value: Any) -> Any:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.hex()
    if isinstance(value, datetime):
        return utc_text(value)
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)


def plain(text: str) -> str:
    """A text, of several lines perhaps, with what would steer a terminal written out."""
    return text.translate(_IN_A_TEXT)


def cell_text(value: Any) -> str:
    if value is None:
        return ""
    if value is True:
        return "yes"
    if value is False:
        return "no"
    if isinstance(value, datetime):
        return utc_text(value, "milliseconds")
    if isinstance(value, (dict, list, tuple)):
        value = json_text(value)
    return str(value).translate(_IN_A_CELL)
