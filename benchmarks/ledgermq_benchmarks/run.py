"""Runs: two programs in two processes against a running installation, started together."""

from __future__ import annotations

import multiprocessing
import uuid
from functools import partial
from multiprocessing.connection import Connection as Pipe

from ledgermq import AckMode
from ledgermq_benchmarks import kafka, life, many
from ledgermq_benchmarks.life import Program

# So many that a run takes some seconds, after a warm-up of a tenth.
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
    "kafka": 1_000_000,
}


def _singly(sessions: int, mode: AckMode, prefetch: int) -> tuple[Program, Program]:
    acknowledge = mode is AckMode.INDIVIDUAL
    receive = partial(life.receive_singly, prefetch=prefetch, acknowledge=acknowledge)
    return (
        partial(life.in_threads, sessions, mode, life.send_singly),
        partial(life.in_threads, sessions, mode, receive),
    )


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
}
OPEN_SECONDS = 60.0
RUN_SECONDS = 180.0


class BenchError(RuntimeError):
    """A program of the benchmark failed or did not end; the text says which."""


def life_run(address: str, row: str, messages: int) -> dict[str, float]:
    producer, consumer = PROGRAMS[row]
    return _run(address, f"queue:bench.{row}.{uuid.uuid4().hex[:8]}", messages, producer, consumer)


def kafka_run(bootstrap: str, messages: int) -> dict[str, float]:
    topic = f"bench-{uuid.uuid4().hex[:8]}"
    kafka.create_topic(bootstrap, topic)
    return _run(bootstrap, topic, messages, kafka.plain_producer, kafka.plain_consumer)


def _child(program: Program, address: str, destination: str, messages: int, pipe: Pipe) -> None:
    pipe.send(program(address, destination, messages, pipe))


def _run(
    address: str, destination: str, messages: int, producer: Program, consumer: Program
) -> dict[str, float]:
    context = multiprocessing.get_context("spawn")
    pipes: list[Pipe] = []
    children = []
    try:
        for name, program in (("the consumer", consumer), ("the producer", producer)):
            ours, theirs = context.Pipe()
            child = context.Process(
                target=_child, args=(program, address, destination, messages, theirs), daemon=True
            )
            child.start()
            theirs.close()
            pipes.append(ours)
            children.append((name, child))
        for pipe, (name, _) in zip(pipes, children, strict=True):
            _receive(pipe, OPEN_SECONDS, name)
        for pipe in pipes:
            pipe.send("go")
        results = [
            _receive(pipe, RUN_SECONDS, name)
            for pipe, (name, _) in zip(pipes, children, strict=True)
        ]
    finally:
        for _, child in children:
            child.join(timeout=5)
            child.kill()
    took, put = results
    seconds = took["ended"] - min(took["started"], put["started"])
    return {"messages_per_second": messages / seconds, **took}


def _receive(pipe: Pipe, seconds: float, name: str) -> dict[str, float]:
    try:
        if not pipe.poll(seconds):
            raise BenchError(f"{name} did not answer within {seconds:.0f} s")
        found: dict[str, float] = pipe.recv()
    except EOFError:
        raise BenchError(f"{name} ended before its time; its error stands above") from None
    return found
