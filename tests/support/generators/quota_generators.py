"""Random histories in which quotas are small, so that puts wait, pass and time out (§16)."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from ledgermq.protocol import operations as op
from support.generators.generators import BUSY, WEIGHTS, Entry, Writer
from support.generators.group_generators import item
from support.generators.naive_operations import (
    TIMINGS,
    grouped_message,
    manager_settings,
    sample_message,
)
from support.scripts.verbs import group_id

QUOTA_WEIGHTS = (
    *(one for one in WEIGHTS if one != "administer"),
    *("put", "put", "put", "put", "settle", "settle", "settle", "back", "close"),
    *("quota", "quota", "wait", "wait", "go_on", "go_on", "retry", "retry", "correct"),
    *("end_other", "end_other", "newcomers", "newcomers"),
)
PLACES = (BUSY, BUSY, BUSY, "queue:r", "topic:t", "topic:t")


class QuotaWriter(Writer):
    """Draws operations that meet quotas."""

    weights = QUOTA_WEIGHTS

    def prelude(self) -> None:
        """Quotas on a queue, a topic or all, and sessions that put more than fits."""
        self.open()
        self.open()
        for session in self.model.sessions[:2]:
            self.receive(session)
        for _ in range(3):
            if self.model.sessions:
                self.quota(self.one(self.model.sessions))
        for _ in range(4):
            if self.model.sessions:
                self.put(self.one(self.model.sessions), BUSY)
        for session in self.model.sessions[:2]:
            waits = session["mode"] == "TRANSACTED" and self.model.blocked_of(session)
            if waits and self.draw(st.booleans()):
                self.commit_all(session)

    def put(self, session: dict[str, Any], destination: str | None = None) -> None:
        """Some messages, of several sizes, most of which may wait."""
        place = len(self.history) * 10
        messages = [self.message(place + one) for one in range(self.one((1, 1, 1, 2, 3)))]
        self.write(
            op.Put(
                **self.common(session),
                destination=destination or self.one((*PLACES, self.destination())),
                messages=messages,
                blocking_ms=self.one((0, 1_000, 5_000, 20_000, 20_000)),
            )
        )

    def message(self, number: int) -> op.PutMessage:
        """A message, seldom one of a group."""
        if self.one((False,) * 5 + (True,)):
            grouped = grouped_message(number, self.group())
            return replace_size(grouped, self.one((1, 3)))
        return sample_message(number, 4, self.one((1, 1, 3)), "", self.one(TIMINGS))

    def group(self) -> op.Group:
        """A place in one of two groups."""
        of, number = group_id(self.one("GH")), self.one((1, 2, 3))
        last = self.one((False, False, True))
        return item(of, number, last=last, ordered=self.draw(st.booleans()))

    def quota(self, session: dict[str, Any]) -> None:
        """Another quota of a destination or of all."""
        quotas = {
            "messages_max": self.one((None, 0, 1, 2, 3, 3)),
            "bytes_max": self.one((None, 0, 0, 3, 5)),
        }
        settings = quotas | {"blocking_send_policy": self.one((None, "FIFO", "PREEMPTIVE"))}
        kind = self.one(("queue", "queue", "queue", "topic", "topic", "manager", "storage", "none"))
        if kind == "manager":
            self.write(op.AlterQueueManager(**self.common(session), **quotas, **self.marks()))
        elif kind == "storage":
            self.write(op.AlterQueueManager(**self.common(session), **self.draw(manager_settings)))
        elif kind == "none":
            self.set_manager_quota(session, 0)
        else:
            self.set_quota(session, kind, settings)

    def set_quota(self, session: dict[str, Any], kind: str, settings: dict[str, Any]) -> None:
        """Gives a queue or topic a quota; makes it, if it is not there."""
        full = dict.fromkeys(("time_to_live_override_ms", "delivery_delay_override_ms"))
        full |= {"puts_disabled": None}
        full |= {"expiry_destination": None, **settings}
        common = self.common(session)
        if kind == "topic":
            known = self.model.topic("t") is not None
            topics = op.AlterTopic if known else op.CreateTopic
            self.write(topics(**common, topic="t", settings=full, **self.marks(known)))
            return
        name = self.one(("q", "q", "r"))
        known = self.model.queue(name) is not None
        queues = op.AlterQueue if known else op.CreateQueue
        self.write(queues(**common, queue=name, settings=full, **self.marks(known)))

    def marks(self, known: bool = True) -> dict[str, int | None]:
        """Resume marks, most often none or as they were, of what is known."""
        if not known:
            return {}
        return {
            "messages_resume": self.one((None, None, 0, 1, 2)),
            "bytes_resume": self.one((None, None, 0, 0, 2)),
        }

    def newcomers(self, session: dict[str, Any]) -> None:
        """Puts to what is not there while there is no room; then room, where more may be made."""
        model = self.model
        brief = sample_message(len(self.history) * 10, 4, 1, "", (1_000, 0, 0))
        self.write(op.Put(**self.common(session), destination="queue:n", messages=[brief]))
        held = sum(len(model.held(one["id"])) for one in (*model.queues, *model.topics))
        self.set_manager_quota(session, max(1, held))
        name = f"n{model.position}"
        new = (f"queue:{name}", f"queue:{name}/", f"topic:{name}")
        for place in self.draw(st.permutations(new)):
            if model.sessions:
                self.put(self.one(model.sessions), place)
        kind = self.one(("quota", "quota", "subscribe", "subscribe", "none"))
        if kind == "none" or not model.sessions:
            return
        getter = self.one(model.sessions)
        if kind == "quota":
            self.set_manager_quota(getter, 0)
            return
        # The brief one expires meanwhile.
        self.time += self.one((1_000_000, 2_000_000))
        number = max((one["number"] for one in model.consumers_of(getter)), default=0) + 1
        told = {"consumer": number, "destination": f"topic:{name}/", "selector": ""}
        self.write(op.OpenConsumer(**self.common(getter), **told))

    def set_manager_quota(self, session: dict[str, Any], messages_max: int) -> None:
        """A quota of messages of all together, and none of bytes."""
        quota = {"messages_max": messages_max, "bytes_max": 0, "bytes_resume": 0}
        quota["messages_resume"] = self.one((0, 0, min(messages_max, 1)))
        self.write(op.AlterQueueManager(**self.common(session), **quota))

    def retry(self, session: dict[str, Any]) -> None:
        """An operation that waits, or another one, once more, byte by byte."""
        waiting = [one["position"] for one in self.model.blocked]
        position = self.one(waiting or range(len(self.history)))
        self.write(self.history[position].value or b"\0")

    def wait(self, session: dict[str, Any]) -> None:
        """The next put that waits times out."""
        due = min((one["deadline"] for one in self.model.blocked), default=0)
        self.time = max(self.time, due)
        self.write(op.Tick(worker="w"))

    def go_on(self, session: dict[str, Any]) -> None:
        """What a session that waits does meanwhile: commits, rolls back, closes."""
        handles = [one["session"] for one in self.model.blocked]
        waiting = [one for one in self.model.sessions if one["session"] in handles]
        kind = self.one(("settle", "settle", "settle", "back", "put", "close", "delete", "end"))
        # Most often one whose commit would wait too.
        transacted = [one for one in waiting if one["mode"] == "TRANSACTED"]
        chosen = self.one(transacted * 3 + waiting or self.model.sessions)
        if kind == "delete":
            self.write(op.DeleteQueue(**self.common(chosen), queue="q", purge=True))
        elif kind == "end":
            self.end_other(self.one(self.model.sessions), chosen)
        elif kind == "settle" and chosen["mode"] == "TRANSACTED":
            self.commit_all(chosen)
        else:
            getattr(self, kind)(chosen)

    def commit_all(self, session: dict[str, Any]) -> None:
        """A commit of all that was put, as a client writes it that has no replies yet."""
        waiting = [len(one["added"]) for one in self.model.blocked_of(session)]
        puts = len(self.model.open_puts(session)) + sum(waiting)
        named = self.some_of(self.flights(session))
        self.write(op.Commit(**self.common(session), deliveries=named, puts=puts))


def replace_size(message: op.PutMessage, size: int) -> op.PutMessage:
    """The same message with a content of another size."""
    return {**message, "content": b"x" * size}


@st.composite
def quota_histories(draw: st.DrawFn, steps: int = 30) -> list[Entry]:
    """Histories in which puts wait."""
    return QuotaWriter(draw).history_of(steps)
