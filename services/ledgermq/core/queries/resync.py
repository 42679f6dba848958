"""What a connection must know to go on after a hole in the chain of its outcomes (H2, H17)."""

from __future__ import annotations

from itertools import islice
from typing import Final

from ledgermq.core.delivery.delivered_messages import delivered_message
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.records import Session
from ledgermq.protocol.documents.fields import Document
from ledgermq.protocol.limits import DELIVERED_CONTENT_BYTES_MAX, DELIVERED_MESSAGES_MAX
from ledgermq.protocol.outcomes import Delivered, DeliveredMessage, Opened, Outcome

# Consumers in one entry of a session; one with more has several entries.
CONSUMERS_MAX: Final = 1_000


def resync(state: QueueManager, identity: bytes) -> tuple[Document, list[Outcome]]:
    connection = state.connections.get(identity)
    outcomes: list[Outcome] = []
    sessions: list[Document] = []
    if connection is not None:
        for session in connection.sessions.values():
            sessions += _session_entries(session)
            opened = Opened(
                position=session.handle,
                index=0,
                session_key=session.session_key,
                session=session.handle,
            )
            outcomes.append(opened)
            outcomes.extend(session.replies.values())
            outcomes.extend(_deliveries(state, session))
    document = {
        "last_position": -1 if connection is None else connection.last_position,
        "last_index": -1 if connection is None else connection.last_index,
        "sessions": sessions,
    }
    return document, outcomes


def _session_entries(session: Session) -> list[Document]:
    """A session as the document names it; one entry, or one for every 1,000 of its consumers."""
    consumers = iter(
        [{"consumer": one.number, "credit": one.credit} for one in session.consumers.values()]
    )
    entries: list[Document] = []
    while not entries or len(entries[-1]["consumers"]) == CONSUMERS_MAX:
        entries.append(
            {
                "session": session.handle,
                "session_key": session.session_key.hex(),
                "last_sequence": session.last_sequence,
                "suspected": session.suspected,
                "consumers": list(islice(consumers, CONSUMERS_MAX)),
            }
        )
    return entries


def _deliveries(state: QueueManager, session: Session) -> list[Delivered]:
    """Deliveries in flight as Delivered, one per run of one consumer, of 1 MiB at most."""
    found: list[Delivered] = []
    run: list[DeliveredMessage] = []
    run_bytes = 0
    previous: tuple[int, object] | None = None
    for number, message in session.deliveries.items():
        assert message.consumer is not None, "a delivery in flight has a consumer"
        doubtful = number == message.consumer.doubt
        follows = previous == (number - 1, message.consumer) and not doubtful
        run_bytes += message.size_bytes
        fits = len(run) < DELIVERED_MESSAGES_MAX and run_bytes <= DELIVERED_CONTENT_BYTES_MAX
        if follows and fits:
            run.append(delivered_message(message))
        else:
            run, run_bytes = [delivered_message(message)], message.size_bytes
            found.append(
                Delivered(
                    position=state.position,
                    index=-1,
                    session=session.handle,
                    consumer=message.consumer.number,
                    destination=message.queue.destination,
                    first_delivery=number,
                    messages=run,
                    in_doubt=doubtful,
                )
            )
        previous = None if doubtful else (number, message.consumer)
    return found
