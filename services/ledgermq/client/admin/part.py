"""How administration reaches the queue manager: operations on the log, questions to its worker."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

from ledgermq.client.closing import Uncopied
from ledgermq.client.engine.engine import Engine
from ledgermq.client.link.questions import Questions
from ledgermq.errors import UnexpectedReplyError
from ledgermq.protocol.documents.fields import Document, status_of
from ledgermq.protocol.operations import SessionOperation
from ledgermq.protocol.outcomes import Administered

S = TypeVar("S")
_OF_A_NAME: Final = re.compile("[A-Za-z0-9._/%-]+")
# What stands behind all that names consist of.
_BEHIND_ALL: Final = "~"


def status_told(kind: type[S], document: Document, /, **beside: Any) -> S:
    """The status in a document of the worker; UnexpectedReplyError: it lacks what is in one."""
    try:
        return status_of(kind, document, **beside)
    except KeyError as error:
        raise UnexpectedReplyError(
            f"the worker tells no {error.args[0]}, which this client expects in a "
            f"{kind.__name__}: it is of an older release; upgrade workers before clients"
        ) from None


def who_asks(actor: str | None = None) -> str:
    """The actor if there is one, else the user of the operating system.

    In a container that user is often a number that it has no name for.
    """
    if actor is not None:
        return actor
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"


def _before(prefix: str) -> str:
    """A text that stands before all names with a prefix, and behind those that come before them."""
    begun = _OF_A_NAME.match(prefix)
    if begun is None:
        return ""
    return f"{begun[0][:-1]}{chr(ord(begun[0][-1]) - 1)}{_BEHIND_ALL}"


class AdminPart(Uncopied):
    """One kind of administration; it may be of the same object as the others."""

    def __init__(self, control: Callable[[], Engine], questions: Questions) -> None:
        # The control session of the connection, anew if it was lost.
        self._control = control
        self._ask, self._pages = questions.ask, questions.pages

    def _change(
        self, operation: type[SessionOperation], *, about: str | None = None, **fields: Any
    ) -> int:
        """Writes an operation about a destination or none; the log position of its outcome."""
        engine = self._control()
        steps = engine.administer(operation, about, fields, result=lambda reply: reply.position)
        return engine.run(steps).position

    def _one(self, kind: type[S], asked: str, not_before: int, **more: Any) -> S:
        """The status of one thing, with the position that it is true at."""
        answer = self._ask(asked, not_before, **more)
        return status_told(kind, answer.document, position=answer.position)

    def _listed(self, asked: str, kind: type[S], not_before: int) -> list[S]:
        """All that there is of something, asked for page by page; each names its position."""
        return [
            status_told(kind, one, position=answer.position)
            for answer in self._pages(asked, not_before)
            for one in answer.document
        ]

    def _named(self, asked: str, kind: type[S], prefix: str, not_before: int) -> list[S]:
        """As `_listed`, of what comes by name: no page is asked for that has none of a prefix."""
        found: list[S] = []
        for answer in self._pages(asked, not_before, after=_before(prefix)):
            documents = [one for one in answer.document if one["name"].startswith(prefix)]
            found += [status_told(kind, one, position=answer.position) for one in documents]
            if len(documents) < len(answer.document):
                break
        return found

    def _administer(
        self, operation: type[SessionOperation], *, about: str | None = None, **fields: Any
    ) -> Administered:
        """Writes an operation that touches messages; what it did."""
        engine = self._control()
        reply = engine.run(engine.administer(operation, about, fields))
        assert isinstance(reply, Administered), "operations by hand are answered by Administered"
        return reply
