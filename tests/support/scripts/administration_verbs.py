"""The verbs of the script language for settings, queues and topics."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ledgermq.protocol import operations
from ledgermq.protocol.administration import PositionsSkipped, VersionOffered
from ledgermq.protocol.operations import Operation
from ledgermq.protocol.settings import given_settings, redelivery_in
from support.scripts.script import Line, time_us
from support.scripts.verb_parts import Verb, common, selector_text, yes

if TYPE_CHECKING:
    from support.scripts.play import Player


def _create_topic(player: Player, line: Line) -> Operation:
    return operations.CreateTopic(
        **common(player, line),
        topic=line.words[0],
        description=_description(line) or "",
        message_bytes_max=int(line.options.get("max", 0)),
        settings=_settings(line),
        unacknowledged_max=int(line.options.get("unacked_max", 0)),
        moves_unrouted=yes(line.options.get("moves_unrouted")) or False,
        **_own_fields(line, otherwise=0),
    )


def _alter_topic(player: Player, line: Line) -> Operation:
    most, limit = line.options.get("max"), line.options.get("unacked_max")
    return operations.AlterTopic(
        **common(player, line),
        topic=line.words[0],
        description=_description(line),
        message_bytes_max=None if most is None else int(most),
        settings=_settings(line),
        unacknowledged_max=None if limit is None else int(limit),
        moves_unrouted=yes(line.options.get("moves_unrouted")),
        **_own_fields(line, otherwise=None),
    )


def _delete_topic(player: Player, line: Line) -> Operation:
    purge = "purge" in line.words[1:]
    return operations.DeleteTopic(**common(player, line), topic=line.words[0], purge=purge)


def _bound(line: Line) -> dict[str, str]:
    """A pattern of topics and a destination; `"#"` alone is no comment."""
    topics, destination = line.words
    return {"topics": topics.strip('"'), "destination": destination}


def _bind(player: Player, line: Line) -> Operation:
    selector = selector_text(line.options.get("selector"))
    return operations.Bind(**common(player, line), **_bound(line), selector=selector)


def _unbind(player: Player, line: Line) -> Operation:
    return operations.Unbind(**common(player, line), **_bound(line))


def _create(player: Player, line: Line) -> Operation:
    return operations.CreateQueue(
        **common(player, line),
        queue=line.words[0],
        description=_description(line) or "",
        message_bytes_max=int(line.options.get("max", 0)),
        unacknowledged_max=int(line.options.get("unacked_max", 0)),
        **_own_fields(line, otherwise=0),
        group_affinity=yes(line.options.get("affinity")) or False,
        settings=_settings(line),
    )


def _own_fields(line: Line, *, otherwise: int | None) -> dict[str, Any]:
    """`window=5s ids=3`: how long and how many deduplication ids are remembered.
    `messages_resume=2`, `bytes_resume=9`: marks of quotas. `inherits=no`: no redelivery of the
    queue manager. `single_active=yes`: one consumer at a time. `available_max=3`: no more.
    `last_value_key=color`: one of each.
    """
    given, is_made = line.options, otherwise is not None
    inherits = given.get("inherits", "yes" if is_made else None)
    single_active = given.get("single_active", "no" if is_made else None)
    return {
        **{name: int(given[name]) if name in given else otherwise for name in MARKS},
        "available_max": int(given["available_max"]) if "available_max" in given else otherwise,
        "last_value_key": _key(given.get("last_value_key", "none" if is_made else None)),
        "deduplication_window_ms": _ms(given["window"]) if "window" in given else otherwise,
        "deduplication_ids_max": int(given["ids"]) if "ids" in given else otherwise,
        "inherits_redelivery": yes(inherits),
        "single_active_consumer": yes(single_active),
    }


def _key(text: str | None) -> str | None:
    """The name of a property; `none`: no key."""
    return "" if text == "none" else text


def _description(line: Line) -> str | None:
    """`description=text`, or `description=*1024` for that many characters."""
    text = line.options.get("description")
    return "d" * int(text[1:]) if text is not None and text.startswith("*") else text


def _alter(player: Player, line: Line) -> Operation:
    most, limit = line.options.get("max"), line.options.get("unacked_max")
    return operations.AlterQueue(
        **common(player, line),
        queue=line.words[0],
        description=_description(line),
        message_bytes_max=None if most is None else int(most),
        gets_disabled=yes(line.options.get("gets_disabled")),
        unacknowledged_max=None if limit is None else int(limit),
        **_own_fields(line, otherwise=None),
        group_affinity=yes(line.options.get("affinity")),
        settings=_settings(line),
    )


def _ms(text: str) -> int:
    """`5s` in ms; `none`: -1."""
    return -1 if text == "none" else time_us(text) // 1_000


def _destination(text: str) -> str:
    """`queue:NAME` or `topic:NAME`; `none`: no destination."""
    return "" if text == "none" else text


def _steps(text: str) -> list[dict[str, int]]:
    """`1:5s,3:1s`: delays after so many failed redeliveries; `none`: no steps; `*100`: so many."""
    if text.startswith("*"):
        return [{"retries": one, "delay_ms": 0} for one in range(int(text[1:]))]
    told = [one.split(":") for one in text.split(",") if text != "none"]
    return [{"retries": int(retries), "delay_ms": _ms(delay)} for retries, delay in told]


# Settings of queues and topics by their names in scripts, and how a value is read.
SETTINGS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "ttl_override": ("time_to_live_override_ms", _ms),
    "delay_override": ("delivery_delay_override_ms", _ms),
    "expiry_destination": ("expiry_destination", _destination),
    "redelivery_override": ("redelivery_delay_override_ms", _ms),
    "limit": ("redelivery_limit", lambda text: -1 if text == "none" else int(text)),
    "multiplier": ("redelivery_delay_multiplier_percent", int),
    "delay_max": ("redelivery_delay_max_ms", _ms),
    "steps": ("redelivery_steps", _steps),
    "error_destination": ("error_destination", _destination),
    "puts_disabled": ("puts_disabled", yes),
    "messages_max": ("messages_max", int),
    "bytes_max": ("bytes_max", int),
    "policy": ("blocking_send_policy", str),
    "fifo_mode": ("fifo_mode", str),
    "keeps_group_order": ("keeps_group_order", yes),
}


# Marks of quotas, by their own names.
MARKS = ("messages_resume", "bytes_resume")
# Settings of the storage, by their own names.
STORAGE = ("segment_bytes", "segments_min", "segments_max")


def _settings(line: Line) -> dict[str, Any] | None:
    """The settings that a line names, or None."""
    told = [(SETTINGS[name], text) for name, text in line.options.items() if name in SETTINGS]
    return given_settings({name: read(text) for (name, read), text in told})


def _delete(player: Player, line: Line) -> Operation:
    purge = "purge" in line.words[1:]
    return operations.DeleteQueue(**common(player, line), queue=line.words[0], purge=purge)


def _alter_manager(player: Player, line: Line) -> Operation:
    lifetime, given = line.options.get("lifetime"), line.options
    return operations.AlterQueueManager(
        **common(player, line),
        automatic_creation=yes(line.options.get("automatic")),
        unit_of_work_time_limit_ms=_ms(given["unit"]) if "unit" in given else None,
        unit_of_work_idle_limit_ms=_ms(given["idle"]) if "idle" in given else None,
        maximum_lifetime_ms=None if lifetime is None else _ms(lifetime),
        **{
            name: int(given[name])
            for name in (*STORAGE, "messages_max", "bytes_max", *MARKS)
            if name in given
        },
        redelivery=redelivery_in(_settings(line)),
        journaling=yes(given.get("journaling")),
        journal_lifetime_ms=_ms(given["journal_lifetime"]) if "journal_lifetime" in given else None,
    )


def _upgrade(player: Player, line: Line) -> Operation:
    return operations.Upgrade(**common(player, line), version=int(line.words[0]))


def _offer(player: Player, line: Line) -> Operation:
    return VersionOffered(worker="w1", version=int(line.words[0]))


def _skip(player: Player, line: Line) -> Operation:
    """`skip FIRST LAST [actor=NAME] [reason=WORD]`, empty where they are given as none."""
    first, last = map(int, line.words)
    given = {name: line.options.get(name, "operator") for name in ("actor", "reason")}
    told = {name: "" if text == "none" else text for name, text in given.items()}
    return PositionsSkipped(first=first, last=last, **told)


def _correct(player: Player, line: Line) -> Operation:
    queue, sequence, action = line.words
    return operations.Correct(
        **common(player, line),
        queue=queue,
        sequence=int(sequence),
        action=action,
        actor="operator",
        reason="test",
    )


ADMINISTRATION_VERBS: dict[str, Verb] = {
    "alter": _alter,
    "alter-manager": _alter_manager,
    "alter-topic": _alter_topic,
    "correct": _correct,
    "bind": _bind,
    "create": _create,
    "create-topic": _create_topic,
    "delete": _delete,
    "delete-topic": _delete_topic,
    "offer": _offer,
    "skip": _skip,
    "unbind": _unbind,
    "upgrade": _upgrade,
}
