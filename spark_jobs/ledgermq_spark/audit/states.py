"""Compares states: rebuilt against live (checkpoints), and rebuilt against the set-based tables."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from ledgermq.wire.framing.codec import decode_record
from ledgermq_spark.audit.evidence import Evidence, hexadecimal, shown
from ledgermq_spark.derivation.destinations import TOPIC_PREFIX, is_topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ledgermq_spark.derivation.tables import Tables
    from ledgermq_spark.rebuild.checkpoints import Checkpoint


EVIDENCE_MAX = 200
Record = dict[str, Any]
LISTS = {
    "queues": "name",
    "topics": "name",
    "subscriptions": "created_position",
    "connections": "connection",
    "sessions": "session",
    "consumers": "consumer",
    "deliveries": "delivery",
    "open_puts": "destination",
    "messages": "put_index",
    "bonds": "bucket",
}
QUEUE_FIELDS = (
    "created_position",
    "description",
    "message_bytes_max",
    "unacknowledged_max",
    "group_affinity",
    "groups",
    "temporary",
    "gets_disabled",
    "settings",
    "message_count",
    "sent_and_committed",
    "expired",
    "unborn",
    "delayed",
    "removed_by_administration",
    "moved",
    "dropped",
    "min_sequence",
    "max_sequence",
    "next_sequence",
    "current",
    "uncommitted_puts",
    "receivers",
)
TOPIC_FIELDS = (
    *("created_position", "description", "message_bytes_max", "temporary", "settings"),
    *(
        "unacknowledged_max",
        "subscriptions",
        "receivers",
        "message_count",
        "sent_and_committed",
        "expired",
    ),
    *("moved", "dropped"),
    *("min_sequence", "max_sequence", "next_sequence", "uncommitted_puts"),
)
SUBSCRIPTION_FIELDS = (
    *("topic", "kind", "name", "client_id", "shared", "selector", "no_local", "receivers"),
    *("message_count", "added", "sent_and_committed", "min_sequence", "max_sequence", "current"),
    *(
        "expired",
        "removed_by_administration",
        "moved",
        "dropped",
        "unborn",
        "delayed",
        "pending",
        "unacknowledged",
        "uncommitted_gets",
    ),
)
# Without an unconsumed message they tell of the one that went last, which the tables do not order.
ENQUEUE_TIMES = ("first_enqueued_at", "last_enqueued_at")
MESSAGE_FIELDS = (
    "message_id",
    "put_position",
    "put_index",
    "priority",
    "persistent",
    "size_bytes",
    "enqueued_at",
    "backout_count",
    "uncounted_backout_count",
    "group",
    "in_unit_of_work",
    "origin",
)
SESSION_FIELDS = (
    "acknowledge_mode",
    "confirmed",
    "suspected",
    "last_sequence",
    "answered_through",
    "next_delivery",
    "consumer_highest",
    "client_id",
    "subscriptions",
)


class _Comparison:
    """Compares records of one source with the rebuilt ones; `position` is where both are true."""

    def __init__(self, source: str, position: int) -> None:
        self._source = source
        self._position = position

    def differs(self, where: str, field: str, expected: Any, found: Any, **named: Any) -> Evidence:
        return Evidence(
            kind="state mismatch",
            source=self._source,
            summary=f"{where}: {field} differs",
            position=self._position,
            field=field,
            expected=shown(expected),
            found=shown(found),
            **named,
        )

    def fields(
        self,
        where: str,
        names: Sequence[str],
        expected: Mapping[str, Any] | None,
        found: Mapping[str, Any] | None,
        **named: Any,
    ) -> Iterator[Evidence]:
        """Each field that differs, or the one fact that a record is absent on a side."""
        if expected is None or found is None:
            there = ("there" if expected else "absent", "there" if found else "absent")
            yield self.differs(where, "presence", *there, **named)
            return
        for name in names:
            if expected[name] != found[name]:
                yield self.differs(where, name, expected[name], found[name], **named)

    def records(
        self, where: str, mine: dict[str, Any], other: dict[str, Any]
    ) -> Iterator[Evidence]:
        """Field by field, lists of entries by their key, inside one another."""
        for name, value in mine.items():
            told = other.get(name)
            if value == told:
                continue
            if name in LISTS and isinstance(value, list) and isinstance(told, list):
                yield from self._entries(where, name, value, told)
            elif name == "replies" and isinstance(told, list):
                yield self.differs(where, "replies kept", len(value), len(told))
            else:
                yield self.differs(where, name, value, told)

    def _entries(
        self, where: str, name: str, mine: list[Any], other: list[Any]
    ) -> Iterator[Evidence]:
        key = LISTS[name]
        expected = {one[key]: one for one in mine}
        found = {one[key]: one for one in other}
        for one in dict.fromkeys([*expected, *found]):
            inner = f"{where}, {name} {shown(one)}"
            if one in expected and one in found:
                yield from self.records(inner, expected[one], found[one])
            else:
                yield from self.fields(inner, (), expected.get(one), found.get(one))


def compare_live(
    root: bytes, blocks: list[bytes], live: Checkpoint, position: int
) -> list[Evidence]:
    """Compare the rebuilt state with the live one, chunk by chunk, then field by field."""
    comparison = _Comparison("live state", position)
    told: list[Evidence] = []
    if live.root != root:
        mine = decode_record(root)[1]
        told.extend(comparison.records("the queue manager", mine, live.root_record()))
    mine_only, live_only = _unshared(blocks, live.blocks), _unshared(live.blocks, blocks)
    built, kept = _stored(mine_only), _stored(live_only)
    for key in sorted(built.keys() | kept.keys()):
        queue, _, sequence = key
        known = built.get(key) or kept[key]
        told.extend(
            comparison.fields(
                f"message {sequence} of queue {queue}",
                list(known),
                built.get(key),
                kept.get(key),
                queue=queue,
                message_id=hexadecimal(known["message_id"]),
            )
        )
    return told[:EVIDENCE_MAX]


def _unshared(mine: list[bytes], others: list[bytes]) -> list[bytes]:
    known = {hashlib.sha256(block).digest() for block in others}
    return [block for block in mine if hashlib.sha256(block).digest() not in known]


def _stored(blocks: Iterable[bytes]) -> dict[tuple[str, int, int], dict[str, Any]]:
    found = {}
    for block in blocks:
        record = decode_record(block)[1]
        for message in record["messages"]:
            found[record["queue"], record["created_position"], message["sequence"]] = message
    return found


def compare_queues(
    totals: list[dict[str, Any]],
    statuses: list[dict[str, Any]],
    topics: list[dict[str, Any]],
    position: int,
) -> list[Evidence]:
    """Compare the tables' totals of each standing queue and topic with the rebuilt status."""
    comparison = _Comparison("tables", position)
    mine = {one["queue"]: one["status"] for one in totals if one["queue_deleted"] is None}
    rebuilt = {one["name"]: one for one in statuses}
    rebuilt |= {TOPIC_PREFIX + one["name"]: one for one in topics}
    told: list[Evidence] = []
    for name in sorted(mine.keys() | rebuilt.keys()):
        expected, found = rebuilt.get(name), mine.get(name)
        where = name if is_topic(name) else f"queue {name}"
        if expected and found:
            # Of settings that no rule here asks for the tables know those that were given.
            known = {one: expected["settings"].get(one) for one in found["settings"]}
            expected = {**expected, "settings": known}
        names = _timed(TOPIC_FIELDS, found) if is_topic(name) else QUEUE_FIELDS
        told.extend(comparison.fields(where, names, expected, found, queue=name))
    return told


