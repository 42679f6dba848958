"""Messages as the application gets them: read-only until body or properties are cleared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, Protocol

from ledgermq.client.argument_types import typed
from ledgermq.client.arguments import Rejection
from ledgermq.client.messages.bytes_message import BytesMessage
from ledgermq.client.messages.map_message import MapMessage
from ledgermq.client.messages.message_kinds import EMPTY, kind_of
from ledgermq.client.messages.origin import Origin
from ledgermq.client.messages.property_access import PropertyAccess
from ledgermq.client.messages.stream_message import StreamMessage
from ledgermq.client.messages.typed_message import (
    ObjectMessage,
    PlainMessage,
    TextMessage,
    TypedMessage,
)
from ledgermq.client.receiving.getting import GroupStatus, SegmentStatus
from ledgermq.client.sansio.segments import further_of, group_of, is_joined
from ledgermq.errors import (
    IllegalStateError,
    MessageFormatError,
    MessageNotWriteableError,
    MessageUndecodableError,
)
from ledgermq.protocol.instants import datetime_from
from ledgermq.protocol.operations import PropertyValue
from ledgermq.protocol.outcomes import DeliveredMessage
from ledgermq.wire.content.bodies import ReadOnlyDict
from ledgermq.wire.content.content import Body, Content, decode_content
from ledgermq.wire.content.message_header import header_of
from ledgermq.wire.content.objects import ObjectBody
from ledgermq.wire.framing.codec import UndecodableError

# What a message of each kind is as a typed one, made of its body.
TYPED: Final[Mapping[str, Callable[[Any], TypedMessage]]] = {
    "map": MapMessage,
    "text": TextMessage,
    "bytes": BytesMessage,
    "stream": StreamMessage,
    "object": ObjectMessage,
    "plain": lambda _: PlainMessage(),
}


class Settler(Protocol):
    """What settles the messages of one consumer; time-outs in seconds, None: the connection's."""

    def acknowledge(self, deliveries: range, timeout: float | None, wait: bool) -> Any:
        """Acknowledges what acknowledging one message settles."""

    def reject(self, deliveries: range, how: Rejection, timeout: float | None) -> Any:
        """Sends one message away, or puts it back."""


