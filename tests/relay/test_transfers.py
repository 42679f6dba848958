"""Transfers on an embedded queue manager: what each may hold, and what goes on together."""

from __future__ import annotations

from ledgermq.relay.transfers import MESSAGES_MAX, Gatherer, decode_transfer
from ledgermq.testing import MemoryBroker


def test_messages_with_large_headers_go_into_as_many_transfers_as_they_need():
    """Headers count as contents do: together they were larger than a message may be."""
    with MemoryBroker().connect() as connection:
        connection.admin.create_queue("orders")
        connection.admin.create_queue("transfers")
        with connection.session(transacted=True) as session:
            producer = session.producer("queue:orders")
            for number in range(150):
                producer.send(f"{number}", properties={"note": "x" * 60_000})
            session.commit()
        gatherer, gathered = Gatherer(connection, "orders", "transfers"), 0
        while count := gatherer.gather(0.1):
            gathered += count
            assert count < MESSAGES_MAX
        transfers = list(connection.browser("queue:transfers"))
    assert gathered == 150
    assert sum(len(decode_transfer(one)) for one in transfers) == 150
    assert max(len(one.body) for one in transfers) < 2 * 1024 * 1024
