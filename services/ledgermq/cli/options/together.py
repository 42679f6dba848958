"""What options are made of: several as one decorator, and types of values that are read."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from ledgermq.digits import plain_digits
from ledgermq.errors import LedgerMQError
from ledgermq.wire.content.objects import LONG_MAX

# What Spark lists, with one more.
COUNT_MAX: Final = 2**31 - 2
Command = TypeVar("Command", bound=Callable[..., Any])


def together(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """One decorator that gives a command all the options, in the order in which help shows them."""

    def give(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return give


class _Digits(click.ParamType):
    """Numbers in the digits 0 to 9."""

    def convert(self, value: Any, *context: Any) -> Any:
        try:
            return super().convert(
                plain_digits(value) if isinstance(value, str) else value, *context
            )
        except ValueError as error:
            return self.fail(str(error), *context)


class Number(_Digits, click.FloatRange):
    """Numbers in a range, in which everything is but what is no number."""

    name = "number"

    def convert(self, value: Any, *context: Any) -> Any:
        found = super().convert(value, *context)
        if math.isnan(found):
            self.fail(f"{value!r} is no number: write 30 or 0.5, for example.", *context)
        return found


class Long(_Digits, click.IntRange):
    """Whole numbers that a record of the log can hold."""

    name = "number"

    def convert(self, value: Any, *context: Any) -> Any:
        found = super().convert(value, *context)
        if found > LONG_MAX:
            self.fail(f"{value} is more than a record of the log can hold: {LONG_MAX}", *context)
        return found


class Directory(click.Path):
    """Directories of this machine, whatever their names."""

    def __init__(self) -> None:
        super().__init__(file_okay=False, path_type=Path)

    def convert(self, value: Any, *context: Any) -> Any:
        if value == "":
            # An unset variable of a shell, not the directory that the command is called in.
            self.fail("it is empty: say which directory.", *context)
        found = Path(str(super().convert(value, *context)))
        # Spark and PyArrow take `backup:1` for an address, and `/backup:1` for a path.
        return found.absolute() if ":" in str(found) else found


class OutputFile(click.Path):
    """Files that are written in the end; what cannot be written is refused before all else."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, path_type=Path)

    def convert(self, value: Any, *context: Any) -> Any:
        from ledgermq_spark.log.durable_files import check_replaceable

        if value == "":
            self.fail("it is empty: say which file.", *context)
        path = Path(str(super().convert(value, *context)))
        if not path.parent.is_dir():
            told = f"there is no directory {str(path.parent)!r} to write {path.name!r} to; make it"
            self.fail(told, *context)
        try:
            check_replaceable(path)
        except OSError as error:
            told = f"{str(path)!r} cannot be written: {error.strerror}; name another file"
            self.fail(told, *context)
        return path


LONG: Final = Long(min=0)
DIRECTORY: Final = Directory()
OUTPUT_FILE: Final = OutputFile()


class Count(_Digits, click.IntRange):
    """How many of something; a number that nothing can have so many of counts as the most."""

    name = "number"

    def convert(self, value: Any, *context: Any) -> Any:
        return min(super().convert(value, *context), COUNT_MAX)


class Read(click.ParamType):
    """Values that a function reads from text; what it raises says what is wrong with one.

    Help ends with what is `explained` of the values of its options.
    """

    def __init__(self, name: str, read: Callable[[Any], Any], explained: str = "") -> None:
        self.name = name
        self.explained = explained
        self._read = read

    def convert(self, value: Any, *_context: Any) -> Any:
        try:
            return self._read(value) if isinstance(value, str) else value
        except (ValueError, LedgerMQError) as error:
            self.fail(str(error))


def _given(text: str) -> str:
    if not text:
        raise ValueError("it is empty: leave the option out, or say which.")
    return text


# An unset variable of a shell names nothing, least of all a default. An empty variable of the
# environment counts as none, as everywhere in Click.
GIVEN: Final = Read("text", _given)
