"""Conditions that several groups of reasons ask for, as Spark SQL."""

from __future__ import annotations

from ledgermq.protocol.limits import ACTOR_CHARACTERS_MAX, DESCRIPTION_CHARACTERS_MAX

NAME_CHARACTERS_MAX = 128
# How many bytes the messages of a Put take in all.
BYTES = """aggregate(arrays_zip(sizes_bytes, headers_bytes), 0L,
    (sum, item) -> sum + item.sizes_bytes + item.headers_bytes)"""


def is_name(text: str) -> str:
    """Whether a text may name a queue, topic, subscription or client (§3)."""
    is_spelled = rf"{text} RLIKE r'\A[A-Za-z0-9._/%-]+\z'"
    return f"({is_spelled} AND length({text}) <= {NAME_CHARACTERS_MAX})"


def is_destination(text: str) -> str:
    """Whether a text is `queue:` or `topic:`, whatever follows."""
    return f"({text} LIKE 'queue:%' OR {text} LIKE 'topic:%')"


def name_in(destination: str) -> str:
    """The name in a destination."""
    return f"substr({destination}, 7)"


def names_nobody(actor: str, why: str) -> str:
    """Whether who asks or why is not said as it must be (§3)."""
    return (
        f"(length({actor}) NOT BETWEEN 1 AND {ACTOR_CHARACTERS_MAX}"
        f" OR length({why}) NOT BETWEEN 1 AND {DESCRIPTION_CHARACTERS_MAX})"
    )


def stands(since: str, until: str, position: str) -> str:
    """Whether what is there from one position to another is there for the entry at a third."""
    return f"({since} < {position} AND ({until} IS NULL OR {until} > {position}))"


def place(alias: str, destination: str) -> str:
    """A join with the queue or topic of that name which is there for the entry of `one`."""
    return f"""
LEFT JOIN {{destinations}} AS {alias} ON {alias}.queue_manager = one.queue_manager
    AND {alias}.destination = {destination}
    AND {stands(f"{alias}.made_at", f"{alias}.gone_at", "one.position")}"""


def may_stand(since: str, until: str, position: str) -> str:
    """The same, or for a part of that entry: it began or ended there, before or after the rest."""
    return f"({since} <= {position} AND ({until} IS NULL OR {until} >= {position}))"


def spelled(selector: str) -> str:
    """A selector as it counts: blank text is none (§12)."""
    return f"regexp_replace({selector}, r'\\A[ \\t\\f\\r\\n]+\\z', '')"