@typed
class Message(PropertyAccess):
    """One message: header fields at once, body and properties decoded on first use.

    Whatever is changed in it stays here: the message in the queue never changes. It can be sent
    again as it is, with `producer.send(message)`, as a new message. A copy of it, also one that is
    pickled for another process, says what it says; it is settled here alone.

    Attributes:
        destination: Where it was got from, as `queue:NAME` or `topic:NAME`.
        delivery: Its delivery number in the session; 0 if it was only browsed. One that was got
            complete has those of all its segments, and this is the first.
    """

    __slots__ = (
        "_allow_pickle",
        "_body",
        "_content",
        "_properties",
        "_raw",
        "_settler",
        "_writeable",
        "delivery",
        "destination",
    )

    def __init__(
        self,
        raw: DeliveredMessage,
        destination: str,
        delivery: int = 0,
        settler: Settler | None = None,
        *,
        allow_pickle: bool = False,
    ) -> None:
        self._raw = raw
        self._settler = settler
        self._allow_pickle = allow_pickle
        self._content: Content | None = None
        self._properties: dict[str, Any] | None = None
        self._body: Any = None
        self._writeable = False
        self.destination = destination
        self.delivery = delivery

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        said = {name: getattr(self, name) for name in Message.__slots__}
        return None, {**said, "_settler": None}

    @property
    def deliveries(self) -> range:
        """Its delivery numbers: one, or those of all segments of what was got complete."""
        return range(self.delivery, self.delivery + 1 + len(further_of(self._raw)))

    @property
    def message_id(self) -> str:
        """Identity: 32 hexadecimal digits, chosen by the sender's library."""
        return self._raw["message_id"].hex()

    @property
    def sequence(self) -> int:
        """Sequence number in its queue or topic; stays the same when delivered again (SEQ-16)."""
        return self._raw["sequence"]

    @property
    def put_position(self) -> int:
        """Log position of the operation that put it."""
        return self._raw["put_position"]

    @property
    def put_index(self) -> int:
        """Which message of that operation it is, from 0."""
        return self._raw["put_index"]

    @property
    def priority(self) -> int:
        """0 (lowest) to 9."""
        return self._raw["priority"]

    @property
    def persistent(self) -> bool:
        """Delivery mode as the sender asked for it."""
        return self._raw["persistent"]

    @property
    def backout_count(self) -> int:
        """How often it went back after an application had seen it (IBM MQ counts so, from 0).

        Of segments that came complete, that of the one which went back most often.
        """
        raw = self._raw
        return max(one["backout_count"] for one in (raw, *further_of(raw)))

    @property
    def delivery_count(self) -> int:
        """How often it was delivered, this time included (JMS counts so, from 1; SES-65)."""
        return self.backout_count + 1

    @property
    def redelivered(self) -> bool:
        """Whether an application may have seen it before."""
        return self.backout_count > 0

    @property
    def timestamp(self) -> datetime:
        """When it got its sequence number, by the log's clock."""
        return datetime_from(self._raw["enqueued_at"])

    @property
    def expires_at(self) -> datetime | None:
        """When it expires, by the log's clock; None: never (JMSExpiration)."""
        return _moment(header_of(self._raw)["expires_at"])

    @property
    def deliver_at(self) -> datetime | None:
        """Before when it was not to be delivered, by the log's clock (JMSDeliveryTime)."""
        return _moment(header_of(self._raw)["deliver_at"])

    @property
    def origin(self) -> Origin | None:
        """Where it was before it was moved here, and why it was; None: it was put here (INF-12).

        Of a message that was moved more than once, the last of these places.
        """
        record = header_of(self._raw).get("origin")
        return None if record is None else Origin.from_record(record)

    @property
    def size_bytes(self) -> int:
        """Size of its content as it stands on the log."""
        return sum(len(one["content"]) for one in (self._raw, *further_of(self._raw)))

    @property
    def group_id(self) -> bytes | None:
        """The 24 bytes of its group, or of its logical message; None: it is in none (GRP-39)."""
        group = group_of(self._raw)
        return None if group is None else group["group_id"]

    @property
    def group_sequence(self) -> int:
        """Number of its logical message in the group, from 1; 1 outside of groups (GRP-40)."""
        group = group_of(self._raw)
        return 1 if group is None else group["group_sequence"]

    @property
    def offset(self) -> int:
        """Where the data of a segment begin in its logical message; 0 if it is no segment."""
        group = group_of(self._raw)
        return 0 if group is None else group["offset"]

    @property
    def group_status(self) -> GroupStatus:
        """Whether it is in a group, and the last of it (GRP-22).

        A segment of the last message is LAST_MESSAGE_IN_GROUP too, whichever segment it is.
        """
        group = group_of(self._raw)
        if group is None or not group["in_group"]:
            return GroupStatus.NOT_IN_GROUP
        if group["last_in_group"]:
            return GroupStatus.LAST_MESSAGE_IN_GROUP
        return GroupStatus.MESSAGE_IN_GROUP

    @property
    def segment_status(self) -> SegmentStatus:
        """Whether it is a segment, and the last one; what was got complete is none (GRP-38)."""
        group = group_of(self._raw)
        if group is None or not group["segment"] or is_joined(self._raw):
            return SegmentStatus.NOT_A_SEGMENT
        return SegmentStatus.LAST_SEGMENT if group["last_segment"] else SegmentStatus.SEGMENT

    @property
    def body(self) -> Any:
        """What was sent: its type says of which kind the message is.

        Dict (map message), str (text), bytes, StreamBody, None (plain message); of an object
        message the object, made anew each time. Setting it works once `clear_body` was called.

        Raises:
            MessageUndecodableError: the content is not of this protocol version, or an object in
                it does not decode. The message can be acknowledged or go back all the same.
            MessageFormatError: the object is a pickle, and `connect` was not told to read them.
            MessageNotWriteableError: it was set without `clear_body`.
        """
        body = self.unloaded_body
        return body.load(allow_pickle=self._allow_pickle) if type(body) is ObjectBody else body

    @body.setter
    def body(self, body: Body) -> None:
        if not self._writeable:
            raise MessageNotWriteableError(
                "the body of a received message is read-only; call clear_body first"
            )
        self._body = body

    @property
    def unloaded_body(self) -> Body:
        """The body, but of an object message the ObjectBody, which nobody has loaded yet."""
        if self._body is None and not self._writeable:
            body = self._decoded().body
            if further_of(self._raw):
                body = self._joined(body)
            self._body = ReadOnlyDict(body) if isinstance(body, dict) else body
        return self._body  # type: ignore[no-any-return]

    def _joined(self, body: Body) -> Body:
        """The body of what was got complete: those of its segments one after the other."""
        parts = [body, *(self._content_of(one).body for one in further_of(self._raw))]
        for kind, nothing in ((str, ""), (bytes, b"")):
            if all(type(part) is kind for part in parts):
                return nothing.join(parts)  # type: ignore[arg-type]
        raise MessageFormatError(
            f"the segments of message {self.message_id} of {self.destination} have bodies that "
            "cannot be joined: all must be text, or all bytes. Get them one by one",
            destination=self.destination,
        )

    @property
    def kind(self) -> str:
        """Of which kind it is: "map", "text", "bytes", "stream", "object" or "plain"."""
        return kind_of(self.unloaded_body)

    def clear_body(self) -> None:
        """Empties the body here, which can be changed now; a message of the same kind is left."""
        empty = EMPTY[self.kind]
        self._body = dict(empty) if isinstance(empty, dict) else empty
        self._writeable = True

    @property
    def properties(self) -> Mapping[str, PropertyValue]:
        """What the sender gave along; read-only until `clear_properties` was called."""
        if self._properties is None:
            self._properties = ReadOnlyDict(header_of(self._raw)["properties"])
        return self._properties

    def clear_properties(self) -> None:
        """Leaves no properties here; they can be written now."""
        self._properties = {}

    def _provided(self) -> Mapping[str, PropertyValue]:
        return {"JMSXDeliveryCount": self.delivery_count} if self.delivery else {}

    def typed(self) -> TypedMessage:
        """A MapMessage, TextMessage, ... of what this message has, to read it as JMS does.

        It is read-only until `clear_body` or `clear_properties`, and is no longer part of the
        session; it is this message that is acknowledged.

        Raises:
            MessageUndecodableError: the content is not of this protocol version.
        """
        made = TYPED[self.kind](self.unloaded_body)
        if isinstance(made, ObjectMessage):
            made.allow_pickle = self._allow_pickle
        made.correlation_id = self.correlation_id
        made.reply_to = self.reply_to
        made.type = self.type
        return made._received(self.properties, self._provided())

    @property
    def correlation_id(self) -> str | None:
        """The sender's link to another message."""
        return header_of(self._raw)["correlation_id"]

    @property
    def reply_to(self) -> str | None:
        """Destination for a reply; None: none is asked for.

        Raises:
            MessageUndecodableError: the content is not of this protocol version.
        """
        return self._decoded().reply_to

    @property
    def type(self) -> str | None:
        """The sender's name for the kind of message."""
        return header_of(self._raw)["type"]

    @property
    def sent_at(self) -> datetime:
        """The sender's clock when it was sent; information only.

        Raises:
            MessageUndecodableError: the content is not of this protocol version.
        """
        return datetime_from(self._decoded().client_time)

    def _decoded(self) -> Content:
        if self._content is None:
            self._content = self._content_of(self._raw)
        return self._content

    def _content_of(self, raw: DeliveredMessage) -> Content:
        if not raw["content"]:
            raise MessageUndecodableError(
                f"the content of message {raw['message_id'].hex()} of {self.destination} is lost: "
                "the queue manager could not read it back from its log, and its worker's log says "
                "why. The message can be settled all the same",
                destination=self.destination,
            )
        try:
            return decode_content(raw["content"])
        except UndecodableError as error:
            raise MessageUndecodableError(
                f"message {raw['message_id'].hex()} of {self.destination} has a content that "
                f"cannot be read: {error}",
                destination=self.destination,
            ) from error

    def acknowledge(self, *, timeout: float | None = None, wait: bool = True) -> None:
        """Acknowledges all that the session has handed over (CLIENT), or this one (INDIVIDUAL).

        SES-06 is the rule of CLIENT. In the other modes nothing is done: there the library settles,
        or commit does.

        Args:
            timeout: Seconds to wait for its outcome; None: the connection's time-out.
            wait: False: it is written at once, and a failure is raised by the session's next call.

        Raises:
            AlreadySettledError: INDIVIDUAL: it was acknowledged before, or went back.
            OutOfTurnError: the queue is PROTECTED and an older message is not settled (DB-22);
                nothing changed.
            DeliveryUnknownError: administration took messages away; the others can still be
                acknowledged.
            IllegalStateError: the session is closed, or the message was browsed.
            OutcomeUnknownError: no outcome within the time-out.
        """
        self._got().acknowledge(self.deliveries, timeout, wait)

    def reject(
        self,
        reason: str = "",
        *,
        requeue: bool = False,
        delay: float | None = None,
        timeout: float | None = None,
    ) -> None:
        """Sends this message away for good: to the error destination of its queue, at once.

        There its `origin` has the reason `rejected`; the history has the text that is given here.
        A queue without an error destination drops it. The message leaves the unit of work that
        it was got in, and a rollback does not bring it back.

        Args:
            reason: Why, for people; at most 1,024 characters.
            requeue: Puts it back in place of that, alone, to be delivered again as after a
                rollback: the backout counts against its limit.
            delay: With `requeue`: seconds before it may be delivered again, whatever the settings
                of queue, consumer and session say; None: as these say.
            timeout: Seconds to wait for its outcome; None: the connection's time-out.

        Raises:
            AlreadySettledError: it was acknowledged, committed or rejected before, or went back.
            DeliveryUnknownError: administration, or a time limit of the unit of work, took it away.
            IllegalStateError: the session acknowledges by itself (AUTO, DUPS_OK: there a listener
                raises to put it back), or is closed, the message was browsed, or the reason is too
                long or no text that can be written, or the delay is negative, too long, or given
                without `requeue`.
            OutcomeUnknownError: no outcome within the time-out.
        """
        self._got().reject(self.deliveries, Rejection(reason, requeue, delay), timeout)

    def _got(self) -> Settler:
        if self._settler is None:
            raise IllegalStateError(
                "a browsed message is not settled, as it was not got, and neither is a copy: "
                "settle the message that was got"
            )
        return self._settler

    def __repr__(self) -> str:
        return (
            f"Message({self.destination}, sequence={self.sequence}, "
            f"message_id={self.message_id!r}, delivery_count={self.delivery_count})"
        )


def _moment(microseconds: int) -> datetime | None:
    return None if microseconds < 0 else datetime_from(microseconds)


def raw_message(message: Message) -> DeliveredMessage:
    """A message as it was delivered, for relays, which carry on its bytes."""
    return message._raw