def compare_subscriptions(
    totals: list[dict[str, Any]], statuses: list[dict[str, Any]], position: int
) -> list[Evidence]:
    """Compare the tables' totals of each standing subscription with the rebuilt status."""
    comparison = _Comparison("tables", position)
    mine = {
        one["created_position"]: one["status"] for one in totals if one["ended_position"] is None
    }
    rebuilt = {one["created_position"]: one for one in statuses}
    told: list[Evidence] = []
    for created in sorted(mine.keys() | rebuilt.keys()):
        expected, found = rebuilt.get(created), mine.get(created)
        topic = TOPIC_PREFIX + (expected or found or {})["topic"]
        where = f"the subscription of {topic} made at {created}"
        names = _timed(SUBSCRIPTION_FIELDS, found)
        told.extend(comparison.fields(where, names, expected, found, queue=topic))
    return told


def _timed(names: tuple[str, ...], found: dict[str, Any] | None) -> tuple[str, ...]:
    """The fields to compare: enqueue times are known of messages that are still there."""
    return names + ENQUEUE_TIMES if found and found["message_count"] else names


def untimed(totals: list[dict[str, Any]], subscriptions: list[dict[str, Any]]) -> int:
    """How many standing topics and subscriptions there are whose enqueue times are not compared."""
    topics = [one for one in totals if one["kind"] == "topic" and one["queue_deleted"] is None]
    standing = [one for one in subscriptions if one["ended_position"] is None]
    return sum(not one["status"]["message_count"] for one in [*topics, *standing])


