"""The content of a message: its body and what else the fold neither decides on nor selects by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, Final, TypeAlias

from ledgermq.errors import MessageFormatError, NameTooLongError, UnsupportedValueError
from ledgermq.errors.shown import cut, shown, type_name
from ledgermq.wire.content.bodies import StreamBody
from ledgermq.wire.content.conversion import Value, plain
from ledgermq.wire.content.objects import LONG_MAX, LONG_MIN, ObjectBody
from ledgermq.wire.framing.codec import decode_as, encode_record

Body: TypeAlias = Mapping[str, Value] | str | bytes | StreamBody | ObjectBody | None

CONTENT: Final = "ledgermq.message.Content"
MAP_BODY: Final = "ledgermq.message.MapBody"
STREAM_BODY: Final = "ledgermq.message.StreamBody"
OBJECT_BODY: Final = "ledgermq.message.ObjectBody"
NAME_CHARACTERS_MAX: Final = 255
VALUES: Final = frozenset((bool, int, float, str, bytes, NoneType))


class ContentError(ValueError):
    """A body, property or map entry that a message cannot carry; the text names it.

    Attributes:
        raised: The error that an application gets for it.
    """

    def __init__(self, text: str, raised: type[MessageFormatError] = MessageFormatError) -> None:
        super().__init__(text)
        self.raised = raised


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a message carries beside its header; `client_time` in µs since 1970."""

    body: Body
    reply_to: str | None = None
    client_time: int = 0


def encode_content(body: Any, reply_to: str | None = None, client_time: int = 0) -> bytes:
    """The bytes of a content; ContentError names what cannot be carried."""
    datum = {"body": _checked_body(body), "reply_to": reply_to, "client_time": client_time}
    try:
        return encode_record(CONTENT, datum)
    except (TypeError, ValueError, AttributeError) as error:
        raise ContentError(f"its body or a header cannot be encoded: {error}") from error


def _checked_body(body: Any) -> Any:
    if body is None or type(body) in (str, bytes):
        return body
    if isinstance(body, Mapping):
        entries = {
            name: checked_value(f"map entry {name!r}", name, value, with_bytes=True)
            for name, value in body.items()
        }
        return (MAP_BODY, {"entries": entries})
    if isinstance(body, StreamBody):
        return (STREAM_BODY, {"values": list(body)})
    if isinstance(body, ObjectBody):
        return (OBJECT_BODY, {"encoding": body.encoding, "data": body.data})
    if isinstance(body, (str, bytes, bytearray, memoryview)):
        return plain(body)
    raise ContentError(
        f"a body is dict, str, bytes, StreamBody, ObjectBody or None, not {type(body).__name__}; "
        "encode it yourself and send bytes or text, or wrap it: ObjectBody(...)",
        UnsupportedValueError,
    )


def checked_value(what: str, name: Any, value: Any, *, with_bytes: bool) -> Any:
    """A property or map value if it is of a supported type and within 64 bits."""
    if not isinstance(name, str) or not 0 < len(name) <= NAME_CHARACTERS_MAX:
        raise ContentError(
            f"{cut(what)}: a name is text of 1 to {NAME_CHARACTERS_MAX} characters",
            NameTooLongError if isinstance(name, str) and name else MessageFormatError,
        )
    kind = type(value)
    if kind not in VALUES:
        value = plain(value)
        kind = type(value)
    if kind is str or kind is bool or kind is float:
        return value
    if kind is int:
        if not LONG_MIN <= value <= LONG_MAX:
            raise ContentError(
                f"{what} is {shown(value)}: whole numbers have 64 bits", UnsupportedValueError
            )
        return value
    if with_bytes and (value is None or kind is bytes):
        return value
    supported = "bool, int, float, str" + (", bytes or None" if with_bytes else "")
    hint = "; nested values are not carried" if isinstance(value, (list, tuple, Mapping)) else ""
    raise ContentError(
        f"{what} is {type_name(kind)}: it must be {supported}{hint}", UnsupportedValueError
    )


def decode_content(value: bytes) -> Content:
    """The content in a message's bytes; UndecodableError if they are none."""
    datum = decode_as(CONTENT, value)
    return Content(
        body=_body_from(datum["body"]),
        reply_to=datum["reply_to"],
        client_time=datum["client_time"],
    )


def _body_from(found: Any) -> Body:
    if not isinstance(found, tuple):
        return found  # type: ignore[no-any-return]
    branch, datum = found
    if branch == STREAM_BODY:
        return StreamBody(datum["values"])
    if branch == OBJECT_BODY:
        return ObjectBody.encoded(datum["encoding"], datum["data"])
    return datum["entries"]  # type: ignore[no-any-return]
