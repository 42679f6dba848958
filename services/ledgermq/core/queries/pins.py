"""What of the log the state still needs: bodies of live messages, the journal (PROTOCOL.md §20).

Found when it is asked for, by a look at every live message, so that none pays for it while it
lives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from heapq import nsmallest
from itertools import chain
from operator import itemgetter
from typing import Final

from ledgermq.core.moves import state_of
from ledgermq.core.state.manager import QueueManager
from ledgermq.core.state.message_states import NAMES
from ledgermq.core.state.records import BlockedPut, Message, Session
from ledgermq.protocol.documents.fields import Document, document_of
from ledgermq.protocol.documents.pins import LogPins, Pin

PINS_MAX: Final = 1_000
Make = Callable[[], Document]


def pins_document(state: QueueManager, limit: int) -> Document:
    """The oldest live messages by where their bodies stand, at most `limit` of them.

    `journal_position` is where the journal needs the log from (§21), null where it is empty;
    `needed_position` is the lowest of all these places, null where there is none.
    """
    wanted = max(1, min(limit, PINS_MAX))
    pins = [make() for _, make in nsmallest(wanted, _oldest(state, wanted), key=itemgetter(0))]
    journal = state.journal.needs_from
    places = [one["body_position"] for one in pins[:1]] + ([] if journal is None else [journal])
    return document_of(
        LogPins,
        None,
        needed_position=min(places, default=None),
        journal_position=journal,
        pins=pins,
    )


def _oldest(state: QueueManager, wanted: int) -> Iterator[tuple[tuple[int, ...], Make]]:
    """The oldest messages of everything that holds some: by what they are ordered, and their pin.

    A pin is made only of those that are told: there may be many queues.
    """
    for created, queue in state.stores.items():
        for one in nsmallest(wanted, queue.messages.values(), key=_body_position):
            yield (*one.body_position, created, one.sequence), partial(_pin, one)
    for session in state.sessions.values():
        open_puts = chain.from_iterable(session.open_puts.values())
        for one in nsmallest(wanted, open_puts, key=_body_position):
            yield (*one.body_position, -1, -1), partial(_open_pin, one, session)
    for put in state.blocked_puts.values():
        for one in put.messages[:wanted]:
            yield (*one.body_position, -1, -1), partial(_blocked_pin, one, put)


def _body_position(message: Message) -> int:
    body = message.body
    return message.put_position if body is None else body[0]


def _pin(message: Message) -> Document:
    consumer = message.consumer
    body_position, body_index = message.body_position
    return document_of(
        Pin,
        message,
        destination=message.queue.destination,
        subscription=getattr(message.queue, "key", ("", "", ""))[1],
        created_position=message.queue.created_position,
        message_id=message.message_id.hex(),
        body_position=body_position,
        body_index=body_index,
        state=NAMES[state_of(message)],
        session=-1 if consumer is None else consumer.session.handle,
    )


def _open_pin(message: Message, session: Session) -> Document:
    changes = {"enqueued_at": None, "state": "uncommitted put", "session": session.handle}
    return {**_pin(message), **changes}


def _blocked_pin(message: Message, put: BlockedPut) -> Document:
    """Its body stands where the put came, and is wanted when it is put (§16)."""
    changes = {"destination": put.destination, "state": "blocked put"}
    return {**_open_pin(message, put.session), **changes}
