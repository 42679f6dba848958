"""What a law is: a sentence about every history, and the query that finds what breaks it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

# The columns of what a query finds: `position` is where it shows, `store` where the queue, topic or
# subscription was made; -1: none.
FOUND = (
    "CAST(position AS BIGINT) AS position",
    "CAST(store AS BIGINT) AS store",
    "CAST(sequence AS BIGINT) AS sequence",
    "CAST(session AS BIGINT) AS session",
    "summary",
    "CAST(expected AS STRING) AS expected",
    "CAST(found AS STRING) AS found",
)
# Findings are told in this order.
ORDER = ("position", "law", "kind", "store", "sequence", "session")


class Breach(NamedTuple):
    """One way to break a law: the audit's word for it, and the query that finds it."""

    kind: str
    query: str


# Breaches by the audit's word for them: each is called with its query, where that stands.
duplicated = partial(Breach, "duplicated")
lost = partial(Breach, "lost")
reordered = partial(Breach, "reordered")
unexpected = partial(Breach, "unexpected")
torn_transaction = partial(Breach, "torn transaction")
altered_outcome = partial(Breach, "altered outcome")
state_mismatch = partial(Breach, "state mismatch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """A law: a letter that reports name it by, its sentence, and what breaks it."""

    letter: str
    sentence: str
    breaches: tuple[Breach, ...]
