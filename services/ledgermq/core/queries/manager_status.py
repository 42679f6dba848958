"""The queue manager as a question tells it, and its journal (PROTOCOL.md §9, §21)."""

from __future__ import annotations

from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.resume_mark import ResumeMark
from ledgermq.protocol.documents.fields import Document, document_of
from ledgermq.protocol.documents.manager import QueueManagerStatus
from ledgermq.protocol.settings import redelivery_of


def manager_status(state: QueueManager, name: str, worker: str) -> Document:
    mark = state.resume_mark or ResumeMark(0, 0)
    whole = document_of(
        QueueManagerStatus,
        state,
        name=name,
        time_reference=None if state.time_reference < 0 else state.time_reference,
        version=state.active_version,
        maximum_lifetime_ms=state.lifetimes.maximum_ms,
        messages=state.held_messages,
        bytes=state.held_bytes,
        messages_resume=mark.messages,
        bytes_resume=mark.bytes,
        redelivery=redelivery_of(state.redelivery),
        **journal_status(state),
        queues=len(state.queues),
        topics=len(state.topics),
        subscriptions=len(state.subscriptions),
        connections=len(state.connections),
        sessions=len(state.sessions),
        worker=worker,
    )
    return whole | {"digest": None}


def journal_status(state: QueueManager) -> Document:
    journal = state.journal
    return {
        "journaling": journal.is_on,
        "journal_lifetime_ms": journal.lifetime_ms,
        "journal_from": journal.kept_from if journal.intervals else None,
        "journal_needed_from": journal.needs_from,
        "journal_backup": None if journal.backup is None else journal.backup._asdict(),
    }
