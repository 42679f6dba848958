"""A long log of a queue manager, and how long rebuild, tables and audit of it take.

The log is written as clients would write it, from a seed: units of work, single puts, a topic with
two subscriptions, groups, and deliveries that are given back and come again, each in its share. A
worker then answers it, so that lanes and checkpoints are those of a real one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final

from ledgermq import Connection
from ledgermq.core.apply import apply, new_state
from ledgermq.core.queries.destination_status import queue_statuses
from ledgermq.embedded import EmbeddedBroker
from ledgermq.protocol import operations as op
from ledgermq.protocol.limits import SUSPECT_TIMEOUT_MS_MAX
from ledgermq.protocol.outcomes import Delivered, Refused
from ledgermq.wire.content.content import encode_content
from ledgermq.wire.framing.codec import encode_operation
from ledgermq.wire.topics.log_topics import Topics
from ledgermq_benchmarks.environment import environment
from ledgermq_benchmarks.place import QUEUE_MANAGER, BenchPlace

BODY_BYTES: Final = 200
BATCH_MESSAGES: Final = 100
QUEUES: Final = 20
# Of a hundred batches: how many are units of work, topic messages, groups; the rest single puts.
TRANSACTED, PUBLISHED, GROUPED = 50, 10, 10
# Of the deliveries: how many are given back once.
RETURNED_SHARE: Final = 0.05
# An archive has so many states to go on from.
STRETCHES: Final = 16
START_US: Final = 1_700_000_000_000_000


class History:
    """Operations of a long life, with the deliveries that they bring; `messages` in all."""

    def __init__(self, messages: int, seed: int) -> None:
        self._messages = messages
        self._random = random.Random(seed)
        self._content = encode_content(self._random.randbytes(BODY_BYTES))
        self._state = new_state()
        self._numbers: dict[int, int] = {}
        self._held: dict[int, list[int]] = {}
        self._given: list[bytes] = []

    def records(self) -> Iterator[bytes]:
        """The operations, encoded, in the order of the log."""
        self._sender, self._unit = self._open("AUTO"), self._open("TRANSACTED")
        self._takers = [self._open("TRANSACTED" if at % 2 else "CLIENT") for at in range(QUEUES)]
        for at, taker in enumerate(self._takers):
            self._do(op.OpenConsumer, taker, consumer=1, destination=f"queue:q{at}")
            self._get(taker, 10 * BATCH_MESSAGES)
        readers = [self._open("CLIENT") for _ in range(2)]
        for reader in readers:
            self._do(op.OpenConsumer, reader, consumer=1, destination="topic:t")
            self._get(reader, 10 * BATCH_MESSAGES)
        put = 0
        while put < self._messages:
            kind, at = self._random.randrange(100), self._random.randrange(QUEUES)
            put += BATCH_MESSAGES
            takers = [self._takers[at]]
            if kind < TRANSACTED:
                self._put(self._unit, f"queue:q{at}", BATCH_MESSAGES)
                self._do(op.Commit, self._unit, deliveries=[], puts=BATCH_MESSAGES)
            elif kind < TRANSACTED + PUBLISHED:
                self._put(self._sender, "topic:t", BATCH_MESSAGES)
                takers = readers
            elif kind < TRANSACTED + PUBLISHED + GROUPED:
                self._put(self._sender, f"queue:q{at}", BATCH_MESSAGES, group=put)
            else:
                for _ in range(BATCH_MESSAGES // 10):
                    self._put(self._sender, f"queue:q{at}", 10)
            for taker in takers:
                self._take(taker)
            yield from self._taken()

    def consumed(self) -> dict[str, int]:
        """How many messages of each queue were consumed."""
        return {one["name"]: one["sent_and_committed"] for one in queue_statuses(self._state)}

    def _taken(self) -> list[bytes]:
        given, self._given = self._given, []
        return given

    def _open(self, mode: str) -> int:
        key = self._random.randbytes(16)
        self._append(
            op.Open(
                connection=key,
                lane=0,
                session_key=key,
                acknowledge_mode=mode,
                suspect_timeout_ms=SUSPECT_TIMEOUT_MS_MAX,
            )
        )
        return self._state.position

    def _do(self, kind: Callable[..., op.Operation], session: int, **fields: object) -> None:
        number = self._numbers[session] = self._numbers.get(session, 0) + 1
        self._append(
            kind(session=session, session_sequence=number, answered_through=number - 1, **fields)
        )

    def _append(self, operation: op.Operation) -> None:
        position = self._state.position + 1
        self._given.append(encode_operation(operation))
        for one in apply(self._state, operation, position, START_US + position):
            found = one.outcome
            assert not isinstance(found, Refused), found
            if isinstance(found, Delivered):
                first = found.first_delivery
                held = self._held.setdefault(found.session, [])
                held += range(first, first + len(found.messages))

    def _put(self, session: int, destination: str, count: int, group: int = 0) -> None:
        messages = []
        for at in range(count):
            message: dict[str, Any] = {
                "message_id": self._random.randbytes(16),
                "priority": 4,
                "persistent": True,
                "content": self._content,
            }
            if group:
                place = {
                    "group_id": group.to_bytes(24, "big"),
                    "group_sequence": at + 1,
                    "offset": 0,
                    "length": 0,
                    "in_group": True,
                    "last_in_group": at == count - 1,
                    "segment": False,
                    "last_segment": False,
                    "logical_order": False,
                }
                message["header"] = {**op.NO_HEADER, "group": place}
            messages.append(message)
        self._do(op.Put, session, destination=destination, messages=messages)

    def _get(self, session: int, credit: int) -> None:
        self._do(op.Get, session, consumer=1, credit=credit)

    def _take(self, session: int) -> None:
        """Settles what the session holds, some of it at the second time."""
        returned = self._random.random() < RETURNED_SHARE
        for attempt in range(2 if returned else 1):
            held = self._held.pop(session, [])
            if not held:
                return
            ranges = [{"first": held[0], "last": held[-1]}]
            transacted = self._state.sessions[session].transacted
            if returned and not attempt:
                self._do(op.Rollback if transacted else op.Recover, session, seen=ranges)
            elif transacted:
                self._do(op.Commit, session, deliveries=ranges, puts=0)
            else:
                self._do(op.Acknowledge, session, deliveries=ranges)
            self._get(session, len(held))


def write(place: BenchPlace, history: History) -> int:
    """Appends the operations of a life to a place's log; how many there are."""
    from confluent_kafka import Producer

    settings = {"bootstrap.servers": place.bootstrap, "linger.ms": 5, "enable.idempotence": True}
    producer = Producer(settings | {"message.max.bytes": 9_000_000})
    count = 0
    for value in history.records():
        count += 1
        while True:
            try:
                producer.produce(place.topics.operations, value, key=QUEUE_MANAGER, partition=0)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    assert producer.flush(60) == 0, "the broker takes them"
    return count


