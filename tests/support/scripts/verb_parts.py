"""What the verbs of the script language have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ledgermq.protocol.operations import Operation
from support.scripts.script import Line

if TYPE_CHECKING:
    from support.scripts.play import Player


Entry = Operation | bytes | None
Verb = Callable[["Player", Line], Entry]


def common(player: Player, line: Line) -> dict[str, Any]:
    """The fields that every operation of a session has."""
    session = player.session(line.session)
    handle = player.handles.get(line.session, 999)
    following = 1 if session is None else session.last_sequence + 1
    return {
        "session": int(line.options.get("handle", handle)),
        "session_sequence": int(line.options.get("n", following)),
        "answered_through": int(line.options.get("answered", 0)),
        "handed_through": int(line.options.get("handed", 0)),
    }


def yes(text: str | None) -> bool | None:
    """`yes` or `no`; None stays None."""
    return None if text is None else {"yes": True, "no": False}[text]


def identifier(name: str) -> bytes:
    """Sixteen bytes that show a name."""
    return name.encode().ljust(16, b"\0")


def destination_of(word: str) -> str:
    """`NAME`, `topic:NAME`, or `~CONNECTION/queue:NAME` for a temporary one."""
    if word.startswith("~"):
        owner, _, rest = word[1:].partition("/")
        kind, _, name = rest.partition(":")
        return f"{kind}:temporary/{identifier(owner).hex()}/{name}"
    return word if ":" in word else "queue:" + word


def selector_text(written: str | None) -> str:
    """A selector as a script writes it: `~` for a space, `==` for `=`, `"` for an apostrophe."""
    return (written or "").replace("~", " ").replace("==", "=").replace('"', "'")
