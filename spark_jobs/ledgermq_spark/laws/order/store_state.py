"""What a pass knows of a store, as lines of text from which another pass goes on.

A line is a JSON list: what it is of, and its values. Messages come first, then consumers, since
these hold messages, then what is about both.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from ledgermq.protocol.get_options import GroupPosition, Options
from ledgermq.selector import parse_selector
from ledgermq_spark.laws.order.store import Settings
from ledgermq_spark.laws.order.store_groups import Group
from ledgermq_spark.laws.order.store_pass import StorePass
from ledgermq_spark.laws.order.store_records import (
    IN_FLIGHT,
    Consumer,
    Message,
    group_key,
    group_place,
)
from ledgermq_spark.log.headers import header_of


def told(known: StorePass) -> Iterator[str]:
    """All that a pass knows where it ended."""
    for kind, values in _told(known):
        yield json.dumps([kind, values], separators=(",", ":"))


def learn(known: StorePass, line: str) -> None:
    """Lets a pass know what a line tells; lines come in the order in which they were told."""
    kind, values = json.loads(line)
    store = known.store
    match kind:
        case "lost":
            known.is_lost = True
        case "settings":
            store.settings = Settings(**values)
        case "message":
            message = _message(values)
            store.add(message)
            if message.state not in IN_FLIGHT:
                state, message.state = message.state, ""
                store.move(message, state)
        case "consumer":
            store.take_back(_consumer(values), values["held"])
        case "rest":
            _learn_rest(known, values)
        case "open put":
            message = _message(values)
            assert message.group is not None, "only those in groups are known"
            groups = known.group_puts.open_groups.setdefault(values["session"], {})
            groups.setdefault(message.group.group_id, Group()).add(message)


def _told(known: StorePass) -> Iterator[tuple[str, Any]]:
    store = known.store
    if known.is_lost:
        yield "lost", None
        return
    yield "settings", asdict(store.settings)
    for _, message in sorted(store.messages.items()):
        yield "message", _message_values(message)
    holders = {id(one.holder): one.holder for one in store.messages.values() if one.holder}
    closed = [one for one in holders.values() if not one.is_open]
    for consumer in (*store.consumers.values(), *closed):
        yield "consumer", _consumer_values(consumer)
    yield (
        "rest",
        {
            "reserved": [(one.hex(), *_name(by)) for one, by in store.reserved.items()],
            "bonds": [(bucket, *_name(by)) for bucket, by in store.bonds.items()],
            "waits": store.waits,
            "receipts": store.receipts,
            "parked": [(key.hex(), number) for key, number in known.parked.behind.items()],
        },
    )
    for session, groups in known.group_puts.open_groups.items():
        for message in (one for group in groups.values() for one in group.members()):
            yield "open put", _message_values(message) | {"session": session}


def _learn_rest(known: StorePass, values: dict[str, Any]) -> None:
    store = known.store
    for group_id, session, number in values["reserved"]:
        store.reserved[bytes.fromhex(group_id)] = store.consumers[session, number]
    for bucket, session, number in values["bonds"]:
        store.bonds[bucket] = store.consumers[session, number]
    store.waits, store.receipts = values["waits"], values["receipts"]
    for key, number in values["parked"]:
        known.parked.behind[bytes.fromhex(key)] = number


def _message_values(message: Message) -> dict[str, Any]:
    return {
        "sequence": message.sequence,
        "rank": message.rank,
        "message_id": message.message_id.hex(),
        "is_persistent": message.is_persistent,
        "enqueued_at_us": message.enqueued_at_us,
        "header": message.header,
        "is_grouped": message.group is not None,
        "is_in_unit": message.is_in_unit,
        "state": message.state,
        "delivery": message.delivery,
        "is_in_doubt": message.is_in_doubt,
        "received": message.received,
    }


def _message(values: dict[str, Any]) -> Message:
    header = header_of(values["header"])
    group = group_place(header) if values["is_grouped"] else None
    return Message(
        sequence=values["sequence"],
        rank=tuple(values["rank"]),
        message_id=bytes.fromhex(values["message_id"]),
        is_persistent=values["is_persistent"],
        enqueued_at_us=values["enqueued_at_us"],
        header=values["header"],
        group=group,
        is_in_unit=values["is_in_unit"],
        keeps_order=bool(header.get("k")),
        key=group_key(header, group),
        state=values["state"],
        delivery=values["delivery"],
        is_in_doubt=values["is_in_doubt"],
        received=values["received"],
    )


def _consumer_values(consumer: Consumer) -> dict[str, Any]:
    return {
        "session": consumer.session,
        "number": consumer.number,
        "selector": consumer.selector.text if consumer.selector else "",
        "options": _hexed(consumer.options._asdict()),
        "credit": consumer.credit,
        "waiting_since": consumer.waiting_since,
        "is_open": consumer.is_open,
        "is_suspected": consumer.is_suspected,
        "is_work_ended": consumer.is_work_ended,
        "held": [one.sequence for one in consumer.held.values()],
        "doubt": consumer.doubt,
        "position": _place_values(consumer.position),
        "settled_position": _place_values(consumer.settled_position),
    }


def _consumer(values: dict[str, Any]) -> Consumer:
    options = dict(values["options"])
    for name in ("message_id", "group_id"):
        options[name] = bytes.fromhex(options[name])
    return Consumer(
        session=values["session"],
        number=values["number"],
        selector=parse_selector(values["selector"]),
        options=Options(**options),
        credit=values["credit"],
        waiting_since=values["waiting_since"],
        is_open=values["is_open"],
        is_suspected=values["is_suspected"],
        is_work_ended=values["is_work_ended"],
        doubt=values["doubt"],
        position=_place(values["position"]),
        settled_position=_place(values["settled_position"]),
    )


def _hexed(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value.hex() if isinstance(value, bytes) else value for name, value in values.items()
    }


def _place_values(position: GroupPosition | None) -> list[Any] | None:
    return None if position is None else [position[0].hex(), *position[1:]]


def _place(values: list[Any] | None) -> GroupPosition | None:
    return None if values is None else (bytes.fromhex(values[0]), values[1], values[2])


def _name(consumer: Consumer) -> Iterable[int]:
    return (consumer.session, consumer.number)
