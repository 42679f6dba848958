"""The verbs of the script language for messages handled by hand, and the question beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgermq.core import administration
from ledgermq.core.administration import MessageSelection
from ledgermq.core.operations import Operation
from support.script import Line
from support.verb_parts import Verb, common, destination_of, selector_text, yes

if TYPE_CHECKING:
    from support.play import Player

__all__ = ["HANDLING_VERBS", "selection_of"]


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
    "retry": _retry,
}
