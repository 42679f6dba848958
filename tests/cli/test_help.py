"""Help ends with examples, which are accepted as they stand."""

import shlex

import click
import pytest

from ledgermq.cli.examples import EXAMPLES
from ledgermq.cli.main import cli


def commands(command=cli, context=None):
    """Each command that is no group, and its context, by the words that name it."""
    context = context or click.Context(cli, info_name="ledgermq")
    if not isinstance(command, click.Group):
        return {context.command_path.partition(" ")[2]: (command, context)}
    found = {}
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        found |= commands(below, click.Context(below, info_name=name, parent=context))
    return found


COMMANDS = commands()


@pytest.mark.parametrize("group", [(), ("queue",)], ids=["all", "queue"])
def test_no_sentence_about_a_command_is_cut(plain, group):
    """It goes on in the next line."""
    assert "..." not in plain(*group, "--help").out.partition("Options:")[2]


def test_every_command_that_must_be_told_something_has_an_example():
    """Those that need no argument and no option are their own example."""
    told = {
        path
        for path, (command, context) in COMMANDS.items()
        if any(one.required for one in command.get_params(context))
    }
    assert told - set(EXAMPLES) == set()
    assert set(EXAMPLES) - set(COMMANDS) == set()


@pytest.mark.parametrize(
    ("path", "line"),
    [(path, line) for path, lines in EXAMPLES.items() for line in lines],
    ids=lambda one: one[:40],
)
def test_an_example_is_shown_whole_and_accepted(path, line):
    """Whoever copies it has all of it; it is one of the command whose help shows it."""
    command, context = COMMANDS[path]
    context.terminal_width = 60
    assert f"  {line}" in command.get_help(context).splitlines()
    _, found, given = line.rpartition("ledgermq ")
    assert found
    words = shlex.split(given)
    named = path.split()
    assert words[: len(named)] == named
    command.make_context(command.name, words[len(named) :], parent=context.parent)
