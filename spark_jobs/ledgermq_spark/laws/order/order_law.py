"""Law F: nothing that somebody may have is passed over, and nobody is left beside it."""

from __future__ import annotations

from ledgermq_spark.laws.law import Breach, Law


def _found(kind: str) -> Breach:
    return Breach(kind, f"SELECT * FROM {{disorder}} WHERE kind = '{kind}'")


LAW = Law(
    letter="F",
    sentence="Each consumer is given what comes first of what it may have, by priority, number and "
    "the rules of groups and FIFO modes; nobody with credit is left beside what it may have; "
    "where only the newest messages are kept, older ones go.",
    breaches=(_found("reordered"), _found("unexpected"), _found("lost")),
)
