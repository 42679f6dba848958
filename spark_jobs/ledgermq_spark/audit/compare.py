"""Compares the outcomes that the log calls for with those that are recorded on the lanes.

Outcomes are compared by a hash of their fields inside the engine; only those that differ come out
of it, for `classify`. A recorded outcome may repeat, if its repeats are equal. The text that
explains a refusal to people is compared too: it follows from entry and state alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final

from ledgermq_spark.laws.engines.engine import Frame
from ledgermq_spark.log.outcome_rows import OUTCOME_COLUMNS
from ledgermq_spark.log.rows import LONG

KEYS_MAX = 500
# What is not there, but of which nothing is proven.
UNPROVEN = {"expired", "unanswered"}
CHAIN = ("previous_position", "previous_index")
UNCOMPARED = ("position", "index", "content_digests", *CHAIN)
COMPARED = tuple(name for name, _ in OUTCOME_COLUMNS if name not in UNCOMPARED)
Key = tuple[int, int]
Row = dict[str, Any]
# The comparable form: refusals without a known session have no connection, lane or chain.
COMPARABLE: Final = """
SELECT *, xxhash64({compared}) AS hash, struct(previous_position, previous_index) AS chain
FROM (
    SELECT * EXCEPT (connection, lane),
        IF(previous_index <> -2, connection, NULL) AS connection,
        IF(previous_index <> -2, lane % {lanes}, -1) AS lane
    FROM {{rows}}
)
"""
# One row per (position, index): how often each side has it, and with what.
BY_KEY: Final = """
SELECT position, index, count_if(NOT is_told) AS wanted, count_if(is_told) AS found,
    max(IF(is_told, NULL, lane)) AS due_lane,
    max(IF(is_told, NULL, hash)) AS due,
    min(IF(is_told, hash, NULL)) AS low,
    max(IF(is_told, hash, NULL)) AS high,
    max(IF(is_told, NULL, chain)) AS due_chain,
    min(IF(is_told AND is_first, chain, NULL)) AS chain_low,
    max(IF(is_told AND is_first, chain, NULL)) AS chain_high,
    max(IF(is_told AND NOT is_first, chain, NULL)) AS chain_inner
FROM (
    SELECT position, index, FALSE AS is_told, TRUE AS is_first, lane, hash, chain FROM {rows}
    UNION ALL
    SELECT position, index, TRUE, ordinal = 0, lane, hash, chain FROM {found}
)
GROUP BY position, index
"""
# What each comes to. Inside a chunk a connection that was forgotten and came back follows its own
# past.
JUDGED: Final = """
SELECT position, index, wanted, found, due_chain AS chain,
    coalesce(IF(chain_low <> due_chain, chain_low, NULL),
        IF(chain_high <> due_chain, chain_high, NULL), chain_inner) AS chain_found,
    CASE
        WHEN found = 0 AND ({expired}) THEN 'expired'
        WHEN found = 0 AND position > {answered_until} THEN 'unanswered'
        WHEN found = 0 THEN 'missing'
        WHEN wanted = 0 THEN 'extra'
        WHEN low <> due OR high <> due THEN 'differing'
        WHEN chain_low <> due_chain OR chain_high <> due_chain
            OR (chain_inner <> due_chain AND due_chain.previous_index <> -1) THEN 'chain'
        ELSE 'same'
    END AS status
FROM {{rows}}
"""
COUNTED: Final = """
SELECT status, count(*) AS keys, sum(wanted) AS wanted, sum(found) AS found FROM {rows}
GROUP BY status
"""
ODD: Final = "SELECT * FROM {rows} WHERE status NOT IN ('same', 'expired', 'unanswered')"
FIRST: Final = "SELECT * FROM {{rows}} ORDER BY position, index LIMIT {most}"
NEAR: Final = "SELECT * FROM {rows} LEFT SEMI JOIN {keys} USING (position, index)"
DELIVERED: Final = """
SELECT position, index, put_position, put_indexes[at] AS put_index
FROM (SELECT * FROM {rows} WHERE kind = 'Delivered')
    LATERAL VIEW posexplode(put_positions) AS at, put_position
"""
# Other odd ones that deliver a message that the first ones deliver.
OTHERS: Final = """
SELECT * FROM {{rows}} LEFT ANTI JOIN {{keys}} USING (position, index)
    LEFT SEMI JOIN (
        SELECT position, index FROM (
            SELECT * FROM {{wanted}} UNION ALL SELECT * FROM {{found}}
        )
            LEFT SEMI JOIN {{messages}} USING (put_position, put_index)
    ) USING (position, index)
