"""Flat typed rows of operations and outcomes: what Spark sees of records that Python decodes.

A row per operation keeps the messages of a Put as parallel lists, as a row per outcome (see
`outcome_rows`) those of a Delivered: lists cost one row each way through Arrow, and Spark explodes
them where it needs a row per message. Contents stay behind: a row carries their size and an 8-byte
digest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import types as t

from ledgermq.protocol import operations as op
from ledgermq.protocol.administration import (
    BackUpJournal,
    PositionsSkipped,
    Relocate,
    VersionOffered,
)
from ledgermq.protocol.header_size import header_bytes
from ledgermq_spark.log.headers import (
    content_digest,
    grouping,
    header_text,
    settings_columns,
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
    """The row of one operation; `number` and `flag` mean what the kind has a use for.

    `number` is the length of what an Open says of its client, or of its takeover if that is longer,
    the credit of a Get, the puts of a Commit, the version of an Upgrade or a VersionOffered, the
    sequence number of a Correct, the delivery that an Alive is handing, the writer's clock of a
    TimeAgreed, how long a Put may wait in ms;
    `flag` the purge of a DeleteQueue or DeleteTopic, `gets_disabled` of an AlterQueue,
    `automatic_creation` of an AlterQueueManager. `target` is a destination, or the bare name where
    only queues are meant. `settings` are those given, as JSON. `headers` is null where no message
    of a Put has one. `grouped` says that the operation has to do with groups, get options or group
    affinity. `redelivery_delay_ms` is that of an Open or OpenConsumer. The last columns are the
    source and the deduplication id of a Put.
    """
    head = _first_columns(operation, position, append_time_us, trusted)
    handed = getattr(operation, "handed_through", None)
    selection = _selection(operation)
    late = getattr(operation, "redelivery_delay_ms", None)
    beside = (*grouping(operation), *settings_columns(operation), late)
    name = getattr(operation, "deduplication_id", None)
    return (*head, *selection, handed, *beside, *_source(operation), name)


def _first_columns(
    operation: op.Operation, position: int, append_time_us: int, trusted: bool
) -> tuple[Any, ...]:
    """The columns that every protocol entry had from the first, up to `content_digests`."""
    kind = type(operation).__name__
    if isinstance(operation, op.SessionOperation):
        tail = _SESSION_TAILS.get(type(operation), lambda _: _tail())(operation)
        head = (operation.session, operation.session_sequence, operation.answered_through)
        return (position, append_time_us, trusted, kind, None, None, *head, *tail)
    if isinstance(operation, op.Unreadable):
        why = (operation.reason, operation.detail)
        return (position, append_time_us, trusted, kind, *why, *_NOTHING[:3], *_tail())
    start = (position, append_time_us, trusted, kind, None, None, None, None, None)
    if isinstance(operation, op.Open):
        return (*start, *_open_tail(operation))
    if isinstance(operation, op.Suspect):
        return (*start, *_tail(sessions=list(operation.sessions)))
    if isinstance(operation, op.TimeAgreed):
        return (*start, *_tail(number=operation.writer_time))
    if isinstance(operation, VersionOffered):
        return (*start, *_tail(number=operation.version))
    if isinstance(operation, PositionsSkipped):
        place: op.DeliveryRange = {"first": operation.first, "last": operation.last}
        who = ("SKIP", operation.actor, operation.reason)
        return (*start, *_tail(ranges=[place], correction=who))
    return (*start, *_tail())


_NOTHING = (None,) * 40


def _source(operation: op.Operation) -> tuple[Any, ...]:
    if isinstance(operation, op.Put) and operation.source is not None:
        one = operation.source
        return (one["name"], one["partition"], one["first"], one["last"])
    return _NOTHING[:4]


def _selection(operation: op.Operation) -> tuple[Any, ...]:
    """The columns from `headers` on: what topics, selectors and client ids need."""
    if isinstance(operation, op.Put):
        headers = [header_text(message.get("header")) for message in operation.messages]
        given = headers if any(one is not None for one in headers) else None
        return (given, *_NOTHING[:8])
    if isinstance(operation, Relocate):
        headers = [header_text(next(iter(one["header"]), None)) for one in operation.messages]
        return (headers, *_NOTHING[:8])
    if isinstance(operation, op.OpenConsumer):
        one = operation
        fields = (one.selector, one.no_local, one.subscription, one.durable, one.shared)
        return (None, *fields, *_NOTHING[:3])
    if isinstance(operation, op.Unsubscribe):
        return (*_NOTHING[:3], operation.subscription, *_NOTHING[:5])
    if isinstance(operation, op.Open):
        return (*_NOTHING[:6], operation.client_id, operation.takeover, None)
    if isinstance(operation, op.CreateQueue | op.AlterQueue | op.CreateTopic | op.AlterTopic):
        return (*_NOTHING[:8], operation.unacknowledged_max)
    return _NOTHING[:9]


def _tail(
    *,
    consumer: int | None = None,
    target: str | None = None,
    number: int | None = None,
    ranges: list[op.DeliveryRange] | None = None,
    sessions: list[int] | None = None,
    description: str | None = None,
    message_bytes_max: int | None = None,
    flag: bool | None = None,
    correction: tuple[str | None, str | None, str | None] = (None, None, None),
) -> tuple[Any, ...]:
    firsts = lasts = None
    if ranges is not None:
        firsts = [one["first"] for one in ranges]
        lasts = [one["last"] for one in ranges]
    return (
        *_NOTHING[:5],
        consumer,
        target,
        number,
        firsts,
        lasts,
        sessions,
        description,
        message_bytes_max,
        flag,
        *correction,
        *_NOTHING[:6],
    )


def _open_tail(one: op.Open) -> tuple[Any, ...]:
    return (
        one.connection,
        one.session_key,
        one.lane,
        one.acknowledge_mode,
        one.suspect_timeout_ms,
        *_NOTHING[:2],
        max(len(one.client), len(one.takeover)),
        *_NOTHING[:15],
    )


def _put_tail(one: op.Put) -> tuple[Any, ...]:
    messages = one.messages
    return (
        *_NOTHING[:6],
        one.destination,
        one.blocking_ms,
        *_NOTHING[:9],
        [message["message_id"] for message in messages],
        [message["priority"] for message in messages],
        [message["persistent"] for message in messages],
        [len(message["content"]) for message in messages],
        [header_bytes(message.get("header")) for message in messages],
        [content_digest(message["content"], message.get("header")) for message in messages],
    )


def _relocate_tail(one: Relocate) -> tuple[Any, ...]:
    messages = [copy["message"] for copy in one.messages]
    headers = [next(iter(copy["header"]), None) for copy in one.messages]
    pairs = list(zip(messages, headers, strict=True))
    return (
        *_tail(correction=("RELOCATE", one.actor, one.reason))[:-6],
        [message["message_id"] for message in messages],
        [message["priority"] for message in messages],
        [message["persistent"] for message in messages],
        [len(message["content"]) for message in messages],
        [header_bytes(header) for header in headers],
        [content_digest(message["content"], header) for message, header in pairs],
    )


_SESSION_TAILS: dict[type, Any] = {
    op.OpenConsumer: lambda one: _tail(consumer=one.consumer, target=one.destination),
    op.CloseConsumer: lambda one: _tail(consumer=one.consumer, ranges=one.unseen),
    op.GiveBack: lambda one: _tail(consumer=one.consumer, ranges=one.unseen),
    op.Reject: lambda one: _tail(
        consumer=one.consumer,
        ranges=one.deliveries,
        flag=one.requeue,
        correction=(None, None, one.reason),
    ),
    op.Put: _put_tail,
    Relocate: _relocate_tail,
    op.Get: lambda one: _tail(consumer=one.consumer, number=one.credit),
    op.Acknowledge: lambda one: _tail(ranges=one.deliveries),
    op.Commit: lambda one: _tail(ranges=one.deliveries, number=one.puts),
    op.Rollback: lambda one: _tail(ranges=one.seen),
    op.Recover: lambda one: _tail(ranges=one.seen),
    op.Close: lambda one: _tail(ranges=one.seen),
    op.Alive: lambda one: _tail(number=one.handing),
    op.CreateQueue: lambda one: _tail(
        target=one.queue, description=one.description, message_bytes_max=one.message_bytes_max
    ),
    op.AlterQueue: lambda one: _tail(
        target=one.queue,
        description=one.description,
        message_bytes_max=one.message_bytes_max,
        flag=one.gets_disabled,
    ),
    op.DeleteQueue: lambda one: _tail(target=one.queue, flag=one.purge),
    op.CreateTopic: lambda one: _tail(
        target="topic:" + one.topic,
        description=one.description,
        message_bytes_max=one.message_bytes_max,
    ),
    op.AlterTopic: lambda one: _tail(
        target="topic:" + one.topic,
        description=one.description,
        message_bytes_max=one.message_bytes_max,
    ),
    op.DeleteTopic: lambda one: _tail(target="topic:" + one.topic, flag=one.purge),
    op.CreateTemporary: lambda one: _tail(target=one.destination),
    op.Unsubscribe: lambda _: _tail(),
    op.RollbackTransaction: lambda one: _tail(
        number=one.target_session, correction=("ROLLBACK", one.actor, one.reason)
    ),
    op.EndSession: lambda one: _tail(
        number=one.target_session, correction=("END", one.actor, one.reason)
    ),
    op.AlterQueueManager: lambda one: _tail(flag=one.automatic_creation),
    BackUpJournal: lambda one: _tail(correction=("BACKUP", one.actor, one.reason)),
    op.Upgrade: lambda one: _tail(number=one.version),
    op.Correct: lambda one: _tail(
        target=one.queue,
        number=one.sequence,
        correction=(one.action, one.actor, one.reason),
    ),
}
