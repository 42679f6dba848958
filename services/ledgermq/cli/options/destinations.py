"""Destinations on the command line: a bare NAME is a queue; `queue:NAME` and `topic:NAME` say."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from itertools import takewhile
from typing import Final

import click

from ledgermq.cli.options.together import Command, Read
from ledgermq.client.destinations import checked_destination

KINDS: Final = ("queue", "topic")
# With these a pattern begins to be more than a name.
_SPECIAL: Final = re.compile(r"[*?[]")
EXPLAINED: Final = "DESTINATION is queue:NAME or topic:NAME; a NAME alone is a queue."


def destination_from(text: str) -> tuple[str, str]:
    """Kind and name of a destination to put to; whether the name may be one, the client says."""
    kind, colon, name = text.partition(":")
    return (kind, name) if colon and kind in KINDS else ("queue", text)


def destination_named(text: str) -> str:
    return ":".join(destination_from(text))


def valid_destination(text: str) -> str:
    """The same, where no client looks at it; InvalidDestinationError: it may be none."""
    return checked_destination(destination_named(text))


DESTINATION: Final = Read("DESTINATION", valid_destination, EXPLAINED)


def name_argument(kind: str) -> Callable[[Command], Command]:
    """NAME of a queue or topic, which may say that it is one."""
    return click.argument("name", type=Read("NAME", partial(bare_name, kind)))


def patterns_argument(kind: str) -> Callable[[Command], Command]:
    """PATTERNS of the names of queues or topics, as shells have them for files."""
    return click.argument("patterns", nargs=-1, type=Read("PATTERN", partial(bare_name, kind)))


def bare_name(kind: str, text: str) -> str:
    """The name in `KIND:NAME`; a text in which more is no name stays, for the client to refuse."""
    name = text.removeprefix(f"{kind}:")
    return text if ":" in name else name


def fits(name: str, patterns: Sequence[str]) -> bool:
    """Whether a name fits one of the patterns; without any, all do."""
    return not patterns or any(fnmatchcase(name, one) for one in patterns)


def common_prefix(patterns: Sequence[str]) -> str:
    """What all names begin with that fit any of the patterns."""
    begun = sorted(_SPECIAL.split(one, maxsplit=1)[0] for one in patterns)
    if not begun:
        return ""
    first, last = begun[0], begun[-1]
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    return first[: len(list(alike))]


def queue_from(text: str, *, why: str) -> str:
    """The name of a queue; a topic is wrong use, and `why` says what to do instead.

    Raises:
        InvalidDestinationError: No queue may have it.
    """
    kind, name = destination_from(text)
    if kind != "queue":
        raise click.UsageError(f"{text} is a topic: {why}")
    checked_destination(f"queue:{name}")
    return name
