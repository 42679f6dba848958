"""Sessions and units of work as answers tell them (PROTOCOL.md §9, §18)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from ledgermq.protocol.documents.fields import BESIDE, FLAT


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStatus:
    """An open session, named by its handle.

    Attributes:
        client_id: Client id of its connection, empty for none.
        suspected: Whether its client has not been heard of for its suspect time-out.
        consumers: Open consumers.
        consumers_paused: Those of them that get nothing because the session holds as many
            unsettled messages as the queue's `unacknowledged_max` allows.
        consumers_in_doubt: Consumers that get nothing because they were sent a message that an
            application may have fallen over, and have not handed it over yet.
        in_flight: Deliveries not settled.
        open_puts: Messages put in the unit of work that is open.
        unit_of_work_began_at: Since when a unit of work holds something; None: none does.
        unit_of_work_ended: Whether administration or a time limit ended its unit of work, and it
            has not rolled back yet.
    """

    session: int
    connection: str
    client_id: str
    acknowledge_mode: str
    suspected: bool
    consumers: int
    consumers_paused: int
    consumers_in_doubt: int
    in_flight: int
    open_puts: int
    last_sequence: int
    unit_of_work_began_at: datetime | None
    unit_of_work_ended: bool


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerState:
    """A consumer of a session.

    Attributes:
        consumer: Its number in the session.
        consumer_priority: Those of a higher one come first while they may be given something.
        open: False: it was closed, and deliveries of it are not settled.
        credit: How many messages it asks for.
        in_flight: Its deliveries that are not settled.
        paused: Why it gets nothing, whatever there is: `no-credit`, `suspected`,
            `unit-of-work-ended`, `in-doubt`, `unacknowledged-max` (SES-07), `gets-disabled`,
            `stand-by`, `fifo-mode`; empty: it gets what comes.
    """

    consumer: int
    destination: str
    selector: str
    consumer_priority: int
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
        unit_of_work_ended_by: Who ended its unit of work by administration, and why, or which time
            limit; empty: nobody, or it has rolled back since.
        consumers: Its consumers by number.
        deliveries: What it holds, at most the first 1,000.
        deliveries_more: Whether it holds more than those.
    """

    position: int = field(metadata=BESIDE)
    status: SessionStatus = field(metadata=FLAT)
    confirmed: bool
    deadline: datetime | None
    suspect_timeout_ms: int
    handed_through: int
    unit_of_work: TransactionStatus | None
    unit_of_work_ended_by: str
    consumers: tuple[ConsumerState, ...] = field(metadata={"key": "consumer_list"})
    deliveries: tuple[DeliveryState, ...]
    deliveries_more: bool
