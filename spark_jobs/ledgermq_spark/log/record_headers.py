"""What headers and keys of records say, held against the values (PROTOCOL.md §2).

Headers decide nothing on the log, and a writer may leave them out: what is absent contradicts
nothing. But they say where a refusal goes, and whose an outcome is; one that denies the value was
put there by a program at fault, or altered. A value that is no operation is not compared: there
the headers are all that there is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.sql import functions as f

from ledgermq.protocol.operations import Open, Operation, SessionOperation, Unreadable
from ledgermq.wire.framing.codec import full_name_of
from ledgermq.wire.framing.headers import chunk_headers, operation_headers, with_identity
from ledgermq_spark.audit.findings.evidence import Evidence

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


# A record's headers, as Spark reads them: each with `key` and `value`.
Headers: TypeAlias = Iterable[Mapping[str, Any]] | None
# Name, what the value says, what the header says.
Denial: TypeAlias = tuple[str, str, str]
EVIDENCE_MAX = 200
KEY = "key"
CHAIN = "chain"
OF_ALL = ("content-type", "ce_specversion", "ce_type")
SOURCE, CONNECTION, LANE = "ce_source", "ledgermq-connection", "ledgermq-lane"
# Headers of a session's operation, what they say, and what its Open says.
OF_SESSION = (
    (SOURCE, "header_source", "connection"),
    (CONNECTION, "header_connection", "connection"),
    (LANE, "header_lane", "lane"),
)


def _given(headers: Headers) -> list[tuple[str, bytes]]:
    """The headers that say something."""
    return [(one["key"], one["value"]) for one in headers or () if one["value"] is not None]


def sender(headers: Headers) -> tuple[str | None, str | None, str | None]:
    """Whose connection the headers of an operation and its source name, and which lane, as text."""
    given = dict(_given(headers))
    connection, source, lane = (given.get(name) for name in (CONNECTION, SOURCE, LANE))
    return (
        None if connection is None else _text(connection).lower(),
        None if source is None else _text(source).rpartition("/")[2].lower(),
        None if lane is None else _text(lane),
    )


def denials_of_operation(
    queue_manager: str, key: bytes | None, headers: Headers, operation: Operation
) -> str | None:
    """What key and headers say that the operation does not; None: nothing.

    Of operations of a session, connection and lane stand in its Open: `check_operation_headers`.
    """
    if isinstance(operation, Unreadable):
        return None
    full_name = full_name_of(operation)
    if isinstance(operation, Open):
        shared = operation_headers(
            queue_manager, operation.connection, operation.lane, -1, full_name
        )
        due = dict(with_identity(shared, -1, 0))
    elif isinstance(operation, SessionOperation):
        session, sequence = operation.session, operation.session_sequence
        shared = operation_headers(queue_manager, b"", 0, session, full_name)
        due = dict(with_identity(shared, session, sequence))
        del due[CONNECTION], due[LANE]
        due[SOURCE] += (sender(headers)[1] or "").encode()
    else:
        worker = getattr(operation, "worker", None)
        shared = operation_headers(queue_manager, b"", 0, -1, full_name)
        due = {name: value for name, value in shared if name in OF_ALL}
        if worker is not None:
            due[SOURCE] = f"/ledgermq/{queue_manager}/{worker}".encode()
    return _denials(key, queue_manager.encode(), headers, due)


def denials_of_outcomes(
    queue_manager: str,
    key: bytes | None,
    headers: Headers,
    full_name: str,
    place: tuple[int, int],
    *,
    chain_due: bool = False,
) -> str | None:
    """What key and headers of a record of the lanes say that it does not hold; None: nothing.

    Unlike others they must name the connection: readers skip by it what is not theirs.
    """
    connection = (key or b"").decode("utf-8", "replace")
    try:
        named = bytes.fromhex(connection)
    except ValueError:
        named = b""
    due = dict(chunk_headers(queue_manager, named, *place, full_name))
    missing = [] if CONNECTION in dict(_given(headers)) else [(CONNECTION, connection, "")]
    if chain_due:
        missing.append((CHAIN, "the digest chain at its last outcome", ""))
    return _denials(None, b"", headers, due, missing)


def _denials(
    key: bytes | None,
    key_due: bytes,
    headers: Headers,
    due: Mapping[str, bytes],
    found: Iterable[Denial] = (),
) -> str | None:
    denials = [*found]
    if key is not None and key != key_due:
        denials.append((KEY, _text(key_due), _text(key)))
    for name, value in _given(headers):
        expected = due.get(name)
        if expected is None or value == expected:
            continue
        # Hexadecimal digits may be capitals.
        if name not in (SOURCE, CONNECTION) or value.lower() != expected.lower():
            denials.append((name, _text(expected), _text(value)))
    return json.dumps(denials) if denials else None


def _text(value: bytes) -> str:
    return bytes(value).decode("utf-8", "backslashreplace")


def check_operation_headers(operations: DataFrame) -> list[Evidence]:
    """Operations whose key or headers deny their value, or what their session's Open says."""
    opens = operations.where("kind = 'Open'").select(
        f.col("position").alias("session"),
        f.lower(f.hex("connection")).alias("connection"),
        f.col("lane").cast("string").alias("lane"),
    )
    headers = [f.col("header_connection"), f.col("header_source"), f.col("header_lane")]
    foreign = (
        operations.select("position", "session", *headers)
        .join(opens, "session", how="inner")
        .where(
            (headers[0] != f.col("connection"))
            | (headers[1] != f.col("connection"))
            | (headers[2] != f.col("lane"))
        )
        .orderBy("position")
        .limit(EVIDENCE_MAX)
    )
    own = operations.where("denials IS NOT NULL").select("position", "denials")
    found: dict[int, list[Denial]] = {}
    for row in own.orderBy("position").limit(EVIDENCE_MAX).collect():
        found[row["position"]] = json.loads(row["denials"])
    for row in foreign.collect():
        pairs = found.setdefault(row["position"], [])
        for name, column, due in OF_SESSION:
            differs = row[column] is not None and row[column] != row[due]
            if differs and name not in [one[0] for one in pairs]:
                pairs.append((name, row[due], row[column]))
    return [
        _evidence(
            "altered operations",
            f"headers or key of the record at position {position} say something else than its "
            "operation",
            position,
            pairs,
        )
        for position, pairs in sorted(found.items())
    ]


