"""Destinations as applications write them: `queue:NAME` and `topic:NAME`."""

from __future__ import annotations

from typing import Final

from ledgermq.errors import InvalidDestinationError
from ledgermq.errors.shown import shown
from ledgermq.protocol.limits import is_name

QUEUE: Final = "queue:"
TOPIC: Final = "topic:"


def checked_destination(text: str) -> str:
    """The text, if it is a destination; else InvalidDestinationError."""
    if not isinstance(text, str) or not text.startswith((QUEUE, TOPIC)):
        raise InvalidDestinationError(
            f"{shown(text)} is no destination: write queue:NAME or topic:NAME, as in queue:orders",
            destination=str(text),
        )
    if not is_name(text.partition(":")[2]):
        raise InvalidDestinationError(
            f"{shown(text)} is no destination: a name has 1 to 128 characters of "
            "A-Z a-z 0-9 . _ / % -",
            destination=text,
        )
    return str.__str__(text)  # without a class of its own, such as that of an enumeration


def is_topic(destination: str) -> bool:
    """Whether a destination is a topic."""
    return destination.startswith(TOPIC)


def queue_name(text: str) -> str:
    """The name in `queue:NAME` or a bare `NAME`; else InvalidDestinationError."""
    return _name_in(text, QUEUE, TOPIC)


def topic_name(text: str) -> str:
    """The name in `topic:NAME` or a bare `NAME`; else InvalidDestinationError."""
    return _name_in(text, TOPIC, QUEUE)


def _name_in(text: str, own: str, other: str) -> str:
    if text.startswith(other):
        raise InvalidDestinationError(
            f"{shown(text)} is a {other[:-1]}, no {own[:-1]}", destination=text
        )
    return checked_destination(own + text.removeprefix(own))[len(own) :]
