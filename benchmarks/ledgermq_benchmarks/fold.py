"""The row `fold`: one message's life through codec and fold, without Kafka."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from ledgermq.core.apply import apply, new_state
from ledgermq.protocol.operations import Commit, Get, Open, OpenConsumer, Operation, Put
from ledgermq.protocol.outcomes import Delivered
from ledgermq.wire.content.content import encode_content
from ledgermq.wire.framing.codec import decode_operation, encode_chunk, encode_operation

BODY_BYTES = 200
BATCH_MESSAGES = 100
START_US = 1_700_000_000_000_000


def _operations(batches: int) -> list[bytes]:
    """A producer that puts and commits, a consumer that commits what it was delivered."""
    content = encode_content(os.urandom(BODY_BYTES))
    queue = "queue:bench"
    found: list[Operation] = [
        opening(b"p" * 16, "TRANSACTED"),
        opening(b"c" * 16, "TRANSACTED"),
        numbered(OpenConsumer, 1, 1, consumer=1, destination=queue),
        numbered(Get, 1, 2, consumer=1, credit=1000),
    ]
    for batch in range(batches):
        put = batch * 2 + 1
        took = batch * 2 + 3
        first = batch * BATCH_MESSAGES + 1
        messages = [
            {
                "message_id": os.urandom(16),
                "priority": 4,
                "persistent": True,
                "content": content,
            }
            for _ in range(BATCH_MESSAGES)
        ]
        taken = [{"first": first, "last": first + BATCH_MESSAGES - 1}]
        found += [
            numbered(Put, 0, put, destination=queue, messages=messages),
            numbered(Commit, 0, put + 1, deliveries=[], puts=BATCH_MESSAGES),
            numbered(Commit, 1, took, deliveries=taken, puts=0),
            numbered(Get, 1, took + 1, consumer=1, credit=BATCH_MESSAGES),
        ]
    return [encode_operation(one) for one in found]


def numbered(
    kind: Callable[..., Operation], session: int, number: int, **fields: object
) -> Operation:
    return kind(session=session, session_sequence=number, answered_through=number - 1, **fields)


def opening(connection: bytes, acknowledge_mode: str) -> Open:
    return Open(
        connection=connection,
        lane=0,
        session_key=connection,
        acknowledge_mode=acknowledge_mode,
        suspect_timeout_ms=10_000,
    )


def fold_rate(messages: int) -> float:
    """Messages per second through decode, fold, and encode of what is delivered."""
    batches = messages // BATCH_MESSAGES
    values = _operations(batches)
    state = new_state()
    bodies: dict[int, list[bytes]] = {}
    started = time.perf_counter()
    for position, value in enumerate(values):
        operation = decode_operation(value)
        if type(operation) is Put:
            bodies[position] = [one["content"] for one in operation.messages]
        addressed = apply(state, operation, position, START_US + position)
        for _, _, _, _, outcome in addressed:
            if type(outcome) is Delivered:
                for message in outcome.messages:
                    message["content"] = bodies[message["put_position"]][message["put_index"]]
        if addressed:
            head = addressed[0]
            encode_chunk(
                head.previous_position, head.previous_index, [one.outcome for one in addressed]
            )
    seconds = time.perf_counter() - started
    consumed = state.queues["bench"].gone["consumed"]
    assert consumed == batches * BATCH_MESSAGES, "every message must have lived its whole life"
    return consumed / seconds
