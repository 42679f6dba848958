"""The demo's applications: a producer and a consumer of one airport, each a process of its own.

    python -m ledgermq_demo.agents producer|consumer ADDRESS PREFIX ORIGIN FLIGHTS [FILE]

They are ordinary users of `ledgermq.connect`, and report on standard output, as JSON lines, what
they have done. A consumer takes up to 100 flights in a unit of work. If one of them has no tail
number and comes for the first time, everything is rolled back; else the flights that arrived are
put to the queue of their destination and all are consumed, in one commit.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ledgermq.errors import OutcomeUnknownError
from ledgermq_demo.applications import PATIENCE_SECONDS, report, run_application
from ledgermq_demo.flights import arrivals_queue, departures_queue

if TYPE_CHECKING:
    from ledgermq.client.messages.message import Message
    from ledgermq.client.session import Session


UNIT_MESSAGES_MAX: Final = 100
IDLE_SECONDS: Final = 0.2


def main(arguments: list[str]) -> int:
    """Run as a producer or a consumer until all flights of the airport are done."""
    role, address, prefix, origin, flights, *rest = arguments

    def work(session: Session) -> None:
        if role == "producer":
            _produce(session, origin, Path(rest[0]))
        else:
            _consume(session, origin, int(flights))

    return run_application(address, prefix, work)


def _batches(path: Path) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    with path.open(encoding="utf-8") as handle:
        for line in handle:
            batch.append(json.loads(line))
            if len(batch) == UNIT_MESSAGES_MAX:
                yield batch
                batch = []
    if batch:
        yield batch


def _commit(session: Session) -> None:
    """Commit, and wait as long as it takes to learn how it ended; never twice."""
    try:
        session.commit()
    except OutcomeUnknownError as error:
        error.resolve(PATIENCE_SECONDS)


def _produce(session: Session, origin: str, path: Path) -> None:
    producer = session.producer(f"queue:{departures_queue(origin)}")
    for batch in _batches(path):
        for flight in batch:
            producer.send(flight, type="flight", properties={"carrier": flight["carrier"]})
        _commit(session)
        report(event="put", count=len(batch))


def _consume(session: Session, origin: str, flights: int) -> None:
    consumer = session.consumer(f"queue:{departures_queue(origin)}", prefetch=UNIT_MESSAGES_MAX)
    arrivals = _Arrivals(session)
    left = flights
    while left > 0:
        unit = _take(consumer)
        if not unit:
            time.sleep(IDLE_SECONDS)
            continue
        doubtful = [m for m in unit if not m.redelivered and _body(m)["tailnum"] is None]
        if doubtful:
            session.rollback()
            report(
                event="rolled_back",
                count=len(unit),
                messages=[message.message_id for message in doubtful],
            )
            continue
        moved = sum(arrivals.pass_on(message) for message in unit)
        _commit(session)
        left -= len(unit)
        report(event="consumed", count=len(unit), moved=moved)


def _take(consumer: Any) -> list[Message]:
    """Up to 100 messages: waits for the first, takes what is there of the others."""
    unit: list[Message] = consumer.receive_many(UNIT_MESSAGES_MAX, timeout=1.0)
    return unit


def _body(message: Message) -> dict[str, Any]:
    body = message.body
    assert isinstance(body, dict), "a flight is a map message"
    return body


class _Arrivals:
    """Producers to the queues of the destinations."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._producers: dict[str, Any] = {}

    def pass_on(self, message: Message) -> bool:
        """Put a flight that arrived to its destination's queue; say whether it did."""
        flight = _body(message)
        if flight["arr_time"] is None:
            return False
        queue = f"queue:{arrivals_queue(flight['dest'])}"
        producer = self._producers.get(queue)
        if producer is None:
            producer = self._producers[queue] = self._session.producer(queue)
        producer.send(flight, type="flight", correlation_id=message.message_id)
        return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
