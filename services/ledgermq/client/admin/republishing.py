"""Republishing: copies of journaled messages are put again, and say what they are copies of.

The properties of a copy are those of the original, and beside them `LedgerMQ_JournalMessageId`,
`LedgerMQ_JournalDestination` and `LedgerMQ_JournalPosition`: whoever republishes a message twice
finds two copies that bear the same id. A copy of a copy names the first original (DB-19).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from ledgermq.client.admin.copies import Copier, units_of, why_no_copy
from ledgermq.client.options import AckMode
from ledgermq.errors import LedgerMQError, OutcomeUnknownError, RepublishStoppedError

if TYPE_CHECKING:
    from ledgermq.client.connection import Connection
    from ledgermq.wire.content.journaled import JournaledMessage


MESSAGE_ID: Final = "LedgerMQ_JournalMessageId"
DESTINATION: Final = "LedgerMQ_JournalDestination"
POSITION: Final = "LedgerMQ_JournalPosition"


def republish(
    connection: Connection,
    messages: Iterable[JournaledMessage],
    *,
    to: str | None = None,
    time_to_live: float = 0,
    groups: bool = True,
    tell: Callable[[int], None] | None = None,
    leave_out: Callable[[JournaledMessage, str], None] | None = None,
) -> int:
    """Puts copies of journaled messages, in their order, and returns how many.

    They are persistent, and have the body, properties, correlation id, reply destination, type,
    priority and redelivery limit of the originals, but no delivery delay. They are put in units of
    work of at most 100 messages and 256 KiB, or one message.

    Args:
        connection: Where they are put.
        messages: Which, as `ledgermq_spark.journal` and its archive tell them.
        to: The destination; None: for each the one that it was put to.
        time_to_live: Of the copies, in seconds; 0: they do not expire. Those of the originals are
            over by now, as a rule.
        groups: Whether copies on a queue have their places in groups; without, each stands alone.
        tell: Called with how many were put or left out, whenever some more were.
        leave_out: Called with each message that no copy can be made of, and why; None: it stops
            there.

    Raises:
        RepublishStoppedError: A message could not be put; those of earlier units of work were.
    """
    done = put = 0
    with connection.session(ack=AckMode.TRANSACTED) as session:
        copier = Copier(session=session, to=to, time_to_live=time_to_live, groups=groups)
        try:
            for unit in units_of(messages):
                copies = 0
                for one in unit:
                    marks = journal_marks(one)
                    if leave_out and (why := why_no_copy(one, marks, to=to, groups=groups)):
                        leave_out(one, why)
                    else:
                        copier.put(one, marks=marks)
                        copies += 1
                session.commit()
                done, put = done + len(unit), put + copies
                if tell is not None:
                    tell(done)
        except LedgerMQError as error:
            then = "Go on behind those, once that is mended"
            if isinstance(error, OutcomeUnknownError):
                then = f"Look by their {MESSAGE_ID} whether more were, before you go on"
            raise RepublishStoppedError(
                f"{put} messages were republished, then it stopped: {error.args[0]}. {then}"
            ) from error
    return put


def journal_marks(one: JournaledMessage) -> dict[str, Any]:
    """What says what a message is a copy of, unless it is one already."""
    if MESSAGE_ID in one.properties:
        return {}
    return {MESSAGE_ID: one.message_id, DESTINATION: one.destination, POSITION: one.position}
