"""Puts one group in several units of work, and goes on where it was cut off (GRP-24..30).

    python examples/groups/put_group.py kafka://localhost:9092/QM1 queue:parts queue:parts.status 9

Three messages in each unit of work. With each but the last goes a message to the status queue that
says how far the group is; the next unit of work takes it away again. So at any moment the status
queue tells what was committed, and when it is empty the group is complete. Kill this program
wherever you like and start it again with the same arguments. `ledgermq.put_group` does all of it in
one call; this is what it does.
"""

from __future__ import annotations

import os
import sys

import ledgermq

MESSAGES_PER_UNIT_OF_WORK = 3


def put_group(session: ledgermq.Session, target: str, status: str, bodies: list[str]) -> None:
    """Put the bodies as one group; on restart, only those that are missing."""
    producer = session.producer(target)
    statuses = session.producer(status)
    status_reader = session.consumer(status, prefetch=0)

    found = status_reader.receive(0)
    if found is None:
        # Normal processing: nothing of a group was left behind.
        group_id, done = os.urandom(24), 0
    else:
        # The group ended prematurely. The status says what was committed, so the first message to
        # put is the one behind it; what was got here is consumed with the first commit.
        group_id, done = found.body["group_id"], found.body["group_sequence"]

    for number in range(done + 1, len(bodies) + 1):
        place = ledgermq.GroupPlace(
            group_id=group_id, group_sequence=number, last_in_group=number == len(bodies)
        )
        # The first put after a start names the group; from the second on the order is kept for us.
        producer.send(bodies[number - 1], group=place, logical_order=number > done + 1)

        if number == len(bodies) or (number - done) % MESSAGES_PER_UNIT_OF_WORK == 0:
            if number - done > MESSAGES_PER_UNIT_OF_WORK:
                status_reader.receive(0)
            if number < len(bodies):
                statuses.send({"group_id": group_id, "group_sequence": number})
            session.commit()


def main(address: str, target: str, status: str, count: str) -> None:
    """Put a group of so many texts."""
    with ledgermq.connect(address) as connection, connection.session(transacted=True) as session:
        put_group(
            session, target, status, [f"part {number}" for number in range(1, int(count) + 1)]
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
