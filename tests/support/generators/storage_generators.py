"""Histories in which storage is scarce: small segments, few of them, and messages of some bytes."""

from __future__ import annotations

from typing import Any

from ledgermq.protocol import operations as op
from ledgermq.protocol.administration import CopyMessages, MoveMessages, PurgeQueue
from support.generators.generators import Entry, SeededWriter
from support.generators.naive_operations import TIMINGS, sample_message
from support.scripts.verbs import identifier

Row = dict[str, Any]
QUEUES = ("queue:q", "queue:q", "queue:r", "topic:t", "topic:t", "temporary")
MANY_TIMINGS = (*TIMINGS, (1_000, 0, 0), (50, 0, 0))
WEIGHTS = (
    *("put",) * 12,
    *("receive", "consume", "subscribe"),
    *("settle",) * 4,
    *("back", "open", "lose", "tick", "close", "close_consumer"),
    *("remove", "remove", "manage", "unsubscribe", "temporary"),
    *("handle", "handle"),
)


class StorageWriter(SeededWriter):
    """Chooses operations that fill segments and empty them again."""

    def step(self) -> None:
        """One entry or a few."""
        self.time += self.one((0, 0, 0, 50_000, 1_000_000))
        kind = self.one(WEIGHTS)
        sessions = self.model.sessions
        getattr(self, kind if sessions else "open")(*(sessions and [self.one(sessions)]))

    def prelude(self) -> None:
        """Sessions, small segments, and somewhere to go for what expires."""
        for _ in range(3):
            self.open()
        first = self.model.sessions[0]
        self.manage(first)
        self.write(op.CreateQueue(**self.common(first), queue="r"))
        self.write(op.CreateQueue(**self.common(first), queue="q", settings=self.settings()))
        self.write(op.CreateTopic(**self.common(first), topic="t", settings=self.settings()))
        for number, name in enumerate("rs", 1):
            self.write(
                op.OpenConsumer(
                    **self.common(first),
                    consumer=number,
                    destination="topic:t",
                    subscription=name,
                    durable=True,
                    shared=True,
                )
            )

    def settings(self) -> dict[str, Any] | None:
        """Messages that expire go to another queue, or nowhere."""
        told = dict.fromkeys(("time_to_live_override_ms", "delivery_delay_override_ms"))
        return self.one((None, *[{**told, "expiry_destination": "queue:r"}] * 3))

    def open(self, session: Row | None = None) -> None:
        """A session of one of two connections."""
        self.write(
            op.Open(
                connection=identifier(self.one("ab")),
                lane=0,
                session_key=identifier(str(len(self.history))),
                acknowledge_mode=self.one(("TRANSACTED", "TRANSACTED", "CLIENT")),
                suspect_timeout_ms=1_000,
            )
        )

    def manage(self, session: Row) -> None:
        """Small segments, and mostly few of them."""
        self.write(
            op.AlterQueueManager(
                **self.common(session),
                segment_bytes=self.one((4, 6, 12, 12)),
                segments_min=self.one((1, 1, 2, 5)),
                segments_max=self.one((0, 2, 3, 5)),
            )
        )

    def put(self, session: Row, destination: str | None = None) -> None:
        """Messages of some bytes, now and then more than fit."""
        where = destination or self.one(QUEUES)
        place = len(self.history) * 10
        messages = [
            sample_message(place + one, 4, self.one((1, 1, 2, 2, 3, 5)), "", self.one(MANY_TIMINGS))
            for one in range(self.one((1, 1, 1, 2, 3)))
        ]
        where = self.destination() if where == "temporary" else where
        self.write(op.Put(**self.common(session), destination=where, messages=messages))

    def some_of(self, numbers: list[int]) -> list[op.DeliveryRange]:
        """All of the numbers, or some of them."""
        every = self.one((True, False))
        chosen = [number for number in numbers if every or self.one((True, False))]
        return [{"first": number, "last": number} for number in chosen]

    def tick(self, session: Row) -> None:
        """Time alone."""
        self.time += self.one((1_000_000, 20_000_000))
        self.write(op.Tick(worker="w"))

    def remove(self, session: Row) -> None:
        """A message, a queue or a topic is removed by hand."""
        kind = self.one(("message", "message", "queue", "topic"))
        if kind == "message":
            self.correct(session)
        elif kind == "queue":
            self.write(op.DeleteQueue(**self.common(session), queue="q", purge=True))
        else:
            self.write(op.DeleteTopic(**self.common(session), topic="t", purge=True))

    def handle(self, session: Row) -> None:
        """Messages are purged, moved or copied by hand."""
        common = self.common(session) | {"actor": "a", "reason": "r"}
        selection: Any = {
            "source": self.one(("queue:q", "queue:q", "queue:r")),
            **dict.fromkeys(("subscription", "client_id", "selector"), ""),
            "durable": True,
            "sequences": [],
            "after_sequence": -1,
            "limit": self.one((0, 0, 1, 2)),
        }
        kind = self.one((PurgeQueue, PurgeQueue, PurgeQueue, MoveMessages, CopyMessages))
        if kind is not PurgeQueue:
            common["target"] = self.one(("queue:r", "queue:r", "topic:t"))
        self.write(kind(**common, selection=selection))

    def unsubscribe(self, session: Row) -> None:
        """The end of a durable subscription."""
        self.write(op.Unsubscribe(**self.common(session), subscription=self.one("sr")))


def storage_history(seed: int, steps: int = 60) -> list[Entry]:
    """A history that comes to the end of the storage, and goes on."""
    return StorageWriter(seed).grow(steps)
