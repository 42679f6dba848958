"""Which name was meant: what is called otherwise elsewhere, or written nearly so."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from typing import Final

import click

# What it is called here, the first that there is, and what people type who come from other systems
# and commands.
_CALLED: Final = {
    ("--help",): "help",
    ("--version",): "version",
    ("resume", "up"): "start",
    ("up",): "server broker",
    ("put",): "send publish",
    ("get",): "receive consume read",
    ("browse",): "peek",
    ("msg",): "message messages",
    ("txn",): "transaction transactions",
    ("dlq",): "dead-letters dead-letter",
    ("topic",): "exchange",
    ("binding create",): "bind",
    ("binding delete",): "unbind",
    ("binding",): "divert",
    ("manager",): "qmgr",
    ("relay",): "shovel federation",
    ("acl",): "permissions",
    ("check", "doctor"): "health",
    ("check",): "ping",
    ("stat", "show", "doctor"): "status",
    ("trace",): "history",
    ("list", "queue list"): "ls",
    ("queue list",): "list_queues",
    ("create", "queue create"): "define declare",
    ("create",): "add new",
    ("alter",): "set update edit",
    ("delete", "queue delete"): "rm remove drop",
    ("show", "queue stat"): "stat",
    ("show", "queue show"): "display describe info",
    ("purge", "queue purge"): "clear empty",
    ("suspend", "queue suspend"): "pause",
    ("resume", "queue resume"): "unpause",
    ("end", "session end"): "kill",
    ("rollback", "end"): "cancel",
}
# What is done to queues is said without them, too.
_OF_QUEUES: Final = "list create alter delete show purge move suspend resume"
_ELSEWHERE: Final = {word: meant for meant, words in _CALLED.items() for word in words.split()} | {
    word: (f"queue {word}",) for word in _OF_QUEUES.split()
}


def _near(name: str, names: Collection[str]) -> str | None:
    """The one of some names that was meant, if that can be guessed; of a command with its group."""
    for meant in _ELSEWHERE.get(name.lower(), ()):
        if meant.startswith("--") or meant.partition(" ")[0] in names:
            return meant
    found = difflib.get_close_matches(name, names, n=1)
    return found[0] if found else None


def check_command(context: click.Context, arguments: list[str], names: Collection[str]) -> None:
    """Raises UsageError if the first argument is none of a group's commands; options may be."""
    if not arguments or arguments[0] in names or arguments[0].startswith("-"):
        return
    meant = _near(arguments[0], names)
    hint = f"did you mean {meant}?" if meant else f"there are: {', '.join(names)}"
    of = f" of `{context.command_path}`" if context.parent else ""
    raise click.UsageError(f"there is no command {arguments[0]!r}{of}; {hint}", context)


def wrong_option(error: click.NoSuchOption) -> str:
    """What to say of an option that a command does not have."""
    option, context = error.option_name, error.ctx
    text = f"there is no option {option}"
    if context is not None and isinstance(context.command, click.Group):
        shown = f"`{context.command_path} COMMAND {option}`"
        return f"{text} here: options stand behind a command, as in {shown}"
    meant = " or ".join(sorted(error.possibilities or ()))
    if meant:
        return f"{text}; did you mean {meant}?"
    params = () if context is None else context.command.params
    if option.startswith("--") or not any(isinstance(one, click.Argument) for one in params):
        return text
    return f"{text}; a value that begins with - stands behind --"