def compare_messages(tables: Tables, rebuilt: DataFrame, position: int) -> list[Evidence]:
    """Compare resident messages of the tables with those rebuilt, field by field.

    `rebuilt` has the columns queue, queue_created, sequence and those of a stored message; of a
    topic message, a row for each subscription that has it, with the creation of that.
    """
    comparison = _Comparison("tables", position)
    keys = ["queue", "queue_created", "sequence"]
    columns = [*keys, *MESSAGE_FIELDS]
    copies = (
        tables.copies.where("fate = 'resident'")
        .withColumn("group", f.lit(None).cast("string"))
        .withColumn("in_unit_of_work", f.lit(False))
    )
    resident = (
        tables.messages.where("fate = 'resident' AND copies IS NULL")
        .select(*columns)
        .unionByName(copies.withColumn("queue_created", f.col("subscription")).select(*columns))
    )
    mine = resident.select(*keys, f.struct(*MESSAGE_FIELDS).alias("tables"))
    other = rebuilt.select(*keys, f.struct(*MESSAGE_FIELDS).alias("rebuilt"))
    rows = (
        mine.join(other, keys, how="full_outer")
        .where("NOT (tables <=> rebuilt)")
        .orderBy(*keys)
        .limit(EVIDENCE_MAX)
        .collect()
    )
    told: list[Evidence] = []
    for row in rows:
        known = row["tables"] or row["rebuilt"]
        told.extend(
            comparison.fields(
                f"message {row['sequence']} of queue {row['queue']}",
                MESSAGE_FIELDS,
                row["rebuilt"] and row["rebuilt"].asDict(),
                row["tables"] and row["tables"].asDict(),
                queue=row["queue"],
                message_id=hexadecimal(known["message_id"]),
            )
        )
    return told


def compare_sessions(tables: Tables, root: dict[str, Any], position: int) -> list[Evidence]:
    """Compare the sessions that stand, and the deliveries they hold, with those rebuilt."""
    comparison = _Comparison("tables", position)
    subscribed: dict[int, list[tuple[int, int]]] = {}
    for one in tables.facts.directory.receptions:
        if one.closed is None:
            subscribed.setdefault(one.session, []).append((one.consumer, one.subscription))
    standing = tables.facts.acts.where("what = 'alive'")
    clients = tables.facts.operations.where("kind = 'Open'").select(
        f.col("position").alias("session"), "client_id"
    )
    alive = {
        row["session"]: {
            "acknowledge_mode": row["kind"],
            "confirmed": row["flag"],
            "suspected": row["text"] == "suspected",
            "last_sequence": row["unit"],
            "answered_through": row["last"],
            "next_delivery": row["first"],
            "consumer_highest": row["consumer"],
            "client_id": row["client_id"],
            "subscriptions": subscribed.get(row["session"], []),
        }
        for row in standing.join(clients, "session", how="left").collect()
    }
    rebuilt = _rebuilt_sessions(root)
    told: list[Evidence] = []
    for handle in sorted(alive.keys() | rebuilt.keys()):
        expected, found = rebuilt.get(handle), alive.get(handle)
        told.extend(
            comparison.fields(f"session {handle}", SESSION_FIELDS, expected, found, session=handle)
        )
    told.extend(_holdings(comparison, tables, root))
    return told[:EVIDENCE_MAX]


def _rebuilt_sessions(root: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """Sessions with their client id, and which consumer gets from which subscription."""
    clients = {one["connection"]: one["client_id"] for one in root["connections"]}
    created = {one["created_position"] for one in root["subscriptions"]}
    return {
        one["session"]: one
        | {
            "client_id": clients[one["connection"]],
            "subscriptions": [
                (consumer["consumer"], consumer["created_position"])
                for consumer in one["consumers"]
                if consumer["open"] and consumer["created_position"] in created
            ],
        }
        for one in root["sessions"]
    }


def _holdings(comparison: _Comparison, tables: Tables, root: dict[str, Any]) -> Iterator[Evidence]:
    """Deliveries in flight: which message each session holds under which number."""
    rows = tables.deliveries.where("settled = 'open'").select("session", "delivery", "sequence")
    held = {(row["session"], row["delivery"]): row["sequence"] for row in rows.collect()}
    wanted = {
        (one["session"], delivery["delivery"]): delivery["sequence"]
        for one in root["sessions"]
        for delivery in one["deliveries"]
    }
    for key in sorted(held.keys() | wanted.keys()):
        if held.get(key) != wanted.get(key):
            where = f"delivery {key[1]} of session {key[0]}"
            yield comparison.differs(
                where, "sequence", wanted.get(key), held.get(key), session=key[0]
            )
