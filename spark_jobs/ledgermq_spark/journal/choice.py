"""Which messages of the journal somebody means: by id, destination, time or selector."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from ledgermq.protocol.instants import EPOCH
from ledgermq.selector import parse_selector
from ledgermq.wire.content.journaled import JournaledMessage
from ledgermq_spark.log.headers import header_text
from ledgermq_spark.log.matching import Selected, matches


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which messages are meant; what is left out says nothing. `limit` 0: all that are.

    `since` is the first moment of their enqueue time, `until` the first that is too late.
    """

    message_ids: tuple[str, ...] = ()
    destination: str = ""
    since: datetime | None = None
    until: datetime | None = None
    selector: str = ""
    limit: int = 0

    def takes(self, one: JournaledMessage) -> bool:
        """Whether a message is meant, the limit aside."""
        if self.message_ids and one.message_id not in self.message_ids:
            return False
        if self.destination and one.destination != self.destination:
            return False
        if self.since is not None and one.enqueued_at < self.since:
            return False
        if self.until is not None and one.enqueued_at >= self.until:
            return False
        return not self.selector or matches(
            parse_selector(self.selector),
            Selected(
                bytes.fromhex(one.message_id),
                one.priority,
                one.persistent,
                (one.enqueued_at - EPOCH) // timedelta(microseconds=1),
                header_text(one.header),  # type: ignore[arg-type]
            ),
        )


def chosen(messages: Iterable[JournaledMessage], choice: Choice) -> Iterator[JournaledMessage]:
    """Those that are meant, in the order in which they come."""
    left = choice.limit
    for one in messages:
        if choice.takes(one):
            yield one
            left -= 1
            if left == 0:
                return
