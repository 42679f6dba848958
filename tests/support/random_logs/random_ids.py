"""Random logs of puts that come twice: from two senders, in units of work, waiting for a quota."""

from __future__ import annotations

from typing import Any

from ledgermq.protocol import operations as op
from ledgermq.protocol.settings import given_settings
from support.brokers.log_writer import Script, ScriptSession

PLACES = ("queue:q", "queue:q", "queue:r", "topic:t", "queue:made")
WINDOWS = ((50, 9), (300, 9), (60_000, 2), (60_000, 9), (60_000, 9), (0, 0))


class RandomIds:
    """Senders of few ids to destinations with windows that come and go, and a consumer."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.random = script.random
        self.sessions = [
            script.session(mode, connection=script.identifier())
            for mode in ("CLIENT", "CLIENT", "TRANSACTED", "TRANSACTED", "CLIENT")
        ]
        self.admin = self.sessions[4]
        self.admin.send(op.CreateQueue, queue="q", **self.window())
        self.admin.send(op.CreateQueue, queue="r", **self.window())
        self.admin.send(op.CreateTopic, topic="t", **self.window())
        self.admin.consumer("q", credit=5)
        self.admin.subscribe("t", 2, 5, subscription="s", durable=True, shared=True)

    def grow(self, steps: int) -> Script:
        """So many operations."""
        for _ in range(steps):
            self.step()
        return self.script

    def window(self) -> dict[str, Any]:
        """A window that may be given to a new destination; seldom one that may not."""
        window_ms, ids_max = self.random.choice((*WINDOWS * 3, (5, 0), (-1, 3), (0, 2)))
        return {"deduplication_window_ms": window_ms, "deduplication_ids_max": ids_max}

    def step(self) -> None:
        """One operation of one session."""
        self.script.wait(self.random.choice((0, 0, 0, 0.02, 0.1)))
        what = self.random.random()
        if what < 0.5:
            self.put(self.random.choice(self.sessions[:4]))
        elif what < 0.72:
            self.end(self.random.choice(self.sessions[2:4]))
        elif what < 0.8:
            self.admin.acknowledge(*self.script.in_flight(self.admin))
            self.admin.get(self.random.choice((1, 3)), self.random.choice((1, 2)))
        elif what < 0.9:
            self.alter()
        elif what < 0.92:
            self.admin.send(op.DeleteQueue, queue=self.random.choice("qr"), purge=True)
            self.admin.send(op.CreateQueue, queue="r", **self.window())
        else:
            settings = {"messages_max": self.random.choice((0, 0, 2, 20))}
            settings["puts_disabled"] = self.random.random() < 0.1
            self.admin.send(op.AlterQueue, queue="q", settings=given_settings(settings))

    def alter(self) -> None:
        """Another window, or one of its two values."""
        given = self.window()
        if self.random.random() < 0.3:
            given[self.random.choice(list(given))] = None
        name = self.random.choice("qqrt")
        if name == "t":
            self.admin.send(op.AlterTopic, topic="t", **given)
        else:
            self.admin.send(op.AlterQueue, queue=name, **given)

    def put(self, session: ScriptSession) -> None:
        """One or some messages, most often with an id."""
        name = self.random.choice((*"aabbccdef", None, None, "x" * 129))
        session.send(
            op.Put,
            destination=self.random.choice(PLACES),
            messages=[
                self.script.message(str(number)) for number in range(self.random.choice((1, 1, 3)))
            ],
            blocking_ms=self.random.choice((0, 0, 0, 100, 60_000)),
            deduplication_id=name,
        )

    def end(self, session: ScriptSession) -> None:
        """A unit of work ends, if it may."""
        if self.random.random() < 0.25:
            session.send(op.Rollback, seen=[])
            return
        record = self.script.state.sessions.get(session.handle)
        held = 0 if record is None else sum(map(len, record.open_puts.values()))
        session.send(op.Commit, deliveries=[], puts=held + (self.random.random() < 0.05))
