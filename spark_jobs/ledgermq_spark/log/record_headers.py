"""What headers and keys of records say, held against the values (PROTOCOL.md §2).

Headers decide nothing on the log, and a writer may leave them out: what is absent contradicts
nothing. But they say where a refusal goes, and whose an outcome is; one that denies the value was
put there by a program at fault, or altered. A value that is no operation is not compared: there
the headers are all that there is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from ledgermq.protocol.operations import Open, Operation, SessionOperation, Unreadable
from ledgermq.wire.framing.codec import full_name_of
from ledgermq.wire.framing.headers import chunk_headers, operation_headers, with_identity

# A record's headers, as Spark reads them: each with `key` and `value`.
Headers: TypeAlias = Iterable[Mapping[str, Any]] | None
# Name, what the value says, what the header says.
Denial: TypeAlias = tuple[str, str, str]
KEY = "key"
CHAIN = "chain"
OF_ALL = ("content-type", "ce_specversion", "ce_type")
SOURCE, CONNECTION, LANE = "ce_source", "ledgermq-connection", "ledgermq-lane"


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

    Of operations of a session, connection and lane stand in its Open: `audit.headers`.
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