ORDER BY position, index LIMIT {most}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """Outcomes on which the log and the lanes differ, by (position, index), and how many in all.

    `missing` are not recorded, `extra` not called for, `differing` both but unlike; `chains` are
    equal but for the outcome that they name before them: (expected, found). Of many these are the
    first ones; `others` are such behind them that deliver the same messages.
    """

    compared: int = 0
    recorded: int = 0
    missing: dict[Key, Row] = field(default_factory=dict)
    extra: dict[Key, Row] = field(default_factory=dict)
    differing: dict[Key, tuple[Row, list[Row]]] = field(default_factory=dict)
    chains: dict[Key, tuple[Key, Key]] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    others: Differences | None = None

    @property
    def messages(self) -> set[tuple[int, int]]:
        """The messages that they deliver, by where these were put."""
        rows = [*self.missing.values(), *self.extra.values()]
        rows += [row for one, told in self.differing.values() for row in (one, *told)]
        return {
            put
            for row in rows
            for put in zip(row["put_positions"] or (), row["put_indexes"] or (), strict=True)
        }


def differences(
    expected: Frame,
    recorded: Frame,
    lanes: int,
    *,
    floors: dict[int, int] | None = None,
    answered_until: int | None = None,
) -> Differences:
    """Compare outcomes by (position, index); recorded ones may repeat.

    Args:
        expected: Outcomes as the rebuild makes them.
        recorded: Outcomes as the lanes hold them.
        lanes: How many lanes the queue manager has.
        floors: Lanes whose older records have expired: at or below that position a missing outcome
            proves nothing (status `expired`). Lane -1 stands for refusals without a session.
        answered_until: Above this position a missing outcome may still come (`unanswered`).
    """
    comparable = COMPARABLE.format(compared=", ".join(COMPARED), lanes=lanes)
    wanted, found = expected.ask(comparable), recorded.ask(comparable)
    expired = [
        f"due_lane = {lane} AND position <= {position}" for lane, position in (floors or {}).items()
    ]
    judged = wanted.ask(BY_KEY, found=found).ask(
        JUDGED.format(
            expired=" OR ".join(expired) or "FALSE",
            answered_until=2**62 if answered_until is None else answered_until,
        )
    )
    totals = {row["status"]: row for row in judged.rows(COUNTED)}
    result = Differences(
        compared=sum(row["wanted"] for row in totals.values()),
        recorded=sum(row["found"] for row in totals.values()),
        totals={name: row["keys"] for name, row in totals.items()},
    )
    if set(totals) - UNPROVEN - {"same"}:
        odd = judged.ask(ODD)
        first = odd.rows(FIRST.format(most=KEYS_MAX))
        _collect(result, first, wanted, found)
        if len(first) == KEYS_MAX and result.messages:
            others = Differences()
            _collect(others, _others(odd, first, result, wanted, found), wanted, found)
            return replace(result, others=others)
    return result


def _others(
    odd: Frame, first: list[Row], result: Differences, wanted: Frame, found: Frame
) -> list[Row]:
    """What else differs and delivers a message of the first ones, which may have gone there."""
    columns = (("put_position", LONG), ("put_index", LONG))
    return odd.rows(
        OTHERS.format(most=KEYS_MAX),
        keys=_keys(odd, first),
        wanted=wanted.ask(DELIVERED),
        found=found.ask(DELIVERED),
        messages=odd.beside("messages", columns, sorted(result.messages)),
    )


def _keys(beside: Frame, odd: list[Row]) -> Frame:
    columns = (("position", LONG), ("index", LONG))
    return beside.beside("keys", columns, [_key(row) for row in odd])


def _collect(result: Differences, odd: list[Row], wanted: Frame, found: Frame) -> None:
    """Adds the outcomes that differ, as far as they are told."""
    keys = _keys(wanted, odd)
    calls = {_key(row): row for row in wanted.rows(NEAR, keys=keys)}
    told: dict[Key, list[Row]] = {}
    for row in found.rows(NEAR, keys=keys):
        told.setdefault(_key(row), []).append(row)
    for row in odd:
        key = _key(row)
        if row["status"] == "missing":
            result.missing[key] = calls[key]
        elif row["status"] == "extra":
            result.extra[key] = told[key][0]
        elif row["status"] == "differing":
            result.differing[key] = (calls[key], told[key])
        else:
            result.chains[key] = (_chain(row["chain"]), _chain(row["chain_found"]))


def _key(row: Row) -> Key:
    return (row["position"], row["index"])


def _chain(row: Row) -> Key:
    return (row["previous_position"], row["previous_index"])
