"""The demo's applications: each a process of its own, an ordinary user of `ledgermq.connect`.

    python -m ledgermq_demo.agents produce ADDRESS PREFIX ORIGIN FILE
    python -m ledgermq_demo.agents consume ADDRESS PREFIX ORIGIN FLIGHTS
    python -m ledgermq_demo.agents put-rotations ADDRESS PREFIX FILE
    python -m ledgermq_demo.agents get-rotations ADDRESS PREFIX FLIGHTS

They report on standard output, as JSON lines, what they have done. A consumer takes up to 100
flights of an airport in a unit of work. If one of them has no tail number and comes for the first
time, everything is rolled back; else the flights that arrived are put to the queue of their
destination and all are consumed, in one commit.

Who puts rotations says of each flight which group it belongs to and where it stands there. Who gets
them takes whole groups, a few in a unit of work, and looks whether each came complete and in the
order of departure.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import ledgermq
from ledgermq.errors import LedgerMQError, OutcomeUnknownError
from ledgermq_demo.flights import arrivals_queue, departures_queue
from ledgermq_demo.rotations import ROTATIONS_QUEUE, departure

if TYPE_CHECKING:
    from ledgermq.client.messages.message import Message
    from ledgermq.client.sending.producer import Producer
    from ledgermq.client.session import Session


UNIT_MESSAGES_MAX: Final = 100
IDLE_SECONDS: Final = 0.2
# The worker is killed on purpose: its comeback is waited for.
PATIENCE_SECONDS: Final = 120.0


def main(arguments: list[str]) -> int:
    """Do one role's work in a transacted session, and report how it ended; an exit code."""
    role, address, prefix, *rest = arguments
    try:
        with (
            ledgermq.connect(address, topic_prefix=prefix, timeout=PATIENCE_SECONDS) as connection,
            connection.session(transacted=True) as session,
        ):
            _ROLES[role](session, *rest)
    except LedgerMQError as error:
        _report(event="failed", error=str(error))
        return 1
    _report(event="finished")
    return 0


def _report(**event: Any) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def _flight(message: Message) -> dict[str, Any]:
    body = message.body
    assert isinstance(body, dict), "a flight is a map message"
    return body


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


def _produce(session: Session, origin: str, file: str) -> None:
    producer = session.producer(f"queue:{departures_queue(origin)}")
    for batch in _batches(Path(file)):
        for flight in batch:
            producer.send(flight, type="flight", properties={"carrier": flight["carrier"]})
        _commit(session)
        _report(event="put", count=len(batch))


def _consume(session: Session, origin: str, flights: str) -> None:
    consumer = session.consumer(f"queue:{departures_queue(origin)}", prefetch=UNIT_MESSAGES_MAX)
    producers: dict[str, Producer] = {}
    left = int(flights)
    while left > 0:
        # Waits for the first, takes what is there of the others.
        unit = consumer.receive_many(UNIT_MESSAGES_MAX, timeout=1.0)
        if not unit:
            time.sleep(IDLE_SECONDS)
            continue
        doubtful = [m for m in unit if not m.redelivered and _flight(m)["tailnum"] is None]
        if doubtful:
            session.rollback()
            messages = [message.message_id for message in doubtful]
            _report(event="rolled_back", count=len(unit), messages=messages)
            continue
        moved = sum(_pass_on(session, producers, message) for message in unit)
        _commit(session)
        left -= len(unit)
        _report(event="consumed", count=len(unit), moved=moved)


def _pass_on(session: Session, producers: dict[str, Producer], message: Message) -> bool:
    """Put a flight that arrived to its destination's queue; say whether it did."""
    flight = _flight(message)
    if flight["arr_time"] is None:
        return False
    queue = f"queue:{arrivals_queue(flight['dest'])}"
    if queue not in producers:
        producers[queue] = session.producer(queue)
    producers[queue].send(flight, type="flight", correlation_id=message.message_id)
    return True


def _put_rotations(session: Session, file: str) -> None:
    producer = session.producer(f"queue:{ROTATIONS_QUEUE}")
    for batch in _batches(Path(file)):
        for line in batch:
            place = None
            if line["group_id"] is not None:
                place = ledgermq.GroupPlace(
                    group_id=bytes.fromhex(line["group_id"]),
                    group_sequence=line["group_sequence"],
                    last_in_group=line["last_in_group"],
                )
            producer.send(line["flight"], type="flight", group=place)
        session.commit()
        _report(event="put", count=len(batch))


def _get_rotations(session: Session, flights: str) -> None:
    """Take groups until all flights have come; report those that came in another order."""
    with session.consumer(
        f"queue:{ROTATIONS_QUEUE}",
        prefetch=UNIT_MESSAGES_MAX,
        order=ledgermq.Order.LOGICAL,
        all_messages_available=True,
    ) as consumer:
        taken = groups = held = 0
        wanted = int(flights)
        while taken + held < wanted:
            group = consumer.receive_group(PATIENCE_SECONDS)
            if not group:
                raise LedgerMQError(f"only {taken + held} of {wanted} flights came")
            wrong = _what_is_wrong(group)
            if wrong:
                _report(event="wrong", text=wrong)
            held += len(group)
            groups += group[0].group_id is not None
            if held >= UNIT_MESSAGES_MAX or taken + held == wanted:
                session.commit()
                _report(event="got", count=held, groups=groups)
                taken, held, groups = taken + held, 0, 0


def _what_is_wrong(group: list[Message]) -> str:
    """What is wrong with a rotation as it came; empty: nothing."""
    numbers = [one.group_sequence for one in group]
    if numbers != list(range(1, len(group) + 1)):
        return f"numbers {numbers}"
    order = [departure(_flight(one)) for one in group]
    if order != sorted(order):
        return f"departures {order}"
    aircraft = {(_flight(one)["tailnum"], _flight(one)["day"]) for one in group}
    return f"flights of {aircraft}" if len(aircraft) > 1 else ""


_ROLES: Final[dict[str, Callable[..., None]]] = {
    "produce": _produce,
    "consume": _consume,
    "put-rotations": _put_rotations,
    "get-rotations": _get_rotations,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
