r"""Puts one group in several units of work without a get in between (GRP-36, GRP-37).

    python examples/groups/put_group_with_status_segments.py \
        kafka://localhost:9092/QM1 queue:parts queue:parts.status 9

As `put_group.py`, but each status is put as a segment of one logical message, so that no unit of
work has to take the one before it away. The last unit of work puts the last segment; one more
takes the whole logical message with one get, because a session never gets what it has put and not
committed. After a crash the status queue is browsed in logical order until no further segments
come: the last one says how far the group is. A crash between the last two units of work leaves all
of the group and the whole status: the next start finds its last segment, puts nothing and takes it.
"""

from __future__ import annotations

import os
import sys

import ledgermq
from ledgermq import GroupPlace, Order

MESSAGES_PER_UNIT_OF_WORK = 3


def put_group(session: ledgermq.Session, target: str, status: str, bodies: list[str]) -> None:
    """Put the bodies as one group; on restart, only those that are missing."""
    producer = session.producer(target)
    statuses = session.producer(status)
    status_reader = session.consumer(status, prefetch=0)

    last_status = _last_status(session, status)
    if last_status is None:
        group_id, done = os.urandom(24), 0
        status_id, offset = os.urandom(24), 0
    else:
        assert last_status.group_id is not None, "each segment has an id"
        told = bytes.fromhex(last_status.body)
        group_id, done = told[:24], int.from_bytes(told[24:], "big")
        status_id, offset = last_status.group_id, last_status.offset + len(last_status.body)

    for number in range(done + 1, len(bodies) + 1):
        last = number == len(bodies)
        place = GroupPlace(group_id=group_id, group_sequence=number, last_in_group=last)
        producer.send(bodies[number - 1], group=place, logical_order=number > done + 1)

        if last or (number - done) % MESSAGES_PER_UNIT_OF_WORK == 0:
            text = (group_id + number.to_bytes(8, "big")).hex()
            # After a start, the offset must be said; it is said each time here.
            segment = GroupPlace(
                group_id=status_id, offset=offset, in_group=False, segment=True, last_segment=last
            )
            statuses.send(text, group=segment)
            offset += len(text)
            session.commit()

    # All is put and committed, so that this session can get it. What the status queue holds is one
    # whole logical message: one get clears it. Were this program killed just before, the next start
    # would find the last segment and come here.
    status_reader.receive(5, complete_message=True)
    session.commit()


def _last_status(session: ledgermq.Session, status: str) -> ledgermq.Message | None:
    """The last segment on the status queue; None if there is none."""
    browser = session.browser(status)
    last = None
    message = browser.first(order=Order.LOGICAL)
    while message is not None:
        last = message
        message = browser.next(order=Order.LOGICAL)
    return last


def main(address: str, target: str, status: str, count: str) -> None:
    """Put a group of so many texts."""
    with ledgermq.connect(address) as connection, connection.session(transacted=True) as session:
        put_group(
            session, target, status, [f"part {number}" for number in range(1, int(count) + 1)]
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
