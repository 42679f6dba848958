"""Messages as objects of their own: plain, text and object messages, and what all kinds share.

They belong to no session: make one, send it with any producer, change it and send it again; what
was sent does not change with it. `send` takes its body, properties, correlation_id, reply_to and
type from the message, save those that it is given itself.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, Unpack

from ledgermq.client.messages.property_access import PropertyAccess, check_property_names
from ledgermq.client.options import HeaderOptions
from ledgermq.errors import MessageNotReadableError, MessageNotWriteableError, UnsupportedValueError
from ledgermq.protocol.operations import PropertyValue
from ledgermq.wire.content.bodies import ReadOnlyDict
from ledgermq.wire.content.objects import ObjectBody

T = TypeVar("T", bound="TypedMessage")


class TypedMessage(PropertyAccess):
    """What the kinds of message have in common.

    Attributes:
        correlation_id: Links the message to another.
        reply_to: Destination for a reply.
        type: The sender's name for the kind of message.
    """

    __slots__ = ("_of_receipt", "_properties", "_writeable", "correlation_id", "reply_to", "type")

    def __init__(
        self,
        *,
        properties: Mapping[str, PropertyValue] | None = None,
        correlation_id: str | None = None,
        reply_to: str | None = None,
        type: str | None = None,  # noqa: A002 - the name that the message's field has
    ) -> None:
        check_property_names(properties or {})
        self._properties: dict[str, Any] = {}
        self._of_receipt: Mapping[str, PropertyValue] = {}
        self._writeable = True
        for name, value in (properties or {}).items():
            self.set_property(name, value)
        self.correlation_id = correlation_id
        self.reply_to = reply_to
        self.type = type

    @property
    def properties(self) -> Mapping[str, PropertyValue]:
        """Names and values; read-only if the message was received."""
        return self._properties

    def clear_properties(self) -> None:
        """Leaves the message without properties; they can be written now."""
        self._properties = {}

    @abstractmethod
    def clear_body(self) -> None:
        """Leaves the message with an empty body, which can be written now."""

    def _provided(self) -> Mapping[str, PropertyValue]:
        return self._of_receipt

    def _received(
        self: T,
        properties: Mapping[str, PropertyValue],
        provided: Mapping[str, PropertyValue],
    ) -> T:
        """Makes this a message that was received: body and properties cannot be changed."""
        self._properties = ReadOnlyDict(properties)
        self._of_receipt = provided
        self._writeable = False
        return self

    def _check_writeable(self) -> None:
        if not self._writeable:
            raise MessageNotWriteableError(
                "the body of a received message is read-only; call clear_body first"
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.unloaded_body!r}, properties={self._properties!r})"


class WrittenThenRead(TypedMessage):
    """A message whose body is written from front to back, and read so after `reset`."""

    __slots__ = ("_place",)

    def __init__(self, **header: Unpack[HeaderOptions]) -> None:
        super().__init__(**header)
        self._place = 0

    def reset(self) -> None:
        """Makes it readable, from the front."""
        self._writeable = False
        self._place = 0

    def _check_readable(self) -> None:
        if self._writeable:
            raise MessageNotReadableError("the message is being written; call reset to read it")

    def _check_writeable(self) -> None:
        if not self._writeable:
            raise MessageNotWriteableError(
                "the message is being read; call clear_body to empty and write it"
            )


class PlainMessage(TypedMessage):
    """A message without a body."""

    __slots__ = ()

    @property
    def unloaded_body(self) -> None:
        """None."""
        return

    def clear_body(self) -> None:
        """Does nothing, as there is none."""


class TextMessage(TypedMessage):
    """A message whose body is a text, empty if none is given.

    Raises:
        UnsupportedValueError: the text is no str.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str = "", **header: Unpack[HeaderOptions]) -> None:
        super().__init__(**header)
        self.text = text

    @property
    def text(self) -> str:
        """The text."""
        return self._text

    @text.setter
    def text(self, text: str) -> None:
        self._check_writeable()
        if not isinstance(text, str):
            raise UnsupportedValueError(
                f"the body of a text message is {type(text).__name__}, it must be str"
            )
        self._text = text

    @property
    def unloaded_body(self) -> str:
        """The text."""
        return self._text

    def clear_body(self) -> None:
        """Leaves the empty text."""
        self._text = ""
        self._writeable = True


class ObjectMessage(TypedMessage):
    """A message whose body is a Python object, None if none is given; see `ObjectBody`.

    The message holds the object as it was when it was given.

    Attributes:
        encoding: "json", or "pickle", which receivers read only with `allow_pickle`.
        allow_pickle: Whether `value` reads a pickle, which runs code that its sender chose.

    Raises:
        UnsupportedValueError: the object cannot be encoded; the text names the place within it.
    """

    __slots__ = ("_body", "allow_pickle", "encoding")

    def __init__(
        self,
        value: Any = None,
        *,
        encoding: Literal["json", "pickle"] = "json",
        **header: Unpack[HeaderOptions],
    ) -> None:
        super().__init__(**header)
        self.encoding = encoding
        # Whoever asks for a pickle may read the one just made.
        self.allow_pickle = encoding == "pickle"
        self.value = value

    @property
    def value(self) -> Any:
        """The object, made anew each time.

        Raises:
            MessageUndecodableError: it cannot be decoded.
            MessageFormatError: it is a pickle and those are not allowed.
        """
        return self._body.load(allow_pickle=self.allow_pickle)

    @value.setter
    def value(self, value: Any) -> None:
        self._check_writeable()
        is_encoded = isinstance(value, ObjectBody)
        self._body = value if is_encoded else ObjectBody(value, encoding=self.encoding)

    @property
    def unloaded_body(self) -> ObjectBody:
        """The encoded object."""
        return self._body

    def clear_body(self) -> None:
        """Leaves None as the object."""
        self._body = ObjectBody(None)
        self._writeable = True
