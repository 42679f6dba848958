"""How the tables call queues and topics: a queue by its bare name, a topic as `topic:NAME`.

No name has a colon, so the two never meet in one column.
"""

from __future__ import annotations

import re

NAME = re.compile(r"[A-Za-z0-9._/%-]{1,128}")
QUEUE_PREFIX = "queue:"
TOPIC_PREFIX = "topic:"
TEMPORARY = "temporary/"


def store_of(destination: str) -> str:
    """What the tables call a destination."""
    return destination.removeprefix(QUEUE_PREFIX)


def is_topic(store: str) -> bool:
    """Whether the tables' name is that of a topic."""
    return store.startswith(TOPIC_PREFIX)


def plain_name(store: str) -> str:
    """The name of a queue or topic without its kind."""
    return store.removeprefix(TOPIC_PREFIX)


def is_temporary(store: str) -> bool:
    """Whether it lives with a connection: no other name begins so."""
    return plain_name(store).startswith(TEMPORARY)


def own_prefix(connection: str) -> str:
    """How the temporary names of a connection (in hexadecimal) begin."""
    return f"{TEMPORARY}{connection}/"


def valid_name(name: str) -> bool:
    """Whether a text may name a queue, topic, subscription or client id (PROTOCOL.md §3)."""
    return NAME.fullmatch(name) is not None


def valid_destination(destination: str) -> bool:
    """Whether a text is `queue:NAME` or `topic:NAME`."""
    kind, _, name = destination.partition(":")
    return kind in ("queue", "topic") and valid_name(name)
