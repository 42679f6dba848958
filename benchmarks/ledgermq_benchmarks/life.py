"""The rows with a full life: producer and consumer programs, each run in a process of its own."""

from __future__ import annotations

import os
import struct
import threading
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection as Pipe
from typing import Any

import ledgermq
from ledgermq_benchmarks.fold import BATCH_MESSAGES, BODY_BYTES

# What `connect` takes.
Address = Mapping[str, Any]
Program = Callable[[Any, str, int, Pipe], dict[str, float]]

SESSIONS = 16
PREFETCH_MESSAGES = 1000
# Small, so that sixteen consumers share a queue evenly; each message is acknowledged by itself.
SHARED_PREFETCH_MESSAGES = 10
WAIT_SECONDS = 60.0
LATENCY_RATE = 200
# Between two of these many a paced producer looks at the clock: some milliseconds.
PACED_MESSAGES = 50
GROUP_MESSAGES = 10
WHOLE_GROUPS: Mapping[str, Any] = {
    "order": ledgermq.Order.LOGICAL,
    "all_messages_available": True,
}


def start(pipe: Pipe) -> float:
    """Says that everything is open and waits until the other side is too."""
    pipe.send("ready")
    pipe.recv()
    return time.time()


def times(started: float) -> dict[str, float]:
    return {"started": started, "ended": time.time()}


