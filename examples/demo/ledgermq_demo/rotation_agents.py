"""The demo's applications for rotations: a putter of one airport, and the getter of all.

    python -m ledgermq_demo.rotation_agents put|get ADDRESS PREFIX FILE|FLIGHTS

A putter says of each flight which group it belongs to and where it stands there. The getter takes
whole groups, a few in a unit of work, and looks whether each came complete and in the order of
departure. Both report on standard output, as JSON lines, what they have done.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import ledgermq
from ledgermq.errors import LedgerMQError
from ledgermq_demo.applications import PATIENCE_SECONDS, report, run_application
from ledgermq_demo.rotations import ROTATIONS_QUEUE, departure

if TYPE_CHECKING:
    from ledgermq.client.messages.message import Message
    from ledgermq.client.session import Session


UNIT_MESSAGES_MAX: Final = 100


def main(arguments: list[str]) -> int:
    """Put the flights of one airport, or get all rotations."""
    role, address, prefix, rest = arguments

    def work(session: Session) -> None:
        if role == "put":
            _put(session, Path(rest))
        else:
            _get(session, int(rest))

    return run_application(address, prefix, work)


def _put(session: Session, path: Path) -> None:
    producer = session.producer(f"queue:{ROTATIONS_QUEUE}")
    put = 0
    with path.open(encoding="utf-8") as handle:
        for line in handle:
            told = json.loads(line)
            place = None
            if told["group_id"] is not None:
                place = ledgermq.GroupPlace(
                    group_id=bytes.fromhex(told["group_id"]),
                    group_sequence=told["group_sequence"],
                    last_in_group=told["last_in_group"],
                )
            producer.send(told["flight"], type="flight", group=place)
            put += 1
            if put == UNIT_MESSAGES_MAX:
                session.commit()
                report(event="put", count=put)
                put = 0
    session.commit()
    report(event="put", count=put)


def _get(session: Session, flights: int) -> None:
    """Take groups until all flights have come; tell of those that came in another order."""
    with session.consumer(
        f"queue:{ROTATIONS_QUEUE}",
        prefetch=UNIT_MESSAGES_MAX,
        order=ledgermq.Order.LOGICAL,
        all_messages_available=True,
    ) as consumer:
        taken = groups = held = 0
        while taken + held < flights:
            group = consumer.receive_group(PATIENCE_SECONDS)
            if not group:
                raise LedgerMQError(f"only {taken + held} of {flights} flights came")
            wrong = _what_is_wrong(group)
            if wrong:
                report(event="wrong", text=wrong)
            held += len(group)
            groups += group[0].group_id is not None
            if held >= UNIT_MESSAGES_MAX or taken + held == flights:
                session.commit()
                report(event="got", count=held, groups=groups)
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


def _flight(message: Message) -> dict[str, Any]:
    body = message.body
    assert isinstance(body, dict), "a flight is a map message"
    return body


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
