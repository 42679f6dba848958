"""Operations by hand for random histories: blind ones, and such as suit the model's state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from ledgermq.protocol import administration
from ledgermq.protocol.administration import MessageSelection
from ledgermq.protocol.operations import Operation
from support.generators.naive_operations import QUEUES, SELECTORS, common, destinations

WAITING = ("available", "unborn", "delayed")
numbers = st.sampled_from((0, 0, 1, 2, 3, -1, 20_000))
selections: st.SearchStrategy[MessageSelection] = st.fixed_dictionaries(
    {
        "source": destinations,
        "subscription": st.sampled_from(("", "", "s", "r", "a b")),
        "client_id": st.sampled_from(("", "client", "d")),
        "durable": st.booleans(),
        "selector": st.sampled_from((*SELECTORS, "color =")),
        "sequences": st.lists(
            st.builds(lambda first, last: {"first": first, "last": last}, numbers, numbers),
            max_size=2,
        ),
        "after_sequence": st.sampled_from((-1, -1, -1, 0, 2, -2)),
        "limit": st.sampled_from((0, 0, 1, 2, 20_000, -1)),
    }
)
handling: dict[str, Any] = {
    **common,
    "selection": selections,
    "actor": st.sampled_from(("a", "a", "", "ä" * 128, "a" * 129)),
    "reason": st.sampled_from(("r", "r", "", "ü" * 1024, "r" * 1025)),
}
naive_handling: st.SearchStrategy[Operation] = st.one_of(
    st.builds(administration.PurgeQueue, **handling),
    st.builds(administration.DeleteMessages, **handling),
    st.builds(
        administration.MoveMessages, **handling, target=destinations, to_origin=st.booleans()
    ),
    st.builds(administration.CopyMessages, **handling, target=destinations),
)


class HandlingWriter:
    """Draws operations by hand that suit the model's state; part of a writer of histories."""

    model: Any
    one: Callable[[Any], Any]
    write: Callable[[Operation], None]
    common: Callable[[dict[str, Any]], dict[str, Any]]

    def put(self, session: dict[str, Any], destination: str | None = None) -> None:
        """Some messages."""
        raise NotImplementedError

    def handle(self, session: dict[str, Any]) -> None:
        """Messages are purged, deleted, moved, sent back or copied."""
        if not self._waiting():
            self.put(session, "queue:s")
        if not any(one is session for one in self.model.sessions):
            return
        waiting = self._waiting()
        came = [one for one in waiting if one["origin"] is not None]
        kinds = ("purge", "delete", "move", "move", "copy", *(("retry",) * 6 if came else ()))
        kind = self.one(kinds)
        told: dict[str, Any] = {**self.common(session), "actor": "a", "reason": "r"}
        stores = [one["queue"] for one in (came if kind == "retry" else waiting)]
        selection = self.selection(self.one(stores or list(QUEUES)), named=kind == "delete")
        places = [*("queue:" + one["name"] for one in self.model.queues), "topic:t", "queue:r"]
        target = self.one([one for one in places if one != selection["source"]])
        told["selection"] = selection
        operations: dict[str, Callable[[], Operation]] = {
            "purge": lambda: administration.PurgeQueue(**told),
            "delete": lambda: administration.DeleteMessages(**told),
            "move": lambda: administration.MoveMessages(**told, target=target),
            "retry": lambda: administration.MoveMessages(**told, to_origin=True),
            "copy": lambda: administration.CopyMessages(**told, target=target),
        }
        self.write(operations[kind]())

    def _waiting(self) -> list[dict[str, Any]]:
        return [one for one in self.model.messages if one["place"] in WAITING]

    def selection(self, store: str, *, named: bool) -> MessageSelection:
        """Messages of a queue or subscription; `named`: by number."""
        known = [one["sequence"] for one in self.model.messages if one["queue"] == store]
        chosen = sorted({one for one in known if one is not None and self.one((True, False))})
        wanted = named or self.one((True, False, False))
        found: MessageSelection = {
            "source": "queue:" + store,
            "subscription": "",
            "client_id": "",
            "durable": True,
            "selector": self.one(("", "", *SELECTORS)),
            "sequences": [{"first": one, "last": one} for one in chosen] if wanted else [],
            "after_sequence": self.one((-1, -1, -1, 0)),
            "limit": self.one((0, 0, 1, 2)),
        }
        for one in self.model.subscriptions:
            if one["id"] == store:
                kind, name, client_id = one["key"]
                found["source"] = "topic:" + one["topic"]
                found["subscription"], found["client_id"] = name, client_id
                found["durable"] = kind == "durable"
        return found