def transacted_producer(
    address: Address, destination: str, messages: int, pipe: Pipe
) -> dict[str, float]:
    """Puts and commits by the hundred, waiting for each commit."""
    body = os.urandom(BODY_BYTES)
    with ledgermq.connect(**address) as connection, connection.session(transacted=True) as session:
        producer = session.producer(destination)
        started = start(pipe)
        for _ in range(messages // BATCH_MESSAGES):
            for _ in range(BATCH_MESSAGES):
                producer.send(body)
            session.commit()
        return times(started)


def transacted_consumer(
    address: Address, destination: str, messages: int, pipe: Pipe
) -> dict[str, float]:
    """Receives and commits by the hundred, waiting for each commit."""
    with ledgermq.connect(**address) as connection, connection.session(transacted=True) as session:
        consumer = session.consumer(destination, prefetch=PREFETCH_MESSAGES)
        started = start(pipe)
        left = messages
        while left:
            wanted = min(BATCH_MESSAGES, left)
            while wanted:
                got = len(consumer.receive_many(wanted, timeout=WAIT_SECONDS))
                assert got, "the queue ran dry"
                wanted -= got
                left -= got
            session.commit()
        return times(started)


def pipelined_producer(
    address: Address,
    destination: str,
    messages: int,
    pipe: Pipe,
    *,
    body_bytes: int = BODY_BYTES,
    rate: float = 0.0,
    options: Callable[[int], Mapping[str, Any]] | None = None,
) -> dict[str, float]:
    """Sends without waiting, at a rate if there is one; at the end every send is confirmed.

    `options` are those of the send with this number.
    """
    body = os.urandom(body_bytes)
    with ledgermq.connect(**address) as connection, connection.session() as session:
        producer = session.producer(destination)
        started = start(pipe)
        for number in range(messages):
            if rate and not number % PACED_MESSAGES:
                time.sleep(max(0.0, started + number / rate - time.time()))
            last = producer.send_async(body, **(options(number) if options else {}))
        session.flush()
        # A queue may have been filled before.
        assert (last.result(timeout=WAIT_SECONDS).sequence or 0) >= messages - 1
        return times(started)


def pipelined_consumer(
    address: Address, destination: str, messages: int, pipe: Pipe, *, whole_groups: bool = False
) -> dict[str, float]:
    """Receives with prefetch; acknowledgements are batched by the library."""
    options = WHOLE_GROUPS if whole_groups else {}
    with ledgermq.connect(**address) as connection, connection.session() as session:
        consumer = session.consumer(destination, prefetch=PREFETCH_MESSAGES, **options)
        started = start(pipe)
        left = messages
        while left:
            got = len(
                consumer.receive_group(timeout=WAIT_SECONDS)
                if whole_groups
                else consumer.receive_many(min(left, BATCH_MESSAGES), timeout=WAIT_SECONDS)
            )
            assert got, "the queue ran dry"
            left -= got
        session.close()
        return times(started)


def ten_priorities(number: int) -> Mapping[str, Any]:
    return {"priority": number % 10}


def in_groups(number: int) -> Mapping[str, Any]:
    """Groups that are put one after the other."""
    place = ledgermq.GroupPlace(
        group_id=(number // GROUP_MESSAGES + 1).to_bytes(24, "big"),
        group_sequence=number % GROUP_MESSAGES + 1,
        last_in_group=(number + 1) % GROUP_MESSAGES == 0,
    )
    return {"group": place}


def in_threads(
    count: int,
    mode: ledgermq.AckMode,
    work: Callable[[ledgermq.Session, str, int], None],
    address: Address,
    destination: str,
    messages: int,
    pipe: Pipe,
) -> dict[str, float]:
    """Sessions in threads of their own share the messages and begin at once."""
    share = messages // count
    with ledgermq.connect(**address) as connection:
        begin = threading.Barrier(count + 1)

        def run() -> None:
            with connection.session(ack=mode) as session:
                begin.wait()
                work(session, destination, share)

        threads = [threading.Thread(target=run) for _ in range(count)]
        for thread in threads:
            thread.start()
        started = start(pipe)
        begin.wait()
        for thread in threads:
            thread.join()
        return times(started)


def send_singly(session: ledgermq.Session, destination: str, share: int) -> None:
    """Sends one message at a time and waits for each."""
    body = os.urandom(BODY_BYTES)
    producer = session.producer(destination)
    for _ in range(share):
        producer.send(body)


def receive_singly(
    session: ledgermq.Session, destination: str, share: int, *, prefetch: int, acknowledge: bool
) -> None:
    """Receives one message at a time, and acknowledges it where its session does not."""
    consumer = session.consumer(destination, prefetch=prefetch)
    for _ in range(share):
        message = consumer.receive(timeout=WAIT_SECONDS)
        assert message is not None, "the queue ran dry"
        if acknowledge:
            message.acknowledge()


def latency_producer(
    address: Address, destination: str, messages: int, pipe: Pipe
) -> dict[str, float]:
    """Sends at a fixed rate; the body bears the clock."""
    padding = bytes(BODY_BYTES - 8)
    with ledgermq.connect(**address) as connection, connection.session() as session:
        producer = session.producer(destination)
        started = start(pipe)
        due = time.monotonic()
        for _ in range(messages):
            due += 1 / LATENCY_RATE
            time.sleep(max(0.0, due - time.monotonic()))
            producer.send_async(struct.pack("<q", time.monotonic_ns()) + padding)
        session.flush()
        return times(started)


def latency_consumer(
    address: Address, destination: str, messages: int, pipe: Pipe
) -> dict[str, float]:
    """Waits for each message and compares the clock; both processes share one monotonic clock."""
    delays_ms: list[float] = []
    with ledgermq.connect(**address) as connection, connection.session() as session:
        consumer = session.consumer(destination, prefetch=PREFETCH_MESSAGES)
        started = start(pipe)
        for _ in range(messages):
            message = consumer.receive(timeout=WAIT_SECONDS)
            assert message is not None, "the queue ran dry"
            (sent_ns,) = struct.unpack_from("<q", message.body)
            delays_ms.append((time.monotonic_ns() - sent_ns) / 1e6)
    delays_ms.sort()
    return times(started) | {
        "p50_ms": delays_ms[len(delays_ms) // 2],
        "p99_ms": delays_ms[len(delays_ms) * 99 // 100],
    }
