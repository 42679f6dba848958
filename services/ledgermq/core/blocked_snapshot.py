"""Blocked puts and the commits that wait for them in a checkpoint, and back (PROTOCOL.md §16)."""

from __future__ import annotations

from typing import Any

from ledgermq.core.blocked import BlockedPut, keep_blocked
from ledgermq.core.destinations import find_destination, new_destination
from ledgermq.core.message_snapshot import message_from, stored_message
from ledgermq.core.state import QueueManager, Session
from ledgermq.protocol.operations import Commit

__all__ = ["blocked_entries", "commit_entry", "commit_from", "restore_blocked"]

Record = dict[str, Any]


def blocked_entries(state: QueueManager) -> list[Record]:
    """The blocked puts as records, by position; bodies stay in the log."""
    return [
        {
            "position": one.position,
            "session": one.session.handle,
            "session_sequence": one.sequence,
            "destination": one.destination,
            "created_position": one.created_position,
            "since": one.since,
            "deadline": one.deadline,
            "messages": [stored_message(message, in_storage=False) for message in one.messages],
            "logical_order": one.logical_order,
        }
        for one in state.blocked_puts.values()
    ]


def restore_blocked(state: QueueManager, root: Record) -> None:
    """The blocked puts of a Root; queues, topics and sessions are there already."""
    for entry in root["blocked_puts"]:
        position, destination = entry["position"], entry["destination"]
        found = find_destination(state, destination)
        queue = new_destination(destination, position) if found is None else found
        put = BlockedPut(
            position=position,
            session=state.sessions[entry["session"]],
            sequence=entry["session_sequence"],
            destination=destination,
            created_position=entry["created_position"],
            since=entry["since"],
            deadline=entry["deadline"],
            messages=[message_from(queue, stored, state.storage) for stored in entry["messages"]],
            logical_order=entry["logical_order"],
        )
        keep_blocked(state, put)


def commit_entry(session: Session) -> Record | None:
    """The commit that waits in a session; None: none does."""
    commit = session.waiting_commit
    if commit is None:
        return None
    return {
        "session_sequence": commit.session_sequence,
        "deliveries": commit.deliveries,
        "puts": commit.puts,
    }


def commit_from(session: Session, entry: Record | None) -> Commit | None:
    """The commit of a record, as far as it matters once it waits."""
    if entry is None:
        return None
    return Commit(
        session=session.handle,
        session_sequence=entry["session_sequence"],
        answered_through=0,
        deliveries=entry["deliveries"],
        puts=entry["puts"],
    )
