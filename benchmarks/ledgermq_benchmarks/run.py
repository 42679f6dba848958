"""Runs: programs in processes of their own against a running installation, started together."""

from __future__ import annotations

import multiprocessing
import uuid
from collections.abc import Sequence
from functools import partial
from multiprocessing.connection import Connection as Pipe
from typing import Any, NamedTuple

from ledgermq import AckMode
from ledgermq_benchmarks import kafka, life, many
from ledgermq_benchmarks.life import Address, Program

# So many that a run takes some seconds.
MESSAGES = {
    "transacted": 150_000,
    "pipelined": 200_000,
    "single": 2_000,
    "sixteen": 16_000,
    "single-auto": 2_000,
    "sixteen-auto": 16_000,
    "latency": 1_000,
    "fan-out": 200_000,
    "thousand": 10_000,
    "pipelined-1k": 100_000,
    "pipelined-64k": 5_000,
    "loaded-latency": 1_000,
    "selectors": 10_000,
    "priorities": 200_000,
    "grouped": 100_000,
    "kafka": 1_000_000,
}


def _singly(sessions: int, mode: AckMode, prefetch: int) -> tuple[Program, Program]:
    acknowledge = mode is AckMode.INDIVIDUAL
    receive = partial(life.receive_singly, prefetch=prefetch, acknowledge=acknowledge)
    return (
        partial(life.in_threads, sessions, mode, life.send_singly),
        partial(life.in_threads, sessions, mode, receive),
    )


def selected(consumers: int) -> tuple[Program, Program]:
    """One queue whose consumers each want one key, and messages for all of them in turn."""
    return (
        partial(life.pipelined_producer, options=partial(many.keyed, consumers)),
        partial(many.in_turn_consumer, source=many.selected, count=consumers),
    )


# What is under load while the latency is measured, of the rate that was measured before it.
LOAD_SHARE = 0.5
LOAD_MESSAGES = 100_000
BODIES_BYTES = {"pipelined-1k": 1024, "pipelined-64k": 65_536}
SELECTORS = 1_000

PROGRAMS: dict[str, tuple[Program, Program]] = {
    "transacted": (life.transacted_producer, life.transacted_consumer),
    "pipelined": (life.pipelined_producer, life.pipelined_consumer),
    "single": _singly(1, AckMode.INDIVIDUAL, life.PREFETCH_MESSAGES),
    "sixteen": _singly(life.SESSIONS, AckMode.INDIVIDUAL, life.SHARED_PREFETCH_MESSAGES),
    "single-auto": _singly(1, AckMode.AUTO, life.PREFETCH_MESSAGES),
    "sixteen-auto": _singly(life.SESSIONS, AckMode.AUTO, life.SHARED_PREFETCH_MESSAGES),
    "latency": (life.latency_producer, life.latency_consumer),
    "fan-out": (many.fan_out_producer, many.fan_out_consumer),
    "thousand": (many.thousand_producer, many.thousand_consumer),
    "selectors": selected(SELECTORS),
    "priorities": (
        partial(life.pipelined_producer, options=life.ten_priorities),
        life.pipelined_consumer,
    ),
    "grouped": (
        partial(life.pipelined_producer, options=life.in_groups),
        partial(life.pipelined_consumer, whole_groups=True),
    ),
    **{
        row: (partial(life.pipelined_producer, body_bytes=size), life.pipelined_consumer)
        for row, size in BODIES_BYTES.items()
    },
}
OPEN_SECONDS = 120.0
RUN_SECONDS = 180.0


class BenchError(RuntimeError):
    """A program of the benchmark failed or did not end; the text says which."""


class Part(NamedTuple):
    """A program of a run, what its errors call it, where it works, and on how much."""

    name: str
    program: Program
    address: Any
    destination: str
    messages: int


