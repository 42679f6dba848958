"""LedgerMQ: a message-queue system whose only source of truth is a transaction log on Kafka.

    with ledgermq.connect("kafka://localhost:9092/QM1") as connection:
        with connection.session() as session:
            session.producer("queue:orders").send({"id": 1})
            message = session.consumer("queue:orders").receive(timeout=5)

`ledgermq.aio` has the same names for asyncio, and services whose functions are called with
messages; `ledgermq.testing` a queue manager in memory, for unit tests.

What it exports stands in `__init__.pyi` and is loaded when it is first used, so that the fold, the
worker and the Spark jobs, which live in this package too, load without the client.
"""

from __future__ import annotations

from ledgermq import errors as errors
from ledgermq.lazy_exports import load as __getattr__  # noqa: F401
from ledgermq.lazy_exports import names as __dir__  # noqa: F401
