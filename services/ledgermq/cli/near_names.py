"""Which name was meant: what is called otherwise elsewhere, or written nearly so."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from typing import Final

import click

# What people type who come from other systems and commands, and what it is called here: the first
# that there is.
_ELSEWHERE: Final = {
    "help": ("--help",),
    "version": ("--version",),
    "start": ("resume", "up"),
    "server": ("up",),
    "broker": ("up",),
    "send": ("put",),
    "publish": ("put",),
    "receive": ("get",),
    "consume": ("get",),
    "read": ("get",),
    "peek": ("browse",),
    "message": ("msg",),
    "messages": ("msg",),
    "transaction": ("txn",),
    "transactions": ("txn",),
    "dead-letters": ("dlq",),
    "dead-letter": ("dlq",),
    "exchange": ("topic",),
    "bind": ("binding create",),
    "unbind": ("binding delete",),
    "divert": ("binding",),
    "qmgr": ("manager",),
    "shovel": ("relay",),
    "federation": ("relay",),
    "permissions": ("acl",),
    "health": ("check", "doctor"),
    "ping": ("check",),
    "status": ("stat", "show", "doctor"),
    "history": ("trace",),
    "ls": ("list", "queue list"),
    "list": ("queue list",),
    "list_queues": ("queue list",),
    "create": ("queue create",),
    "define": ("create", "queue create"),
    "declare": ("create", "queue create"),
    "add": ("create",),
    "new": ("create",),
    "alter": ("queue alter",),
    "set": ("alter",),
    "update": ("alter",),
    "edit": ("alter",),
    "delete": ("queue delete",),
    "rm": ("delete", "queue delete"),
    "remove": ("delete", "queue delete"),
    "drop": ("delete", "queue delete"),
    "show": ("queue show",),
    "stat": ("show", "queue stat"),
    "display": ("show", "queue show"),
    "describe": ("show", "queue show"),
    "info": ("show", "queue show"),
    "purge": ("queue purge",),
    "clear": ("purge", "queue purge"),
    "empty": ("purge", "queue purge"),
    "move": ("queue move",),
    "pause": ("suspend", "queue suspend"),
    "unpause": ("resume", "queue resume"),
    "suspend": ("queue suspend",),
    "resume": ("queue resume",),
    "kill": ("end", "session end"),
    "cancel": ("rollback", "end"),
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
    return f"{text}; did you mean {meant}?" if meant else text
