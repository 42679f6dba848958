"""The header of a message: what its sender gave for selectors to read, checked and as a branch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ledgermq.core.operations import Header, HeaderBranch, PropertyValue
from ledgermq.wire.content import ContentError, checked_value

__all__ = ["EMPTY_HEADER", "header_of", "make_header"]

HEADER: Final = "ledgermq.message.Header"
EMPTY_HEADER: Final[Header] = {"properties": {}, "correlation_id": None, "type": None}


def make_header(
    properties: Mapping[str, PropertyValue] | None, correlation_id: str | None, type_: str | None
) -> HeaderBranch | None:
    """The header of a message, None if there is nothing in it; ContentError names what is wrong."""
    if not properties and correlation_id is None and type_ is None:
        return None
    fields: Header = {
        "properties": {
            name: _checked(f"property {name!r}", name, value)
            for name, value in (properties or {}).items()
        },
        "correlation_id": _checked_text("correlation_id", correlation_id),
        "type": _checked_text("type", type_),
    }
    return (HEADER, fields)


def _checked(what: str, name: Any, value: Any) -> PropertyValue:
    checked: PropertyValue = checked_value(what, name, value, with_bytes=False)
    _checked_text(f"the name of {what}", name)
    if isinstance(checked, str):
        _checked_text(what, checked)
    return checked


def _checked_text(what: str, text: Any) -> str | None:
    if text is None:
        return None
    if not isinstance(text, str):
        raise ContentError(f"{what} is {type(text).__name__}: it must be str or None")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ContentError(f"{what} is no text that can be written: {error}") from error
    return text


def header_of(branch: HeaderBranch | None) -> Header:
    """The fields of a message's header; all empty where there is none."""
    return EMPTY_HEADER if branch is None else branch[1]
