"""Numbers are written in the digits 0 to 9: Python reads others, and 1_0 as ten."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from ledgermq.cli.main import cli
from ledgermq.errors import IllegalStateError
from ledgermq.processor.worker.settings import SettingsError, WorkerSettings
from ledgermq.redelivery import parse_redelivery, parse_steps

# What an option takes that is for a number of some kind, and the same in other digits.
NUMBERS = {
    "12": ("１２", "1_2", "١٢", "1٢", "１_２"),
    "12s": ("１２s", "1_2s"),
    "2x": ("２x", "1_2x"),
    "3..5": ("３..５", "3..５", "3..1_5"),
    "5:1000": ("5:１０００", "５:1000", "5:1_000"),
}


def parameters(command: click.Command, path: str) -> Iterator[tuple[str, click.Parameter]]:
    """Options and arguments of all commands, each with its place."""
    context = click.Context(command)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            yield from parameters(command.get_command(context, name), f"{path} {name}".strip())
    else:
        yield from ((f"{path} {one.name}", one) for one in command.params)


@pytest.mark.parametrize(("text", "others"), NUMBERS.items(), ids=list(NUMBERS))
def test_no_option_reads_a_number_in_other_digits(text, others):
    """`--messages-max １２` and `--count 1_0` were read as 12 and 10, and so was `３..５`."""
    found = 0
    for place, one in parameters(cli, ""):
        context = click.Context(click.Command(place))
        try:
            read = one.type.convert(text, one, context)
        except click.UsageError:
            continue
        if not isinstance(read, int | float | range | list):
            continue
        found += 1
        for other in others:
            with pytest.raises(click.UsageError):
                raise AssertionError(f"{place}: {one.type.convert(other, one, context)}")
    assert found


def test_what_is_refused_for_its_digits_is_told_so(plain):
    """The text says which digits there are."""
    answer = plain("browse", "q", "--count", "1_0")
    assert answer.code == 2
    assert "'1_0' is not a valid number here: write the digits 0 to 9" in answer.err


@pytest.mark.parametrize("text", ["１２", "1_2"])
def test_variables_of_a_worker_are_read_likewise(text):
    """LEDGERMQ_PARTITIONS is fixed once the topics are made."""
    for name in ("LEDGERMQ_PARTITIONS", "LEDGERMQ_CHECKPOINT_SECONDS"):
        with pytest.raises(SettingsError, match=f"{name} is '{text}'"):
            WorkerSettings.from_environment({name: text})


@pytest.mark.parametrize("parse", [parse_steps, parse_redelivery])
@pytest.mark.parametrize("delay", ["１０００", "99999999999999999999"])
def test_a_redelivery_string_is_read_likewise_and_names_the_entry(parse, delay):
    """DB-21; a delay that no record can hold was said to be none of a value of AlterQueue."""
    with pytest.raises(IllegalStateError, match=f"redelivery entry '5:{delay}'"):
        parse(f"5:{delay}")
