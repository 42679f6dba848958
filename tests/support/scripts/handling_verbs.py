"""The verbs of the script language for messages handled by hand, and the question beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ledgermq.core.snapshot.message_records import stored_message
from ledgermq.core.state.records import Message
from ledgermq.protocol import administration
from ledgermq.protocol.administration import MessageSelection, RelocatedMessage
from ledgermq.protocol.header_size import header_bytes
from ledgermq.protocol.operations import Header, Operation, PutMessage
from support.scripts.script import Line
from support.scripts.verb_parts import Verb, common, destination_of, selector_text, yes

if TYPE_CHECKING:
    from support.scripts.play import Player


def selection_of(line: Line, numbers: list[str]) -> MessageSelection:
    """`VERB SOURCE [NUMBERS...] [selector= after= limit= sub= client= durable=]`; `3..5` or `7`."""
    ranges = [one.partition("..") for one in numbers]
    options = line.options
    return {
        "source": destination_of(line.words[0]),
        "subscription": options.get("sub", ""),
        "client_id": options.get("client", ""),
        "durable": options.get("durable") != "no",
        "selector": selector_text(options.get("selector")),
        "sequences": [
            {"first": int(first), "last": int(last or first)} for first, _, last in ranges
        ],
        "after_sequence": int(options.get("after", -1)),
        "limit": int(options.get("limit", 0)),
    }


def _why(line: Line) -> dict[str, str]:
    """`actor=TEXT reason=TEXT`; `*1024` for so many letters, `-` for none."""
    told = {name: line.options.get(name, "test") for name in ("actor", "reason")}
    return {
        name: "x" * int(text[1:]) if text.startswith("*") else text.replace("-", "")
        for name, text in told.items()
    }


def _purge(player: Player, line: Line) -> Operation:
    selection = selection_of(line, line.words[1:])
    return administration.PurgeQueue(**common(player, line), selection=selection, **_why(line))


def _delete(player: Player, line: Line) -> Operation:
    selection = selection_of(line, line.words[1:])
    return administration.DeleteMessages(**common(player, line), selection=selection, **_why(line))


def _move(player: Player, line: Line) -> Operation:
    return administration.MoveMessages(
        **common(player, line),
        selection=selection_of(line, line.words[2:]),
        target=destination_of(line.words[1]),
        to_origin=yes(line.options.get("to_origin")) or False,
        **_why(line),
    )


def _retry(player: Player, line: Line) -> Operation:
    selection = selection_of(line, line.words[1:])
    return administration.MoveMessages(
        **common(player, line), selection=selection, to_origin=True, **_why(line)
    )


def _copy(player: Player, line: Line) -> Operation:
    return administration.CopyMessages(
        **common(player, line),
        selection=selection_of(line, line.words[2:]),
        target=destination_of(line.words[1]),
        **_why(line),
    )


def _stored(player: Player, place: str) -> Message | None:
    """The live message at `QUEUE#NUMBER` or `SUBSCRIPTION#NUMBER`."""
    name, _, number = place.partition("#")
    for queue in player.state.stores.values():
        if getattr(queue, "key", ("", queue.name))[1] == name:
            return queue.messages.get(int(number))
    return None


def _relocated(player: Player, word: str, options: dict[str, str]) -> RelocatedMessage:
    """`PLACE,PLACE...`: what is at the first one, as it was put; options say what is not so."""
    places = word.split(",")
    known = [(place, _stored(player, place)) for place in places]
    first = next((one for _, one in known if one is not None), None)
    header = None if first is None else stored_message(first)["header"]
    size = 1 if first is None else first.size_bytes
    size -= 0 if not header else header_bytes(header[0])
    told = {
        "message_id": b"gone".ljust(16) if first is None else first.message_id,
        "priority": 4 if first is None else first.priority,
        "persistent": True if first is None else first.persistent,
        "content": b"x" * size,
    }
    wrong = {
        "id": {"message_id": b"other".ljust(16)},
        "priority": {"priority": 9 - told["priority"]},
        "mode": {"persistent": not told["persistent"]},
        "size": {"content": b"x" * (size + 1)},
    }
    told |= wrong.get(options.get("differs", ""), {})
    found = header or []
    return {
        "put_position": int(options.get("put", 0 if first is None else first.put_position)),
        "put_index": int(options.get("index", 0 if first is None else first.put_index)),
        "places": [
            {
                "created_position": 999 if one is None else one.queue.created_position,
                "sequence": int(place.partition("#")[2]),
            }
            for place, one in known
        ]
        * int(options.get("times", 1)),
        "message": cast("PutMessage", told),
        "header": cast("list[Header]", found * int(options.get("headers", 1))),
    }


def _relocate(player: Player, line: Line) -> Operation:
    """`relocate PLACES... [differs=id|priority|mode|size put= index= headers= times= copies=]`."""
    copies = [_relocated(player, word, line.options) for word in line.words]
    return administration.Relocate(
        **common(player, line),
        messages=copies * int(line.options.get("copies", 1)),
        **_why(line),
    )


def _back_up(player: Player, line: Line) -> Operation:
    """`back-up-journal THROUGH KEPT_FROM NEEDED_FROM`."""
    through, kept_from, needed_from = map(int, line.words)
    positions = {"through": through, "kept_from": kept_from, "needed_from": needed_from}
    return administration.BackUpJournal(**common(player, line), **positions, **_why(line))


HANDLING_VERBS: dict[str, Verb] = {
    "back-up-journal": _back_up,
    "copy": _copy,
    "delete-messages": _delete,
    "move": _move,
    "purge": _purge,
    "relocate": _relocate,
    "retry": _retry,
}
