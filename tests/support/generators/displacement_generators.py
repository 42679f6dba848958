"""Histories in which newer messages displace older ones: how many are kept changes (§23)."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from ledgermq.protocol import operations as op
from support.generators.fifo_generators import FifoWriter, fifo_histories
from support.generators.generators import Entry

KEYS = ("", "", None, "color", "color", "color", "JMSXGroupID", "JMSPriority")
KEPT: tuple[int | None, ...] = (1, 2, 2, 3, 5, 0, 0, 0, None)


class DisplacementWriter(FifoWriter):
    """Draws operations on one busy queue that keeps few messages, and on any other place."""

    def begin(self) -> None:
        """As with any mode, but that the queue keeps few messages from the start."""
        super().begin()
        self.change(self.model.sessions[0])

    def change(self, session: dict[str, Any]) -> None:
        """Another number of messages is kept in some queue or by subscriptions of some topic."""
        common, kept = self.common(session), self.one(KEPT)
        told = {"available_max": kept, "last_value_key": self.one(KEYS)}
        place = self.one([*self.model.queues, *self.model.topics] or [None])
        if place is None:
            made = {name: value for name, value in told.items() if value is not None}
            self.write(op.CreateQueue(**common, queue="q", **made))
        elif place["id"].startswith("topic:"):
            self.write(op.AlterTopic(**common, topic=place["name"], **told))
        else:
            mode = self.one((None, None, self.mode()))
            self.write(op.AlterQueue(**common, queue=place["name"], settings=mode, **told))


def displacement_histories() -> st.SearchStrategy[list[Entry]]:
    """Histories of a queue in which it matters which messages are the newest."""
    return fifo_histories(DisplacementWriter)
