"""The rows at depth: one queue is filled, and everything that depends on its depth is measured.

One course gives one value of each row, on a place of its own: what a shallow queue costs, filling
the deep one, the worker's memory, SIGKILL and the first delivery after it, gets at depth, gets in
random order. Bodies at the head of the deep queue left the cache long ago: they come back from the
log. The worker has no state on its disk: it loads the checkpoint from Kafka, always.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Final

import ledgermq
from ledgermq_benchmarks.fold import BATCH_MESSAGES, BODY_BYTES
from ledgermq_benchmarks.life import PREFETCH_MESSAGES, SESSIONS, WAIT_SECONDS
from ledgermq_benchmarks.place import BenchPlace
from ledgermq_benchmarks.run import BenchError

# Value of a row, and further figures.
Figures = tuple[float, dict[str, float]]

DEPTH_ROWS: Final = ("fill", "depth-memory", "restart", "depth-get", "depth-random")
CHECKPOINT_ROW: Final = "checkpoints"
DEPTH_MESSAGES: Final = 1_000_000
# Few enough: their bodies fit into the cache of the worker.
SHALLOW_MESSAGES: Final = 100_000
# A turn takes less than a second, and one alone was seen to take half or twice its time.
GET_TURNS: Final = 3
RANDOM_MESSAGES: Final = 4_000
FIRST_SECONDS: Final = 300.0
# So many that several checkpoints fall into each turn.
OVERHEAD_MESSAGES: Final = 400_000
OVERHEAD_DEPTH: Final = 200_000
OVERHEAD_TURNS: Final = 3
DEEP: Final = "queue:bench.deep"
SHALLOW: Final = "queue:bench.shallow"
BESIDE: Final = "queue:bench.beside"
BESIDE_SECONDS: Final = 0.02
GIB: Final = 2**30
WITHOUT_CHECKPOINTS: Final = {
    "CHECKPOINT_SECONDS": 10**6,
    "CHECKPOINT_OPERATIONS": 10**9,
    "CHECKPOINT_BLOCKS": 10**9,
}


def depth_course(
    bootstrap: str,
    rows: Sequence[str] = DEPTH_ROWS,
    *,
    messages: int = DEPTH_MESSAGES,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Figures]:
    """One value of each of the rows named, from one filled queue.

    Raises BenchError if the worker ends or a queue runs dry.
    """
    found: dict[str, Figures] = {}
    with BenchPlace(bootstrap) as place:
        shallow = min(SHALLOW_MESSAGES, messages // 10)
        if "depth-get" in rows:
            # Once for nothing: the Java of the broker compiles what it will then run for days.
            rates = []
            for _ in range(1 + GET_TURNS):
                fill(place, SHALLOW, shallow)
                rates.append(_drain(place, SHALLOW, shallow))
            shallow_rate = median(rates[1:])
            say(f"  depth {shallow:,}: {shallow_rate:,.0f} messages/s got and acknowledged")
        rate = fill(place, DEEP, messages)
        say(f"  filled to {messages:,} at {rate:,.0f} messages/s")
        found["fill"] = rate, {"messages": messages}
        _checkpoint(place)
        memory = place.memory_bytes()
        found["depth-memory"] = (
            memory["resident"] / GIB,
            {"peak_gib": round(memory["peak"] / GIB, 3)},
        )
        if "restart" in rows:
            found["restart"] = _restart(place)
            say(f"  first delivery {found['restart'][0]:.1f} s after SIGKILL")
        if "depth-random" in rows:
            found["depth-random"] = _random_order(place, messages)
            say(f"  in random order {found['depth-random'][0]:,.0f} messages/s")
        if "depth-get" in rows:
            deep_rate = median(_drain(place, DEEP, shallow) for _ in range(GET_TURNS))
            say(f"  depth {messages:,}: {deep_rate:,.0f} messages/s got and acknowledged")
            found["depth-get"] = (
                shallow_rate / deep_rate,
                {"shallow": round(shallow_rate), "deep": round(deep_rate)},
            )
    return {name: figures for name, figures in found.items() if name in rows}


def checkpoint_overhead(
    bootstrap: str, *, messages: int = OVERHEAD_MESSAGES, depth: int = OVERHEAD_DEPTH
) -> Figures:
    """Time of filling and draining with checkpoints against without, in turn, above a deep queue.

    The worker is started anew for each turn, so that nothing but its settings differs.
    """
    seconds = {"with": 0.0, "without": 0.0}
    processor = {"with": 0.0, "without": 0.0}
    written = 0
    with BenchPlace(bootstrap) as place:
        fill(place, DEEP, depth)
        for _ in range(OVERHEAD_TURNS):
            for how, settings in (("with", {}), ("without", WITHOUT_CHECKPOINTS)):
                _checkpoint(place)
                place.kill_worker()
                place.start_worker(**settings)
                # What a start and the first operation cost is no part of this.
                fill(place, SHALLOW, BATCH_MESSAGES)
                _drain(place, SHALLOW, BATCH_MESSAGES)
                before = place.checkpoint_records()
                used, started = place.processor_seconds(), time.monotonic()
                fill(place, SHALLOW, messages)
                _drain(place, SHALLOW, messages)
                seconds[how] += time.monotonic() - started
                processor[how] += place.processor_seconds() - used
                written += place.checkpoint_records() - before
    lives = messages * OVERHEAD_TURNS
    return seconds["with"] / seconds["without"], {
        "messages_per_second_with": round(lives / seconds["with"]),
        "messages_per_second_without": round(lives / seconds["without"]),
        "processor_times": round(processor["with"] / processor["without"], 3),
        "checkpoint_records": written,
    }


def fill(place: BenchPlace, destination: str, messages: int) -> float:
    """Sends without waiting, until every send is confirmed; messages/s."""
    body = os.urandom(BODY_BYTES)
    with place.connect() as connection, connection.session() as session:
        producer = session.producer(destination)
        started = time.monotonic()
        for _ in range(messages):
            last = producer.send_async(body)
        session.flush()
        last.result(timeout=WAIT_SECONDS)
        return messages / (time.monotonic() - started)


def _drain(place: BenchPlace, destination: str, messages: int) -> float:
    """Gets and acknowledges with prefetch, as the row of pipelined life does; messages/s."""
    with place.connect() as connection, connection.session() as session:
        consumer = session.consumer(destination, prefetch=PREFETCH_MESSAGES)
        started = time.monotonic()
        left = messages
        while left:
            got = len(consumer.receive_many(min(left, BATCH_MESSAGES), timeout=WAIT_SECONDS))
            if not got:
                raise BenchError(f"{destination} ran dry")
            left -= got
        session.close()
        return messages / (time.monotonic() - started)


def _checkpoint(place: BenchPlace) -> None:
    with place.connect() as connection:
        connection.admin.checkpoint()


def _restart(place: BenchPlace) -> Figures:
    """Seconds from SIGKILL to the first message, got by a client that was there before."""
    with place.connect() as connection, connection.session() as session:
        consumer = session.consumer(DEEP, prefetch=0)
        killed = time.monotonic()
        place.kill_worker()
        place.start_worker()
        message = consumer.receive(timeout=FIRST_SECONDS)
        seconds = time.monotonic() - killed
        if message is None:
            raise BenchError(f"no delivery after the restart; the worker said:\n{place.said}")
        session.recover()
    memory = place.memory_bytes()
    return seconds, {name + "_gib": round(value / GIB, 3) for name, value in memory.items()}


def _random_order(place: BenchPlace, depth: int) -> Figures:
    """Sixteen sessions get messages by number, anywhere in the queue, one at a time; messages/s.

    A bystander on a connection of its own puts to another queue meanwhile: what cold bodies cost
    those who want none (H21).
    """
    chance = random.Random(depth)
    count = min(RANDOM_MESSAGES, depth // 10)
    # Not from the head, which the row of gets at depth takes.
    taken = (1 + GET_TURNS) * SHALLOW_MESSAGES
    numbers = chance.sample(range(min(taken, depth // 2), depth), count)
    delays_ms: list[float] = []
    with place.connect() as connection, place.connect() as other:
        shares = [iter(numbers[first::SESSIONS]) for first in range(SESSIONS)]
        ended = threading.Event()
        started = time.monotonic()
        with ThreadPoolExecutor(SESSIONS + 1) as threads:
            beside = threads.submit(_stand_by, other, ended, delays_ms)
            try:
                for done in [threads.submit(_get_by_number, connection, one) for one in shares]:
                    done.result()
                seconds = time.monotonic() - started
            finally:
                ended.set()
            beside.result()
    delays_ms.sort()
    return count / seconds, {
        "bystander_p50_ms": round(delays_ms[len(delays_ms) // 2], 2),
        "bystander_p99_ms": round(delays_ms[len(delays_ms) * 99 // 100], 2),
        "bystander_max_ms": round(delays_ms[-1], 2),
    }


def _stand_by(
    connection: ledgermq.Connection, ended: threading.Event, delays_ms: list[float]
) -> None:
    """Sends a message every 20 ms until the end, and notes how long each took."""
    with connection.session() as session:
        producer = session.producer(BESIDE)
        while not ended.wait(BESIDE_SECONDS) or not delays_ms:
            started = time.monotonic()
            producer.send(bytes(BODY_BYTES))
            delays_ms.append((time.monotonic() - started) * 1000)


def _get_by_number(connection: ledgermq.Connection, numbers: Iterator[int]) -> None:
    with connection.session(ack=ledgermq.AckMode.INDIVIDUAL) as session:
        consumer = session.consumer(DEEP, prefetch=0)
        for number in numbers:
            match = ledgermq.GetMatch(sequence=number)
            message = consumer.receive(timeout=WAIT_SECONDS, match=match)
            if message is None:
                raise BenchError(f"message {number} did not come")
            message.acknowledge()
