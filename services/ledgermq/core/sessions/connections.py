"""Connections: their lane, their client id, and what ends with them (SES-39, SES-53; H27).

A client id is one connection's at a time. A client that was restarted shows by its takeover token
that the connection that still has its id was its own; that one then ends in the same entry.
"""

from __future__ import annotations

from ledgermq.core.destinations.subscriptions import retire
from ledgermq.core.destinations.temporaries import end_temporaries
from ledgermq.core.entry import Entry
from ledgermq.core.quoting import quoted
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.records import Connection, Session
from ledgermq.protocol.limits import CLIENT_CHARACTERS_MAX, LANE_MAX, TAKEOVER_BYTES_MAX, is_name
from ledgermq.protocol.operations import Open
from ledgermq.protocol.reasons import Reason, Refusal


def connection_for(entry: Entry, operation: Open) -> Connection | Refusal:
    """The connection that an Open is of; one to be added, if it is its first."""
    state, client_id = entry.state, operation.client_id
    standing = state.connections.get(operation.connection)
    if not 0 <= operation.lane <= LANE_MAX or (
        standing is not None and standing.lane != operation.lane
    ):
        return Refusal(
            Reason.SETTING_INVALID, f"lane {operation.lane} is not this connection's lane"
        )
    if client_id and not is_name(client_id):
        return Refusal(
            Reason.SETTING_INVALID,
            f"{quoted(client_id)} is no client id: 1 to 128 of A-Z a-z 0-9 . _ / % -",
        )
    length = len(operation.client)
    if length > CLIENT_CHARACTERS_MAX:
        detail = f"client has {length} characters, at most {CLIENT_CHARACTERS_MAX} fit"
        return Refusal(Reason.SETTING_INVALID, detail)
    if len(operation.takeover) > TAKEOVER_BYTES_MAX:
        detail = f"takeover has {len(operation.takeover)} bytes, at most {TAKEOVER_BYTES_MAX} fit"
        return Refusal(Reason.SETTING_INVALID, detail)
    if standing is not None:
        if standing.client_id != client_id:
            detail = f"client id {quoted(client_id)} is not this connection's"
            return Refusal(Reason.SETTING_INVALID, detail)
        return standing
    other = state.client_ids.get(client_id)
    if other is not None and (not other.takeover or other.takeover != operation.takeover):
        return Refusal(
            Reason.CLIENT_ID_IN_USE,
            f"client id {quoted(client_id)} is in use by connection {other.identity.hex()}; close "
            "that, or take over from it with its token",
        )
    return Connection(operation.connection, operation.lane, client_id, operation.takeover)


def replaced_by(state: QueueManager, connection: Connection) -> list[Session]:
    """The sessions of an earlier connection whose client id this one takes over."""
    other = state.client_ids.get(connection.client_id)
    return [] if other is None or other is connection else list(other.sessions.values())


def add_connection(state: QueueManager, connection: Connection) -> None:
    state.connections[connection.identity] = connection
    if connection.client_id:
        state.client_ids[connection.client_id] = connection


def end_connection(entry: Entry, connection: Connection) -> None:
    retire(entry)
    end_temporaries(entry, connection)
    del entry.state.connections[connection.identity]
    if connection.client_id:
        del entry.state.client_ids[connection.client_id]
