"""Gets one group in several units of work, and goes on where it was cut off (GRP-31..35).

    python examples/groups/get_group.py kafka://localhost:9092/QM1 queue:parts queue:parts.got

At most four messages in each unit of work; the group need not be there as a whole when this begins.
After each unit of work but the last, the status queue says which message was the last; when it is
empty the group was got completely. Kill this program wherever you like and start it again.
`ledgermq.get_group` does all of it in one call; this is what it does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import ledgermq
from ledgermq import GetMatch, GroupStatus, Order

MESSAGES_PER_UNIT_OF_WORK = 4
WAIT_SECONDS = 30


def get_group(
    session: ledgermq.Session,
    source: str,
    status: str,
    process: Callable[[ledgermq.Message], object],
) -> None:
    """Get one group, or the rest of the one that was begun."""
    statuses = session.producer(status)
    status_reader = session.consumer(status, prefetch=0)
    consumer = session.consumer(source, prefetch=0, complete_message=True)

    found = status_reader.receive(0)
    if found is None:
        message = consumer.receive(WAIT_SECONDS, order=Order.LOGICAL)
    else:
        # The group ended prematurely. Its first message is gone, so it is in no logical order any
        # longer: the next message is named, and those behind it come in logical order again.
        message = consumer.receive(
            WAIT_SECONDS,
            match=GetMatch(
                group_id=found.body["group_id"], group_sequence=found.body["group_sequence"] + 1
            ),
        )

    first_unit = True
    count = 0
    while message is not None:
        process(message)
        count += 1
        more = message.group_status is GroupStatus.MESSAGE_IN_GROUP
        if not more or count == MESSAGES_PER_UNIT_OF_WORK:
            if not first_unit:
                status_reader.receive(0)
            if more:
                statuses.send(
                    {"group_id": message.group_id, "group_sequence": message.group_sequence}
                )
            session.commit()
            first_unit, count = False, 0
        message = consumer.receive(WAIT_SECONDS, order=Order.LOGICAL) if more else None


def main(address: str, source: str, status: str) -> None:
    """Get a group and print it."""
    with ledgermq.connect(address) as connection, connection.session(transacted=True) as session:
        get_group(session, source, status, lambda message: print(message.body))


if __name__ == "__main__":
    main(*sys.argv[1:])
