"""Headers on the wire: a list beside that of the messages, empty where no message has any.

Most messages have none, and a field of every message would cost each of them a tenth of what it
takes to write and read it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

GROUP: Final = "ledgermq.message.Group"


def split(messages: Sequence[Any], empty: Mapping[str, Any]) -> list[Any]:
    """The headers of messages, as they are written beside them."""
    if not any("header" in one for one in messages):
        return []
    return [_with_branch(one["header"]) if "header" in one else empty for one in messages]


def _with_branch(header: dict[str, Any]) -> dict[str, Any]:
    """A header whose group names its branch of the union; else the writer would look for it."""
    group = header.get("group")
    return header if group is None else {**header, "group": (GROUP, group)}


def join(messages: Sequence[Any], headers: Sequence[Any], empty: Mapping[str, Any]) -> None:
    """Gives messages the headers read beside them; ValueError if these are not one for each."""
    if not headers:
        return
    if len(headers) != len(messages):
        raise ValueError(f"{len(headers)} headers for {len(messages)} messages")
    for message, header in zip(messages, headers, strict=True):
        if header != empty:
            message["header"] = header