def check(connection: Connection, history: History) -> None:
    """Sees that the worker answered the log as it was meant: a log of refusals measures nothing."""
    live = {one.name: one.sent_and_committed for one in connection.admin.list_queues()}
    assert live == history.consumed(), "the worker answered otherwise than the log was made for"


class Memory:
    """The most memory that this process and its children have, looked at four times a second."""

    def __init__(self) -> None:
        self.java_bytes = self.python_bytes = 0
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Memory:
        self._watch.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        self._watch.join()

    def _run(self) -> None:
        while not self._over.wait(0.25):
            java = python = 0
            for pid in (os.getpid(), *_descendants(os.getpid())):
                try:
                    name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
                    status = Path(f"/proc/{pid}/statm").read_text(encoding="utf-8")
                except OSError:
                    continue
                size = int(status.split()[1]) * resource.getpagesize()
                java += size if name == "java" else 0
                python += size if name.startswith("python") else 0
            self.java_bytes = max(self.java_bytes, java)
            self.python_bytes = max(self.python_bytes, python)


def _descendants(pid: int) -> Iterator[int]:
    """Processes below another; none of one that has ended meanwhile."""
    try:
        tasks = Path(f"/proc/{pid}/task").iterdir()
        children = [(task / "children").read_text(encoding="utf-8").split() for task in tasks]
    except OSError:
        return
    for child in map(int, chain.from_iterable(children)):
        yield child
        yield from _descendants(child)


def _rebuild(bootstrap: str, directory: Path, given: dict[str, Any]) -> dict[str, object]:
    from ledgermq_spark.jobs.run import rebuild_at

    del directory
    return {"digest": rebuild_at(bootstrap, QUEUE_MANAGER, **given).digest}


def _tables(bootstrap: str, directory: Path, given: dict[str, Any]) -> dict[str, object]:
    from ledgermq_spark.jobs.run import run_tables

    run_tables(bootstrap, QUEUE_MANAGER, output=directory / "written", **given)
    return {}


def _audit(
    bootstrap: str,
    directory: Path,
    given: dict[str, Any],
    at: int | None = None,
    archive: Path | None = None,
) -> dict[str, object]:
    from ledgermq_spark.jobs.run import run_audit

    del directory
    report = run_audit(bootstrap, QUEUE_MANAGER, at, archive=archive, **given)
    anomalies = len(report.anomalies)
    return {"verdict": report.verdict, "stages": report.seconds, "anomalies": anomalies}


def _archive(bootstrap: str, directory: Path, given: dict[str, Any]) -> dict[str, object]:
    """All but the last hundredth of the log, in sixteen stretches."""
    from ledgermq_spark.archive.updating import update_archive

    end = _end(bootstrap, given["topic_prefix"])
    at, size = end - end // 100, end // STRETCHES + 1
    made = update_archive(
        bootstrap, QUEUE_MANAGER, directory / "kept", at, operations_per_stretch=size, **given
    )
    return {"stretches": len(made), "fold_seconds": sum(x.fold_seconds for x in made)}


def _audit_of_archive(bootstrap: str, directory: Path, given: dict[str, Any]) -> dict[str, object]:
    """What is archived, and what the lanes say of it: audits after this one go on behind it."""
    from ledgermq_spark.archive.log_archive import LogArchive

    kept = directory / "kept"
    at = LogArchive(kept, QUEUE_MANAGER).there()[-1].last
    return _audit(bootstrap, directory, given, at, kept)


