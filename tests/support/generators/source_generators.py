"""Random histories of puts that name their sources: again, too early, in units of work (§5)."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from ledgermq.protocol import operations as op
from ledgermq.protocol.settings import given_settings
from support.generators.generators import WEIGHTS, Entry, Writer
from support.generators.naive_operations import sample_message

SOURCE_WEIGHTS = (
    *(one for one in WEIGHTS if one not in ("administer", "naive", "subscribe", "temporary")),
    *("put",) * 12,
    *("delete", "limit", "limit"),
)
PLACES = ("queue:q", "queue:q", "queue:q", "queue:r", "topic:t")


class SourceWriter(Writer):
    """Draws puts from two sources of two partitions, most of them where the last one ended."""

    weights = SOURCE_WEIGHTS

    def put(self, session: dict[str, Any], destination: str | None = None) -> None:
        """Messages of the next part of a source, of one before or of one behind it."""
        where = destination or self.one(PLACES)
        name, partition = self.one((("k", 0), ("k", 0), ("k", 1), ("l", 0)))
        first = self.one((0, 0, 0, 0, 0, 1, -1, -2)) + self.following(where, name, partition)
        count = self.one((1, 1, 2, 3))
        last = first + count - 1 + self.one((0, 0, 0, 0, 5, -1, -4))
        part: op.Source = {"name": name, "partition": partition, "first": first, "last": last}
        place = len(self.history) * 10
        priority = self.one((4,) * 9 + (11,))
        self.write(
            op.Put(
                **self.common(session),
                destination=where,
                messages=[sample_message(place + one, priority, 1) for one in range(count)],
                blocking_ms=self.one((0,) * 9 + (1_000,)),
                source=self.one((part, part, part, part, part, None)),
            )
        )

    def following(self, destination: str, name: str, partition: int) -> int:
        """The position behind the last one taken, or any to begin with."""
        place = self.model.place(destination) or {"parts": []}
        taken = [
            one["last"]
            for one in place["parts"]
            if (one["name"], one["partition"]) == (name, partition)
        ]
        return max(taken) + 1 if taken else self.one((0, 0, 2, 100))

    def delete(self, session: dict[str, Any]) -> None:
        """A queue or topic goes, with what it remembers."""
        self.write(op.DeleteQueue(**self.common(session), queue=self.one("qr"), purge=True))

    def limit(self, session: dict[str, Any]) -> None:
        """A queue has no room for much, or takes no puts, or is as it was."""
        settings = {
            "puts_disabled": self.one((True, False, False)),
            "messages_max": self.one((0, 0, 2, 5)),
        }
        given = given_settings(settings)
        self.write(op.AlterQueue(**self.common(session), queue="q", settings=given))


@st.composite
def source_histories(draw: st.DrawFn, steps: int = 30) -> list[Entry]:
    """Histories in which destinations take parts of sources."""
    return SourceWriter(draw).history_of(steps)
