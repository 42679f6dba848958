"""Whoever mistypes a name, or knows it from elsewhere, is told the one that is meant."""

import os
import subprocess
import sys

import click
import pytest

from ledgermq.cli import near_names
from ledgermq.cli.main import _COMMANDS, cli
from ledgermq.cli.printing import exits


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("qeue list", "queue"),
        ("queue lst", "list"),
        ("queue describe q", "show"),
        ("topic rm t", "delete"),
        ("send q x", "put"),
        ("list", "queue list"),
        ("txn cancel 4", "rollback"),
        ("help", "--help"),
        ("version", "--version"),
    ],
)
def test_a_name_that_is_nearly_right_or_used_elsewhere_gets_a_suggestion(plain, typed, meant):
    """In groups of commands too; what follows the name does not matter."""
    answer = plain(*typed.split())
    assert answer.code == exits.USAGE
    assert f"; did you mean {meant}? (try: ledgermq" in answer.err


def test_who_types_a_name_like_none_is_told_those_there_are(plain):
    """And of which group."""
    told = plain("txn", "xyzzy").err
    assert told == (
        "error: there is no command 'xyzzy' of `ledgermq txn`; there are: list, rollback, show "
        "(try: ledgermq txn --help)\n"
    )


@pytest.mark.parametrize("group", [(), ("queue",)], ids=["none", "queue"])
def test_a_group_alone_prints_its_help(plain, group):
    """That is no error to be explained, though nothing was done."""
    answer = plain(*group)
    assert (answer.code, answer.out) == (exits.USAGE, "")
    assert answer.err.startswith(f"Usage: {' '.join(['ledgermq', *group])} [OPTIONS] COMMAND")


def test_an_option_before_a_command_is_told_where_it_belongs(plain):
    """Git and others take them there."""
    told = plain("--timeout", "3", "queue", "list").err
    assert "there is no option --timeout here: options stand behind a command, as in " in told
    assert "`ledgermq COMMAND --timeout`" in told
    assert "`ledgermq queue COMMAND --json`" in plain("queue", "--json", "list").err


def test_an_option_that_is_nearly_right_gets_a_suggestion(plain):
    """One, or all that are as near."""
    assert "no option --jsn; did you mean --json? (try: " in plain("queue", "list", "--jsn").err
    told = plain("put", "q", "x", "--priorty", 1).err
    assert "no option --priorty; did you mean --priority or --property? (try: " in told


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("ledgermq que", "queue"),
        ("ledgermq queue al", "alter"),
        ("ledgermq queue create q --fifo-mode ser", "SERIALIZED"),
        ("ledgermq put q x --prio", "--priority"),
    ],
)
def test_a_shell_completes_what_is_typed(typed, completed):
    """As docs/operations.md says how to turn it on."""
    asked = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    answer = subprocess.run(
        [sys.executable, "-m", "ledgermq"],
        env={**os.environ, **asked, "_LEDGERMQ_COMPLETE": "bash_complete"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, f"plain,{completed}\n", "")


def test_every_name_that_is_suggested_is_a_command():
    """Each word of the table leads somewhere."""
    context = click.Context(cli)
    named = set(_COMMANDS)
    for name in _COMMANDS:
        command = cli.get_command(context, name)
        if isinstance(command, click.Group):
            named |= {f"{name} {one}" for one in command.list_commands(context)}
    anywhere = named | {one.partition(" ")[2] for one in named}
    meant = {one for ones in near_names._ELSEWHERE.values() for one in ones}
    assert {one for one in meant if not one.startswith("--")} - anywhere == set()


def test_a_value_that_looks_like_an_option_is_told_where_it_may_stand(memory):
    """A number below zero as a body, a queue called so; commands without values are no help."""
    for command in (("put", "q", "-5"), ("queue", "create", "-x")):
        refused = memory(*command)
        told = f"there is no option {command[-1]}; a value that begins with - stands behind --"
        assert (refused.code, told in refused.err) == (exits.USAGE, True), refused.err
        assert memory(*command[:-1], "--", command[-1]).code == exits.OK
    assert memory("browse", "q").lines[-1].endswith("-5")
    for command in (("manager", "show", "-5"), ("put", "q", "--xyzzy")):
        assert "stands behind" not in memory(*command).err


def test_a_name_says_once_what_it_is_the_name_of(memory):
    """`queue:queue:x` made a queue x, and called it queue:x."""
    assert memory("queue", "create", "queue:x").out == "queue x created\n"
    for command in (("queue", "create", "queue:queue:y"), ("topic", "create", "topic:topic:y")):
        refused = memory(*command)
        assert (refused.code, "is no destination: a name has" in refused.err) == (exits.USAGE, True)
    assert memory("queue", "list", "queue:*").lines[1].split()[0] == "x"


def test_a_name_alone_is_a_queue_wherever_a_destination_is_meant(memory):
    """For replies and bindings it was none."""
    assert memory("put", "q", "tea", "--reply-to", "answers").code == exits.OK
    (message,) = memory("browse", "q", "--json").documents
    assert message["reply_to"] == "queue:answers"
    assert memory("binding", "create", "topic:news.*", "q").out == (
        "topic news.* is bound to queue:q\n"
    )
    refused = memory("put", "q", "tea", "--reply-to", "a b")
    assert (refused.code, "is no destination" in refused.err) == (exits.USAGE, True)