def _audit_of_rest(bootstrap: str, directory: Path, given: dict[str, Any]) -> dict[str, object]:
    """The last hundredth of the log: it is added to the archive, and only it is audited."""
    return _audit(bootstrap, directory, given, archive=directory / "kept")


def _archived_tables(bootstrap: str, directory: Path, given: dict[str, Any]) -> dict[str, object]:
    from ledgermq_spark.archive.archived import archived_facts
    from ledgermq_spark.tables.writing import write_tables

    del bootstrap
    named = {name: given[name] for name in ("spark", "directory")}
    write_tables(archived_facts(directory / "kept", QUEUE_MANAGER, **named), directory / "again")
    return {}


def _proof(bootstrap: str, directory: Path, given: dict[str, Any]) -> dict[str, object]:
    """All stretches folded again, and all laws."""
    from ledgermq_spark.jobs.run import run_proof

    del bootstrap
    stages: list[tuple[str, float]] = []
    found, findings = run_proof(
        directory / "kept",
        QUEUE_MANAGER,
        spark=given["spark"],
        directory=given["directory"],
        progress=lambda stage, *_: stages.append((stage, time.monotonic())),
    )
    problems = [one.problem for one in found if one.problem is not None]
    assert not [*problems, *findings], "the archive is proven"
    (_, started), (_, folded), (_, ended) = stages
    seconds = {"fold_seconds": round(folded - started, 1), "laws_seconds": round(ended - folded, 1)}
    return {"stretches": len(found), **seconds}


def _end(bootstrap: str, topic_prefix: str) -> int:
    from ledgermq_spark.log.positions import locate

    return locate(bootstrap, Topics(topic_prefix), QUEUE_MANAGER)[1].end


JOBS: Final[dict[str, Callable[[str, Path, dict[str, Any]], dict[str, object]]]] = {
    "rebuild": _rebuild,
    "tables": _tables,
    "audit": _audit,
    "archive": _archive,
    "archived_tables": _archived_tables,
    # The first proof also works out what is carried into each stretch; it is kept for the others.
    "first_proof": _proof,
    "proof_on_one_core": _proof,
    "proof_on_two_cores": _proof,
    "audit_of_archive": _audit_of_archive,
    "audit_of_rest": _audit_of_rest,
}


def job(
    bootstrap: str, topic_prefix: str, what: str, directory: Path, operations: int
) -> dict[str, object]:
    """One job in this process, with a Spark as the commands have it for so many operations."""
    from ledgermq_spark.log.machine import CORES_VARIABLE
    from ledgermq_spark.log.session import BRIEF_OPERATIONS_MAX, spark_session

    os.environ[CORES_VARIABLE] = "1" if what == "proof_on_one_core" else "2"
    brief = operations <= BRIEF_OPERATIONS_MAX
    spark = spark_session(directory=directory / "spark", log_level="ERROR", brief=brief)
    given: dict[str, Any] = {
        "topic_prefix": topic_prefix,
        "spark": spark,
        "directory": directory / what,
    }
    found: dict[str, object] = {}
    with Memory() as memory:
        started = time.monotonic()
        found |= JOBS[what](bootstrap, directory, given)
        found["seconds"] = round(time.monotonic() - started, 1)
    found["java_gib"] = round(memory.java_bytes / 2**30, 2)
    found["python_gib"] = round(memory.python_bytes / 2**30, 2)
    spark.stop()
    return found


def main(arguments: list[str] | None = None) -> int:
    """Writes a long log, lets a worker answer it, and measures the jobs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", default=",".join(JOBS))
    parser.add_argument("--job", nargs=5, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.job is not None:
        bootstrap, topic_prefix, what, directory, operations = given.job
        found = job(bootstrap, topic_prefix, what, Path(directory), int(operations))
        Path(directory, f"{what}.json").write_text(json.dumps(found), encoding="utf-8")
        return 0
    document: dict[str, object] = {"environment": environment(), "messages": given.messages}
    with tempfile.TemporaryDirectory(prefix="ledgermq-history-") as name:
        directory = Path(name)
        with EmbeddedBroker(directory / "broker") as broker, BenchPlace(broker.bootstrap) as place:
            started = time.monotonic()
            history = History(given.messages, given.seed)
            document["operations"] = operations = write(place, history)
            document["written_seconds"] = round(time.monotonic() - started, 1)
            with place.connect() as connection:
                document["position"] = connection.admin.checkpoint().position
                check(connection, history)
            document["answered_seconds"] = round(time.monotonic() - started, 1)
            place.kill_worker()
            for what in given.jobs.split(","):
                told = [broker.bootstrap, place.topics.prefix, what, name, str(operations)]
                command = [sys.executable, "-m", "ledgermq_benchmarks.history", "--job", *told]
                subprocess.run(command, check=True)
                document[what] = json.loads((directory / f"{what}.json").read_text())
                print(json.dumps({what: document[what]}), flush=True)
    print(json.dumps(document, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
