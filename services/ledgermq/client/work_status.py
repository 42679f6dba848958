"""Units of work and sessions as administration reads them (PROTOCOL.md §9, §18)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ledgermq.client.instants import datetime_from
from ledgermq.client.status import SessionStatus

__all__ = [
    "ConsumerState",
    "DeliveryState",
    "DestinationWork",
    "SessionState",
    "TransactionStatus",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationWork:
    """What a unit of work holds of one destination; `bytes` are sizes of content and header."""

    destination: str
    messages: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionStatus:
    """An open unit of work, named by its session.

    Attributes:
        session: Handle of the session.
        connection: Its connection, in hexadecimal.
        client_id: Client id of that, empty for none.
        began_at: Log time of its first put or delivery, or of the commit before it.
        puts: Messages put and not committed, by destination.
        gets: Messages delivered and not committed, by destination.
    """

    session: int
    connection: str
    client_id: str
    began_at: datetime
    puts: tuple[DestinationWork, ...]
    gets: tuple[DestinationWork, ...]

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> TransactionStatus:
        """From the worker's document."""
        return cls(
            session=document["session"],
            connection=document["connection"],
            client_id=document["client_id"],
            began_at=datetime_from(document["began_at"]),
            puts=tuple(DestinationWork(**one) for one in document["puts"]),
            gets=tuple(DestinationWork(**one) for one in document["gets"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerState:
    """A consumer of a session.

    Attributes:
        consumer: Its number in the session.
        open: False: it was closed, and deliveries of it are not settled.
        credit: How many messages it asks for.
        in_flight: Its deliveries that are not settled.
        paused: Why it gets nothing, whatever there is: `no-credit`, `suspected`,
            `unit-of-work-ended`, `in-doubt`, `unacknowledged-max` (SES-07), `gets-disabled`,
            `fifo-mode`; empty: it gets what comes.
    """

    consumer: int
    destination: str
    selector: str
    open: bool
    credit: int
    in_flight: int
    paused: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryState:
    """A delivery that is not settled."""

    delivery: int
    consumer: int
    destination: str
    sequence: int
    message_id: bytes
    backout_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionState:
    """A session with its consumers and what it holds.

    Attributes:
        position: Log position that this is true at.
        status: What `sessions()` tells of it.
        confirmed: Whether it has written anything since it was opened.
        deadline: When it ends unless it shows itself; None: it need not.
        handed_through: Deliveries up to this number were handed to the application.
        unit_of_work: What it holds in a unit of work; None: nothing.
        unit_of_work_ended_by: Who ended its unit of work by administration, and why; empty: nobody,
            or it has rolled back since.
        consumers: Its consumers by number.
        deliveries: What it holds, at most the first 1,000.
        deliveries_more: Whether it holds more than those.
    """

    position: int
    status: SessionStatus
    confirmed: bool
    deadline: datetime | None
    suspect_timeout_ms: int
    handed_through: int
    unit_of_work: TransactionStatus | None
    unit_of_work_ended_by: str
    consumers: tuple[ConsumerState, ...]
    deliveries: tuple[DeliveryState, ...]
    deliveries_more: bool

    @classmethod
    def from_document(cls, position: int, document: dict[str, Any]) -> SessionState:
        """From the worker's document."""
        due, work = document["deadline"], document["unit_of_work"]
        same = ("confirmed", "suspect_timeout_ms", "handed_through", "unit_of_work_ended_by")
        return cls(
            position=position,
            status=SessionStatus.from_document(document),
            deadline=None if due is None else datetime_from(due),
            unit_of_work=None if work is None else TransactionStatus.from_document(work),
            consumers=tuple(
                ConsumerState(**{**one, "paused": tuple(one["paused"])})
                for one in document["consumer_list"]
            ),
            deliveries=tuple(
                DeliveryState(**{**one, "message_id": bytes.fromhex(one["message_id"])})
                for one in document["deliveries"]
            ),
            deliveries_more=document["deliveries_more"],
            **{name: document[name] for name in same},
        )
