"""Messages in groups put by a client's session, in the notation of the scripts."""

from __future__ import annotations

import os
import time

from ledgermq.client.connection import Connection
from ledgermq.client.session import Session
from ledgermq.protocol.operations import Put, PutMessage
from ledgermq.wire.content.content import Body, encode_content
from support.scripts.verbs import group_id, message_of

__all__ = ["fill", "group_id", "put"]


def put(session: Session, destination: str, *words: str, bodies: dict[str, Body] | None = None):
    """Puts `A`, `Y1{g=Y.1}`, `Y3a{g=Y.3!@0+10}` ... (see `scripts.verbs`); the body is the name.

    In a transacted session they are of its unit of work.
    """
    messages = [_made(word, bodies or {}) for word in words]
    core = session._engine
    with core.lock:
        if session.transacted:
            for message in messages:
                session._work.commits.unit.add_locked(destination, message)
            return
        pending = core.write_locked(
            Put, target=destination, destination=destination, messages=messages
        )
        core.run_locked(core.reply(pending))


def fill(connection: Connection, destination: str, *words: str):
    """Puts messages in a session of their own."""
    with connection.session() as session:
        put(session, destination, *words)


def _made(word: str, bodies: dict[str, Body]) -> PutMessage:
    message = message_of(word)
    name = message["content"].decode()
    body = bodies.get(name, name.partition("/")[0])
    message["content"] = encode_content(body, None, time.time_ns() // 1000)
    message["message_id"] = os.urandom(16)
    return message
