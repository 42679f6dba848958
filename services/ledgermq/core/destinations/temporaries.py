"""Temporary queues and topics: of one connection, as long as that lives (SES-38, SES-39).

One is named `temporary/CONNECTION/NAME`: only sessions of its connection get from it, everybody may
put to it.
"""

from __future__ import annotations

from ledgermq.core.destinations.by_name import (
    add_destination,
    find_destination,
    new_destination,
    remove_destination,
)
from ledgermq.core.entry import Entry
from ledgermq.core.moves import move
from ledgermq.core.quoting import quoted
from ledgermq.core.state.message_states import GONE, PURGED, UNCOMMITTED
from ledgermq.core.state.records import Connection, Queue, Session, bytes_of
from ledgermq.protocol.limits import TEMPORARY, is_name
from ledgermq.protocol.operations import CreateTemporary
from ledgermq.protocol.reasons import Reason, Refusal


def create_temporary(entry: Entry, session: Session, operation: CreateTemporary) -> Refusal | None:
    destination, connection = operation.destination, session.connection
    kind, _, name = destination.partition(":")
    own = f"{TEMPORARY}{connection.identity.hex()}/"
    if kind not in ("queue", "topic") or not is_name(name) or not name.startswith(own):
        detail = f"{quoted(destination)} is not queue:{own}NAME or topic:{own}NAME"
        return Refusal(Reason.NAME_INVALID, detail)
    if find_destination(entry.state, destination) is not None:
        return Refusal(Reason.QUEUE_EXISTS, f"{destination} exists already")
    made = new_destination(entry.state, destination, entry.position)
    made.owner = connection
    connection.owned[destination] = made
    add_destination(entry.state, made)
    return None


def check_owner(found: Queue, session: Session) -> Refusal | None:
    if found.owner in (None, session.connection):
        return None
    return Refusal(Reason.TEMPORARY_FOREIGN, f"{found.destination} belongs to another connection")


def end_temporaries(entry: Entry, connection: Connection) -> None:
    """Ends what belongs to a connection that is over; open puts of others to it vanish."""
    owned = connection.owned.copy()
    putting = _putting(entry, owned)
    for destination, found in owned.items():
        for session in putting.get(destination, ()):
            messages = session.open_puts.pop(destination)
            move(entry, found, messages, UNCOMMITTED, GONE, cause=PURGED, session=session)
            session.open_bytes -= bytes_of(messages)
        remove_destination(entry, found)
    for session in {one.handle: one for some in putting.values() for one in some}.values():
        session.open_ids = [one for one in session.open_ids if one.destination not in owned]
        for key in [one for one in session.open_groups if one[0] in owned]:
            del session.open_groups[key]


def _putting(entry: Entry, owned: dict[str, Queue]) -> dict[str, list[Session]]:
    """The sessions with open puts to these destinations, by destination."""
    putting: dict[str, list[Session]] = {}
    if any(one.counts[UNCOMMITTED] for one in owned.values()):
        for session in entry.state.sessions.values():
            for destination in [one for one in session.open_puts if one in owned]:
                putting.setdefault(destination, []).append(session)
    return putting
