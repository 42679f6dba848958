"""Replaying: messages of the past are put again, each once, however often that is begun anew.

A copy names its original and the replay (`wire.content.replayed`), so that the log itself tells
what was done. Who reads that has to read up to the Open of the session that then puts: what
earlier ones wrote and the log has not yet is refused, as their sessions ended before.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from ledgermq.client.admin.copies import Copier, units_of
from ledgermq.errors import (
    LedgerMQError,
    OutcomeUnknownError,
    ReplayStoppedError,
    SessionLostError,
    UnexpectedReplyError,
)
from ledgermq.wire.content import replayed

if TYPE_CHECKING:
    from ledgermq.client.connection import Connection
    from ledgermq.client.session import Session
    from ledgermq.wire.content.journaled import JournaledMessage


# After these nobody knows what was put, or nothing can be put any more.
_ENDS: Final = (OutcomeUnknownError, SessionLostError, UnexpectedReplyError)


@dataclass(slots=True)
class Pace:
    """Keeps the distances in time between originals, `factor` times as fast."""

    factor: float
    _first: datetime | None = None
    _began: float = 0.0

    def due_in(self, one: JournaledMessage) -> float:
        """Seconds until its copy is to be put, by the enqueue time of the original."""
        if self._first is None:
            self._first, self._began = one.enqueued_at, time.monotonic()
        due_seconds = (one.enqueued_at - self._first).total_seconds() / self.factor
        return self._began + due_seconds - time.monotonic()


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaying:
    """A replay that has begun: the session that puts its copies, and the position of its Open."""

    session: Session
    opened_at: int
    queue_manager: str
    name: str

    def put(
        self,
        messages: Iterable[JournaledMessage],
        *,
        to: str | None = None,
        groups: bool = True,
        pace: Pace | None = None,
        tell: Callable[[int], None] | None = None,
    ) -> int:
        """Puts copies of messages, in their order and as republishing does; returns how many.

        Args:
            messages: Those that this replay has not put yet, as the log tells up to `opened_at`.
            to: The destination; None: for each the one that it was put to.
            groups: Whether copies on a queue have their places in groups.
            pace: None: as fast as they can be put.
            tell: Called with how many were put, whenever some more were.

        Raises:
            ReplayStoppedError: A message could not be put; those before it were.
            SessionLostError: The session ended; the same replay can be begun anew.
            OutcomeUnknownError: No outcome came in time; the same replay can be begun anew.
        """
        done = 0
        copier = Copier(session=self.session, to=to, groups=groups)
        units = units_of(messages) if pace is None else units_of(messages, pace.due_in)
        try:
            for unit in units:
                for part in self._put_unit(copier, unit):
                    done += part
                    if tell is not None:
                        tell(done)
        except LedgerMQError as error:
            error.add_note(
                f"messages that were put before that: {done:,}; once it is mended, run the same "
                "again: it goes on behind what the log has"
            )
            raise
        return done

    def _put_unit(self, copier: Copier, unit: list[JournaledMessage]) -> Iterator[int]:
        """Puts messages in one unit of work, or one by one up to that which cannot be put."""
        try:
            self._commit(copier, unit)
        except _ENDS:
            raise
        except LedgerMQError:
            self.session.rollback()
        else:
            yield len(unit)
            return
        for one in unit:
            try:
                self._commit(copier, [one])
            except _ENDS:
                raise
            except LedgerMQError as error:
                place = replayed.put_named(self.queue_manager, one.put_position, one.put_index)
                raise ReplayStoppedError(
                    f"message {one.message_id} of {one.destination}, put at {place}, cannot be put "
                    f"again: {error}"
                ) from error
            yield 1

    def _commit(self, copier: Copier, unit: list[JournaledMessage]) -> None:
        for one in unit:
            marks = replayed.marks_of(self.queue_manager, one, self.name)
            copier.put(one, marks=marks, persistent=one.persistent)
        self.session.commit()


@contextlib.contextmanager
def replaying(connection: Connection, name: str) -> Iterator[Replaying]:
    """Begins a replay, on a connection whose client id nobody else has who runs the same one."""
    with connection.session(transacted=True) as session:
        yield Replaying(
            session=session,
            opened_at=session.handle,
            queue_manager=connection.queue_manager,
            name=name,
        )