def life_run(address: Address, row: str, messages: int) -> dict[str, float]:
    if row == "loaded-latency":
        return _loaded_latency_run(address, messages)
    return programs_run(address, new_queue(row), messages, *PROGRAMS[row])


def new_queue(row: str) -> str:
    return f"queue:bench.{row}.{uuid.uuid4().hex[:8]}"


def _loaded_latency_run(address: Address, messages: int) -> dict[str, float]:
    """The latency row, while a paced producer and its consumer work beside it on another queue.

    Their rate is a share of what they reach at once before, unpaced: `rate_of` is that. They work
    for as long as the messages whose delay is measured need.
    """
    load = min(LOAD_MESSAGES, 100 * messages)
    rate = life_run(address, "pipelined", load)["messages_per_second"]
    paced = partial(life.pipelined_producer, rate=rate * LOAD_SHARE)
    beside = int(rate * LOAD_SHARE * messages / life.LATENCY_RATE)
    measured = new_queue("loaded-latency")
    took, put, reached, began = run_together(
        parts_of(address, measured, messages, *PROGRAMS["latency"])
        + parts_of(address, new_queue("load"), beside, paced, life.pipelined_consumer)
    )
    seconds = reached["ended"] - began["started"]
    return with_rate([took, put], messages) | {"rate_of": rate, "rate_beside": beside / seconds}


def kafka_run(bootstrap: str, messages: int) -> dict[str, float]:
    topic = f"bench-{uuid.uuid4().hex[:8]}"
    kafka.create_topic(bootstrap, topic)
    return programs_run(bootstrap, topic, messages, kafka.plain_producer, kafka.plain_consumer)


def programs_run(
    address: Any, destination: str, messages: int, producer: Program, consumer: Program
) -> dict[str, float]:
    """A producer and a consumer; what the consumer found, and their rate.

    Raises BenchError as `run_together` does.
    """
    return with_rate(
        run_together(parts_of(address, destination, messages, producer, consumer)), messages
    )


def with_rate(results: Sequence[dict[str, float]], messages: int) -> dict[str, float]:
    """The first result, and how many messages a second all did; of each two the first consumes."""
    began = min(one["started"] for one in results)
    seconds = max(one["ended"] for one in results[::2]) - began
    return {"messages_per_second": messages / seconds, **results[0]}


def parts_of(
    address: Any, destination: str, messages: int, producer: Program, consumer: Program
) -> list[Part]:
    return [
        Part("the consumer", consumer, address, destination, messages),
        Part("the producer", producer, address, destination, messages),
    ]


def _child(part: Part, pipe: Pipe) -> None:
    pipe.send(part.program(part.address, part.destination, part.messages, pipe))


def run_together(parts: Sequence[Part]) -> list[dict[str, float]]:
    """Runs programs in processes of their own, begun at once when all are ready; what each found.

    Raises BenchError if one of them fails or does not end.
    """
    context = multiprocessing.get_context("spawn")
    pipes: list[Pipe] = []
    children = []
    try:
        for part in parts:
            ours, theirs = context.Pipe()
            child = context.Process(target=_child, args=(part, theirs), daemon=True)
            child.start()
            theirs.close()
            pipes.append(ours)
            children.append(child)
        for pipe, part in zip(pipes, parts, strict=True):
            _receive(pipe, OPEN_SECONDS, part.name)
        for pipe in pipes:
            pipe.send("go")
        return [
            _receive(pipe, RUN_SECONDS, part.name) for pipe, part in zip(pipes, parts, strict=True)
        ]
    finally:
        for child in children:
            child.join(timeout=5)
            child.kill()


def _receive(pipe: Pipe, seconds: float, name: str) -> dict[str, float]:
    try:
        if not pipe.poll(seconds):
            raise BenchError(f"{name} did not answer within {seconds:.0f} s")
        found: dict[str, float] = pipe.recv()
    except EOFError:
        raise BenchError(f"{name} ended before its time; its error stands above") from None
    return found
