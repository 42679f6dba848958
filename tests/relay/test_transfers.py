"""Transfers on an embedded queue manager: what each may hold, and what goes on together."""

from __future__ import annotations

from ledgermq.relay.transfers import Gatherer, decode_transfer
from ledgermq.testing import MemoryBroker

MESSAGES = 150


def test_messages_with_large_headers_go_into_as_many_transfers_as_they_need():
    """Headers count as contents do: together they were larger than a message may be."""
    with MemoryBroker().connect() as connection:
        connection.admin.create_queue("orders")
        connection.admin.create_queue("transfers")
        with connection.session(transacted=True) as session:
            producer = session.producer("queue:orders")
            for number in range(MESSAGES):
                producer.send(f"{number}", properties={"note": "x" * 60_000})
            session.commit()
        gatherer, gathered = Gatherer(connection, "orders", "transfers"), 0
        while gathered < MESSAGES:
            count = gatherer.gather(30.0)
            assert 0 < count < MESSAGES
            gathered += count
        transfers = list(connection.browser("queue:transfers"))
    assert sum(len(decode_transfer(one)) for one in transfers) == MESSAGES
    assert max(len(one.body) for one in transfers) < 2 * 1024 * 1024