def check_outcome_records(recorded: DataFrame) -> list[Evidence]:
    """Records of the lanes whose headers deny what they hold; chunks without their digest chain."""
    rows = (
        recorded.where("denials IS NOT NULL")
        .select("position", "lane_partition", "lane_offset", "denials")
        .orderBy("position", "lane_partition", "lane_offset")
        .limit(EVIDENCE_MAX)
        .collect()
    )
    found = []
    for row in rows:
        place = f"record {row['lane_offset']} of outcomes partition {row['lane_partition']}"
        pairs = json.loads(row["denials"])
        kind, position = "altered outcome", row["position"]
        of_chain = [pair for pair in pairs if pair[0] == CHAIN]
        if of_chain:
            why = f"{place} lacks the digest chain, which its worker owes"
            found.append(_evidence(kind, why, position, of_chain))
        of_headers = [pair for pair in pairs if pair[0] != CHAIN]
        if of_headers:
            why = f"headers of {place} say something else than its outcomes"
            found.append(_evidence(kind, why, position, of_headers))
    return found


def _evidence(kind: str, summary: str, position: int, pairs: Iterable[Denial]) -> Evidence:
    names, expected, found = zip(*pairs, strict=True)
    return Evidence(
        kind=kind,
        source=CHAIN if names == (CHAIN,) else "headers",
        summary=summary,
        position=position,
        field=", ".join(names),
        expected=", ".join(expected),
        found=", ".join(one or "nothing" for one in found),
    )
