"""Flat typed rows of operations and outcomes: what Spark sees of records that Python decodes.

A row per operation keeps the messages of a Put as parallel lists, as a row per outcome (see
`outcome_rows`) those of a Delivered: lists cost one row each way through Arrow, and Spark explodes
them where it needs a row per message. Contents stay behind: a row carries their size and an 8-byte
digest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any, Final, get_args, get_type_hints

import pyarrow as pa
from pyspark.sql import types as t

from ledgermq.protocol import operations as op
from ledgermq.protocol.administration import (
    BackUpJournal,
    CopyMessages,
    DeleteMessages,
    HandlingOperation,
    MoveMessages,
    PositionsSkipped,
    PurgeQueue,
    Relocate,
    VersionOffered,
)
from ledgermq.protocol.get_options import PLAIN, Options
from ledgermq.protocol.header_size import header_bytes
from ledgermq.protocol.topic_patterns import is_pattern, regular_expression
from ledgermq_spark.log.headers import (
    UNIT_LIMITS,
    compact,
    content_digest,
    header_text,
    manager_settings_text,
    options_told,
    place_settings_text,
    relocated,
)

LONG = t.LongType()
TEXT = t.StringType()
FLAG = t.BooleanType()
BYTES = t.BinaryType()
LONGS = t.ArrayType(LONG)
TEXTS = t.ArrayType(TEXT)

# Names and types.
Columns = Sequence[tuple[str, t.DataType]]
OPERATION_COLUMNS: Columns = (
    ("position", LONG),
    ("append_time_us", LONG),
    ("trusted", FLAG),
    ("kind", TEXT),
    ("reason", TEXT),
    ("detail", TEXT),
    ("session", LONG),
    ("session_sequence", LONG),
    ("answered_through", LONG),
    ("connection", BYTES),
    ("session_key", BYTES),
    ("lane", LONG),
    ("acknowledge_mode", TEXT),
    ("suspect_timeout_ms", LONG),
    ("consumer", LONG),
    ("target", TEXT),
    ("number", LONG),
    ("range_first", LONGS),
    ("range_last", LONGS),
    ("sessions", LONGS),
    ("description", TEXT),
    ("message_bytes_max", LONG),
    ("flag", FLAG),
    ("action", TEXT),
    ("actor", TEXT),
    ("why", TEXT),
    ("message_ids", t.ArrayType(BYTES)),
    ("priorities", LONGS),
    ("persistent", t.ArrayType(FLAG)),
    ("sizes_bytes", LONGS),
    ("headers_bytes", LONGS),
    ("content_digests", LONGS),
    ("headers", t.ArrayType(TEXT)),
    ("selector", TEXT),
    ("no_local", FLAG),
    ("subscription", TEXT),
    ("durable", FLAG),
    ("shared", FLAG),
    ("client_id", TEXT),
    ("takeover", BYTES),
    ("unacknowledged_max", LONG),
    ("handed_through", LONG),
    ("options", TEXT),
    ("group_affinity", FLAG),
    ("grouped", FLAG),
    ("settings", TEXT),
    ("maximum_lifetime_ms", LONG),
    ("redelivery_delay_ms", LONG),
    ("consumer_priority", LONG),
    ("source", TEXT),
    ("source_partition", LONG),
    ("source_first", LONG),
    ("source_last", LONG),
    ("deduplication_id", TEXT),
)

_ARROW: dict[t.DataType, pa.DataType] = {
    LONG: pa.int64(),
    TEXT: pa.string(),
    FLAG: pa.bool_(),
    BYTES: pa.binary(),
}


def columns_of(kind: type) -> Columns:
    """The columns of rows that have the fields of a named tuple or dataclass."""
    types = {int: LONG, str: TEXT, bytes: BYTES, bool: FLAG}
    hints = get_type_hints(kind).items()
    return [(name, types[(get_args(hint) or (hint,))[0]]) for name, hint in hints]


def arrow_type(kind: t.DataType) -> pa.DataType:
    """The Arrow type of a Spark type that columns of rows have."""
    if isinstance(kind, t.ArrayType):
        return pa.list_(arrow_type(kind.elementType))
    if isinstance(kind, t.StructType):
        return pa.struct([(one.name, arrow_type(one.dataType)) for one in kind.fields])
    return _ARROW[kind]


def spark_schema(columns: Columns) -> t.StructType:
    """The Spark schema of a table of rows."""
    return t.StructType([t.StructField(name, kind) for name, kind in columns])


def arrow_schema(columns: Columns) -> pa.Schema:
    """The Arrow schema of a table of rows."""
    return pa.schema([(name, arrow_type(kind)) for name, kind in columns])


def arrow_batch(columns: Columns, rows: Iterable[tuple[Any, ...]]) -> pa.RecordBatch:
    """Turn rows, tuples in the order of the columns, into one Arrow batch."""
    return pa.RecordBatch.from_arrays(
        arrow_arrays(columns, rows), names=[name for name, _ in columns]
    )


def arrow_table(columns: Columns, rows: Iterable[tuple[Any, ...]]) -> pa.Table:
    """The same as a table."""
    return pa.Table.from_batches([arrow_batch(columns, rows)])


def arrow_arrays(columns: Columns, rows: Iterable[tuple[Any, ...]]) -> list[pa.Array]:
    """Turn rows, tuples in the order of the columns, into one Arrow array for each column."""
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    return [
        pa.array(one, type=arrow_type(kind)) for one, (_, kind) in zip(values, columns, strict=True)
    ]


def batch_of(columns: Columns, struct: str, values: Sequence[pa.Array]) -> pa.RecordBatch:
    """Rows of one column that is a struct, by its fields.

    The first column says its name, all others are null.
    """
    count = len(values[0])
    arrays = []
    for name, kind in columns:
        if name == struct:
            assert isinstance(kind, t.StructType)
            arrays.append(pa.StructArray.from_arrays(values, names=kind.fieldNames()))
        else:
            arrays.append(pa.nulls(count, arrow_type(kind)))
    arrays[0] = pa.array([struct] * count, type=pa.string())
    return pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in columns])


def operation_row(
    operation: op.Operation, position: int, append_time_us: int, trusted: bool
) -> tuple[Any, ...]:
    """The row of one operation: what its kind says by column, null in all others.

    `number` is the length of what an Open says of its client, or of its takeover if that is
    longer, the credit of a Get, the puts of a Commit, the version of an Upgrade or a
    VersionOffered, the sequence number of a Correct, the delivery that an Alive is handing, the
    writer's clock of a TimeAgreed, how long a Put may wait in ms; `flag` the purge of a
    DeleteQueue or DeleteTopic, `gets_disabled` of an AlterQueue, `automatic_creation` of an
    AlterQueueManager, `requeue` of a Reject. `target` is a destination, or the bare name where only
    queues are meant. `settings` are those given, as JSON; of an operation by hand all that it asks
    for, of a Relocate which messages it is about, of a Bind or Unbind which topics. `headers` is
    null where no message of a Put has one. `grouped` says that the operation has to do with groups,
    get options or group affinity. `redelivery_delay_ms` is that of an Open, OpenConsumer or Reject.
    The last columns are the source and the deduplication id of a Put.
    """
    kind = type(operation)
    told = {
        "position": position,
        "append_time_us": append_time_us,
        "trusted": trusted,
        "kind": kind.__name__,
        "grouped": False,
    }
    if isinstance(operation, op.SessionOperation):
        told |= _same(operation, *_OF_SESSION)
    if kind in _SAID:
        told |= _SAID[kind](operation)
    return tuple(map(told.get, _NAMES))


_NAMES: Final = tuple(name for name, _ in OPERATION_COLUMNS)
_OF_SESSION: Final = ("session", "session_sequence", "answered_through", "handed_through")
_OF_PLACE: Final = ("description", "message_bytes_max", "unacknowledged_max")
_OF_QUEUE: Final = (*_OF_PLACE, "group_affinity")
# What a consumer asks for, under the same names in the columns.
_OF_CONSUMER: Final = (
    *("consumer", "selector", "no_local", "subscription", "durable", "shared"),
    *("redelivery_delay_ms", "consumer_priority"),
)
_OF_OPEN: Final = (
    *("connection", "session_key", "lane", "acknowledge_mode", "suspect_timeout_ms"),
    *("client_id", "takeover", "redelivery_delay_ms"),
)
Said = dict[str, Any]


def _same(operation: op.Operation, *names: str) -> Said:
    """Fields that are called as their columns are."""
    return {name: getattr(operation, name) for name in names}


def _ranges(ranges: Sequence[op.DeliveryRange]) -> Said:
    return {
        "range_first": [one["first"] for one in ranges],
        "range_last": [one["last"] for one in ranges],
    }


def _by_hand(action: str, one: Any) -> Said:
    """Who asked for it, and why."""
    return {"action": action, "actor": one.actor, "why": one.reason}


def _open(one: op.Open) -> Said:
    limits = _same(one, *UNIT_LIMITS)
    return _same(one, *_OF_OPEN) | {
        "number": max(len(one.client), len(one.takeover)),
        "settings": compact(limits) if any(limits.values()) else None,
    }


def _messages(messages: Sequence[Any], headers: Sequence[Any]) -> Said:
    """Messages with their headers, in parallel lists."""
    each = list(zip(messages, headers, strict=True))
    return {
        "message_ids": [one["message_id"] for one in messages],
        "priorities": [one["priority"] for one in messages],
        "persistent": [one["persistent"] for one in messages],
        "sizes_bytes": [len(one["content"]) for one in messages],
        "headers_bytes": [header_bytes(header) for header in headers],
        "content_digests": [content_digest(one["content"], header) for one, header in each],
        "headers": [header_text(header) for header in headers],
    }


def _put(one: op.Put) -> Said:
    headers = [message.get("header") for message in one.messages]
    source = one.source
    told = _messages(one.messages, headers) | {
        "target": one.destination,
        "number": one.blocking_ms,
        "grouped": any(header is not None and header.get("group") for header in headers),
        "deduplication_id": one.deduplication_id,
    }
    if all(header is None for header in headers):
        told["headers"] = None
    if source is not None:
        told |= {
            "source": source["name"],
            "source_partition": source["partition"],
            "source_first": source["first"],
            "source_last": source["last"],
        }
    return told


def _relocate(one: Relocate) -> Said:
    headers = [next(iter(copy["header"]), None) for copy in one.messages]
    return {
        **_by_hand("RELOCATE", one),
        **_messages([copy["message"] for copy in one.messages], headers),
        "settings": compact(relocated(one)),
    }


def _get(one: op.Get) -> Said:
    options = one.options
    return {
        "consumer": one.consumer,
        "number": one.credit,
        "options": None if options is None else compact(options_told(options)),
        "grouped": options is not None and Options(**options) != PLAIN,
    }


def _queue(one: op.CreateQueue | op.AlterQueue) -> Said:
    grouped = bool(one.group_affinity)
    settings = place_settings_text(one)
    return _same(one, *_OF_QUEUE) | {"target": one.queue, "grouped": grouped, "settings": settings}


def _topic(one: op.CreateTopic | op.AlterTopic) -> Said:
    settings = place_settings_text(one)
    return _same(one, *_OF_PLACE) | {"target": "topic:" + one.topic, "settings": settings}


def _bound(one: op.Bind | op.Unbind) -> Said:
    """Where what goes on; `name` is what the names of topics are like, if there is a pattern."""
    topics = one.topics
    name = {"name": regular_expression(topics)} if is_pattern(topics) else {}
    return {"target": one.destination, "settings": compact({"topics": topics} | name)}


def _unseen(one: op.CloseConsumer | op.GiveBack) -> Said:
    return _ranges(one.unseen) | {"consumer": one.consumer}


def _rejected(one: op.Reject) -> Said:
    told = {"flag": one.requeue, "why": one.reason}
    return _ranges(one.deliveries) | _same(one, "consumer", "redelivery_delay_ms") | told


def _handled(one: HandlingOperation | BackUpJournal) -> Said:
    return {"settings": compact(asdict(one) | {"kind": type(one).__name__})}


# What each kind says; one that is not here says nothing besides its session.
_SAID: Final[dict[type, Callable[[Any], Said]]] = {
    op.Unreadable: lambda one: _same(one, "reason", "detail"),
    op.Open: _open,
    op.Suspect: lambda one: {"sessions": list(one.sessions)},
    op.TimeAgreed: lambda one: {"number": one.writer_time},
    VersionOffered: lambda one: {"number": one.version},
    PositionsSkipped: lambda one: {
        **_by_hand("SKIP", one),
        **_ranges([{"first": one.first, "last": one.last}]),
    },
    op.OpenConsumer: lambda one: _same(one, *_OF_CONSUMER) | {"target": one.destination},
    op.CloseConsumer: _unseen,
    op.GiveBack: _unseen,
    op.Reject: _rejected,
    op.Put: _put,
    Relocate: _relocate,
    op.Get: _get,
    op.Acknowledge: lambda one: _ranges(one.deliveries),
    op.Commit: lambda one: _ranges(one.deliveries) | {"number": one.puts},
    op.Rollback: lambda one: _ranges(one.seen),
    op.Recover: lambda one: _ranges(one.seen),
    op.Close: lambda one: _ranges(one.seen),
    op.Alive: lambda one: {"number": one.handing},
    op.CreateQueue: _queue,
    op.AlterQueue: lambda one: _queue(one) | {"flag": one.gets_disabled},
    op.DeleteQueue: lambda one: {"target": one.queue, "flag": one.purge},
    op.CreateTopic: _topic,
    op.AlterTopic: _topic,
    op.DeleteTopic: lambda one: {"target": "topic:" + one.topic, "flag": one.purge},
    op.CreateTemporary: lambda one: {"target": one.destination},
    op.Bind: lambda one: _bound(one) | _same(one, "selector"),
    op.Unbind: _bound,
    op.Unsubscribe: lambda one: _same(one, "subscription"),
    op.RollbackTransaction: lambda one: {
        **_by_hand("ROLLBACK", one),
        "number": one.target_session,
    },
    op.EndSession: lambda one: {**_by_hand("END", one), "number": one.target_session},
    op.AlterQueueManager: lambda one: {
        "flag": one.automatic_creation,
        "settings": manager_settings_text(one),
        "maximum_lifetime_ms": one.maximum_lifetime_ms,
    },
    **dict.fromkeys((PurgeQueue, DeleteMessages, MoveMessages, CopyMessages), _handled),
    BackUpJournal: lambda one: _handled(one) | _by_hand("BACKUP", one),
    op.Upgrade: lambda one: {"number": one.version},
    op.Correct: lambda one: {
        **_by_hand(one.action, one),
        "target": one.queue,
        "number": one.sequence,
    },
}
