"""What client and queue manager call by a keyword, as the option that was typed for it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import click

# Words that no sentence has; in quotation marks they are somebody's own.
_KEYWORD: Final = re.compile(r"""(?<![\w'"`.:/-])[a-z]+(?:_[a-z]+)+(?![\w'"`])""")
# How keywords end that take a number where their option takes it with a unit, or as a factor.
_UNITS: Final = {"_ms": " (in ms)", "_percent": " (in percent)"}


def with_options(text: str, group: click.Group, given: Sequence[str]) -> str:
    """An error's text for whoever called a command of the group with what is `given`."""
    command: click.Command = group
    for word in given:
        if not isinstance(command, click.Group):
            break
        command = command.get_command(click.Context(command), word) or command
    options = {
        (one.name or "").removesuffix("_ms"): one.opts[0]
        for one in command.params
        if isinstance(one, click.Option)
    }

    def spelled(found: re.Match[str]) -> str:
        for ending, unit in _UNITS.items():
            option = options.get(found[0].removesuffix(ending))
            if option is not None and found[0].endswith(ending):
                return option + unit
        return options.get(found[0], found[0])

    return _KEYWORD.sub(spelled, text)
