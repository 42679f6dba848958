"""An outbox: what a database transaction decides is sent, once, wherever a process is killed.

The order and what is to be sent of it are written in one transaction of the database. A forwarder
sends what stands in the outbox, then removes it. Killed between the two it sends again, under the
same deduplication id, and the queue takes it once.

python examples/services/outbox.py orders.db place 10
python examples/services/outbox.py orders.db forward kafka://localhost:9092/QM1
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
import uuid
from datetime import timedelta

import ledgermq

QUEUE = "orders"
# Longer than a forwarder may be away, and more than it sends meanwhile.
WINDOW: ledgermq.QueueSettings = {
    "deduplication_window_ms": timedelta(days=7),
    "deduplication_ids_max": 100_000,
}
BATCH = 100


def opened(path: str) -> sqlite3.Connection:
    """The database, with its two tables."""
    database = sqlite3.connect(path, timeout=30)
    with database:
        database.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, item TEXT)")
        database.execute(
            "CREATE TABLE IF NOT EXISTS outbox (id INTEGER PRIMARY KEY, body TEXT, "
            "deduplication_id TEXT UNIQUE)"
        )
    return database


def place_order(database: sqlite3.Connection, item: str) -> None:
    """An order and what is to be sent of it: both are there, or neither."""
    with database:
        database.execute("INSERT INTO orders (item) VALUES (?)", (item,))
        database.execute(
            "INSERT INTO outbox (body, deduplication_id) VALUES (?, ?)", (item, str(uuid.uuid4()))
        )


def make_queue(admin: ledgermq.Admin) -> None:
    """The queue has a window before anything is sent; one that is there gets it."""
    try:
        admin.create_queue(QUEUE, **WINDOW)
    except ledgermq.DestinationExistsError:
        admin.alter_queue(QUEUE, **WINDOW)


def forward(database: sqlite3.Connection, producer: ledgermq.Producer) -> int:
    """Sends what stands in the outbox, some at a time, and removes it; returns how much it was."""
    rows = database.execute("SELECT * FROM outbox ORDER BY id LIMIT ?", (BATCH,)).fetchall()
    sends = [producer.send_async(body, deduplication_id=name) for _, body, name in rows]
    receipts = [send.result(30) for send in sends]
    with database:
        database.executemany("DELETE FROM outbox WHERE id = ?", [(number,) for number, *_ in rows])
    if receipts:
        again = sum(receipt.duplicate for receipt in receipts)
        print(f"{len(receipts)} forwarded, {again} of them had been before", flush=True)
    return len(receipts)


def forward_all(database: sqlite3.Connection, address: str) -> None:
    """Until the outbox is empty; a service would wait a moment and look again."""
    prefix = os.environ.get("LEDGERMQ_TOPIC_PREFIX")
    with ledgermq.connect(address, topic_prefix=prefix) as connection:
        make_queue(connection.admin)
        with connection.session() as session:
            producer = session.producer(f"queue:{QUEUE}")
            while forward(database, producer):
                pass


def main(path: str, what: str, argument: str) -> None:
    """`place NUMBER` or `forward ADDRESS`."""
    with contextlib.closing(opened(path)) as database:
        if what == "forward":
            forward_all(database, argument)
        else:
            for number in range(int(argument)):
                place_order(database, f"item {number}")


if __name__ == "__main__":
    main(*sys.argv[1:])
