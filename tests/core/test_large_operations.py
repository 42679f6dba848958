"""Whatever an operation brings, its outcomes fit into records and the state does not grow by it."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from ledgermq.core.apply import apply, new_state
from ledgermq.core.snapshot.state_records import root_of
from ledgermq.core.state.manager import QueueManager
from ledgermq.protocol import operations as op
from ledgermq.protocol.outcomes import Addressed, Delivered, body_place
from ledgermq.wire.framing.codec import decode_operation, encode_chunk
from ledgermq.wire.topics.log_topics import DERIVED_BYTES_MAX
from support.generators.naive_operations import sample_message
from support.messages.large_operations import (
    FILLS,
    OPERATIONS,
    any_large_operation,
    large_operations,
)
from support.messages.opening import opening
from support.scripts.play import START_US
from support.scripts.verbs import identifier

pytestmark = pytest.mark.slow

# Kafka counts key and headers of a record too.
AROUND_BYTES = 4096
# What an operation may leave in the state beside messages.
LEFT_BYTES_MAX = 64 * 1024
SESSIONS = {"AUTO": 0, "TRANSACTED": 1}


class Prepared:
    """A state with two sessions, queues, a topic, messages that wait and some in flight."""

    def __init__(self) -> None:
        self.state = new_state()
        self.bodies: dict[tuple[int, int], bytes] = {}
        for mode, handle in SESSIONS.items():
            self.enter(opening(mode, connection=identifier(mode), client_id=mode))
            assert handle in self.state.sessions
        for name in ("q", "r"):
            self.do(op.CreateQueue, queue=name)
        self.do(op.CreateTopic, topic="t")
        subscribed = {"destination": "topic:t", "subscription": "s", "durable": True}
        self.do(op.OpenConsumer, consumer=1, destination="queue:q")
        self.do(op.OpenConsumer, consumer=2, **subscribed)
        self.do(op.CloseConsumer, consumer=2, unseen=[])
        self.do(op.Put, destination="queue:q", messages=[sample_message(n, 4, 9) for n in range(3)])
        self.do(op.Get, consumer=1, credit=100_000)

    def do(self, kind: type[op.SessionOperation], handle: int = 0, **fields: Any) -> None:
        """An operation of a session that is accepted."""
        found = self.enter(kind(**self.fields(handle), **fields))
        assert type(found[0].outcome).__name__ != "Refused", found

    def fields(self, handle: int) -> dict[str, int]:
        """What stands in every operation of a session."""
        last = self.state.sessions[handle].last_sequence
        return {"session": handle, "session_sequence": last + 1, "answered_through": last}

    def enter(self, operation: op.Operation) -> list[Addressed]:
        """Folds an operation; the outcomes have their bodies."""
        position = self.state.position + 1
        if isinstance(operation, op.Put):
            for index, one in enumerate(operation.messages):
                self.bodies[position, index] = one["content"]
        found = apply(self.state, operation, position, START_US)
        return [one._replace(outcome=self._filled(one.outcome)) for one in found]

    def _filled(self, outcome: Any) -> Any:
        if not isinstance(outcome, Delivered):
            return outcome
        messages = [one | {"content": self.bodies[body_place(one)]} for one in outcome.messages]
        return replace(outcome, messages=messages)


def base_of(name: str, prepared: Prepared, handle: int) -> dict[str, Any]:
    """Other fields of an operation, such that what is large in it is looked at."""
    message = {"message_id": bytes(16), "priority": 4, "persistent": True, "content": b"x"}
    selection = {"source": "queue:q", "subscription": "", "client_id": "", "durable": True}
    rest = {"selector": "", "sequences": [], "after_sequence": -1, "limit": 0}
    fitting: dict[str, dict[str, Any]] = {
        "Open": {"connection": identifier("new"), "acknowledge_mode": "AUTO"}
        | {"suspect_timeout_ms": 10_000},
        "OpenConsumer": {"consumer": 9, "destination": "topic:t"},
        "CloseConsumer": {"consumer": 1},
        "Get": {"consumer": 1, "credit": 1},
        "Put": {"destination": "queue:q", "messages": [message]},
        "AlterQueue": {"queue": "q"},
        "AlterTopic": {"topic": "t"},
        "CreateQueue": {"queue": "new"},
        "CreateTopic": {"topic": "new"},
        "RollbackTransaction": {"target_session": 1},
        "EndSession": {"target_session": 1 - handle},
        "Correct": {"queue": "q", "action": "REMOVE", "sequence": 0},
    }
    base = fitting.get(name.rpartition(".")[2], {})
    if name.rpartition(".")[2] in ("PurgeQueue", "DeleteMessages", "MoveMessages", "CopyMessages"):
        base = {"selection": selection | rest, "target": "queue:r"}
    common = {"actor": "a", "reason": "r", "worker": "w", **prepared.fields(handle)}
    return common | base


def check(field: str, value: bytes, fresh: QueueManager) -> None:
    """Folds one operation; its outcomes fit, and but for messages the state hardly grows."""
    prepared = Prepared()
    for one in prepared.enter(decode_operation(value)):
        size = len(encode_chunk(-1, -2, [one.outcome], bytes(32)))
        assert size <= DERIVED_BYTES_MAX - AROUND_BYTES, (field, size)
    left = len(repr(root_of(prepared.state))) - len(repr(root_of(fresh)))
    assert left <= LEFT_BYTES_MAX or field.startswith("Put."), (field, left)


@pytest.mark.parametrize(("handle", "fill"), list(zip((0, 1, 0), FILLS, strict=True)))
@pytest.mark.parametrize("name", OPERATIONS)
def test_outcomes_of_operations_of_any_size_fit_into_a_record_and_the_state_stays_small(
    name, handle, fill
):
    """Each field of every operation at its largest (H2, decision 8): no outcome is larger than a
    record may be, and but for messages the state hardly grows.
    """
    fresh = Prepared()
    for field, value in large_operations(name, base_of(name, fresh, handle), fill):
        check(field, value, fresh.state)


@pytest.mark.parametrize("seed", range(4))
def test_outcomes_of_operations_with_several_large_fields_fit_into_a_record(seed):
    """Fields of any lengths together, up to the size of a record: the same holds (H2)."""
    chance, fresh = Random(seed), Prepared()
    for name in OPERATIONS:
        found = any_large_operation(name, base_of(name, fresh, chance.choice((0, 1))), chance)
        if found is not None:
            check(*found, fresh.state)
