"""What a pass knows of a store, as lines of text from which another pass goes on.

A line is a JSON list: what it is of, and its values. Messages come first, then consumers, since
these hold messages, then what is about both.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any, Final

from ledgermq.protocol.get_options import GroupPosition
from ledgermq.selector import parse_selector
from ledgermq_spark.laws.order.store import Settings
from ledgermq_spark.laws.order.store_groups import Group
from ledgermq_spark.laws.order.store_pass import StorePass
from ledgermq_spark.laws.order.store_records import IN_FLIGHT, Consumer, Message, message_of
from ledgermq_spark.log.headers import options_of, options_told

# What a message came with, and what became of it, as far as JSON has it as it is.
OF_MESSAGE: Final = (
    *("sequence", "rank", "is_persistent", "enqueued_at_us", "header", "is_in_unit"),
)
BECOME: Final = ("state", "delivery", "is_in_doubt", "received")
OF_CONSUMER: Final = (
    *("session", "number", "priority", "credit", "waiting_since", "doubt"),
    *("is_open", "is_suspected", "is_work_ended"),
)


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
            "active": [] if store.active is None else _name(store.active),
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
    if values.get("active"):
        store.activate(*values["active"])
    store.waits, store.receipts = values["waits"], values["receipts"]
    for key, number in values["parked"]:
        known.parked.behind[bytes.fromhex(key)] = number


def _message_values(message: Message) -> dict[str, Any]:
    return {name: getattr(message, name) for name in (*OF_MESSAGE, *BECOME)} | {
        "message_id": message.message_id.hex(),
        "is_grouped": message.group is not None,
    }


def _message(values: dict[str, Any]) -> Message:
    message = message_of(
        values["sequence"],
        -values["rank"][0],
        bytes.fromhex(values["message_id"]),
        values["is_persistent"],
        values["enqueued_at_us"],
        values["header"],
        values["is_grouped"],
        is_in_unit=values["is_in_unit"],
    )
    for name in BECOME:
        setattr(message, name, values[name])
    return message


def _consumer_values(consumer: Consumer) -> dict[str, Any]:
    return {name: getattr(consumer, name) for name in OF_CONSUMER} | {
        "selector": consumer.selector.text if consumer.selector else "",
        "options": options_told(consumer.options._asdict()),
        "held": [one.sequence for one in consumer.held.values()],
        "position": _place_values(consumer.position),
        "settled_position": _place_values(consumer.settled_position),
    }


def _consumer(values: dict[str, Any]) -> Consumer:
    return Consumer(
        **{name: values[name] for name in OF_CONSUMER},
        selector=parse_selector(values["selector"]),
        options=options_of(values["options"]),
        position=_place(values["position"]),
        settled_position=_place(values["settled_position"]),
    )


def _place_values(position: GroupPosition | None) -> list[Any] | None:
    return None if position is None else [position[0].hex(), *position[1:]]


def _place(values: list[Any] | None) -> GroupPosition | None:
    return None if values is None else (bytes.fromhex(values[0]), values[1], values[2])


def _name(consumer: Consumer) -> Iterable[int]:
    return (consumer.session, consumer.number)
