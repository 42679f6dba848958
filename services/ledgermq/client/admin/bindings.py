"""Bindings: what is put to topics goes on to queues and other topics."""

from __future__ import annotations

from ledgermq.client.admin.part import AdminPart
from ledgermq.client.argument_types import typed
from ledgermq.client.destinations import checked_destination, topic_name
from ledgermq.protocol.documents.destinations import BindingStatus
from ledgermq.protocol.operations import Bind, Unbind


@typed
class Bindings(AdminPart):
    """Which topics hand copies of what is put to them on, and where to."""

    def bind(self, topics: str, destination: str, *, selector: str = "") -> int:
        """Has topics hand copies of what is put to them on to a queue or topic, from now on.

        Where several bindings would hand a message to the same destination, it is there once.
        What a topic has from elsewhere than by a put, such as by another binding, goes no further.
        A binding that is there already has the new selector.

        Args:
            topics: Name of a topic, or a pattern of names: of its words, which are between dots and
                slashes, `*` is any one, and one `#` any number, as in `orders.*.eu` or `orders.#`.
            destination: Where copies go, as `queue:NAME` or `topic:NAME`; they do beyond quotas.
            selector: Restricts what is handed on (PROTOCOL.md §12); empty: everything.

        Returns:
            The log position of the outcome.

        Raises:
            InvalidDestinationError: the pattern or the destination is none.
            TemporaryDestinationDeletedError: the destination is not there.
            InvalidSelectorError: the selector is not valid.
            RefusedError: the destination is temporary, or the very topic.
            OutcomeUnknownError: no outcome within the time-out.
        """
        fields = {"topics": _pattern(topics), "destination": checked_destination(destination)}
        return self._change(Bind, about=destination, **fields, selector=selector)

    def unbind(self, topics: str, destination: str) -> int:
        """Ends a binding, named as it was made; the log position of the outcome.

        What it handed on stays where it is.

        Raises:
            BindingNotFoundError: there is no such binding.
            OutcomeUnknownError: no outcome within the time-out.
        """
        fields = {"topics": _pattern(topics), "destination": checked_destination(destination)}
        return self._change(Unbind, about=destination, **fields)

    def bindings(self, topic: str | None = None, *, not_before: int = -1) -> list[BindingStatus]:
        """All bindings in the order in which they were made, or those that take in one topic.

        Raises:
            InvalidDestinationError: `topic` names none.
            WorkerUnavailableError: nobody answered within the time-out.
        """
        wanted = None if topic is None else topic_name(topic)
        every = self._listed("BINDINGS", BindingStatus, not_before)
        return [one for one in every if wanted is None or one.takes_in(wanted)]


def _pattern(topics: str) -> str:
    return topics.removeprefix("topic:")
