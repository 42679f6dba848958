"""Puts that name their source, for relays: a destination takes each part of it once (§5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgermq.protocol.operations import Put, PutMessage, Source
from ledgermq.protocol.outcomes import Enqueued

if TYPE_CHECKING:
    from ledgermq.client.connection import Connection


class SourcedPuts:
    """A session of its own on a connection, which ends with that."""

    def __init__(self, connection: Connection) -> None:
        work = connection.open_work()
        self._engine = work.engine
        self.maker = work.maker

    def put(self, destination: str, messages: list[PutMessage], source: Source) -> Enqueued:
        """Puts messages that were made of a part of a source, all or none.

        Raises:
            RefusedError: With the code `source-taken` some of that was taken before, with
                `source-gap` something before it was not.
            OutcomeUnknownError: It may have been put; to put it again is safe.
        """
        fields = {"destination": destination, "messages": messages, "source": source}
        reply = self._engine.run(self._engine.administer(Put, destination, fields))
        assert isinstance(reply, Enqueued), "a Put outside a unit of work is answered by Enqueued"
        return reply
