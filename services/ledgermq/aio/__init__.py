"""LedgerMQ for asyncio: the same names over the same protocol, with no thread per session.

    async with aio.connect("kafka://localhost:9092/QM1") as connection:
        async with connection.session(transacted=True) as session:
            await session.producer("queue:orders").send({"id": 1})
            await session.commit()

A connection has its reader and its heartbeats, two threads whatever the number of its sessions; a
coroutine that waits costs a future. What is rare and waits (opening, closing, rolling back,
administration) runs in the event loop's pool of threads.
"""

from __future__ import annotations

from ledgermq.aio.connection import Connection, connect
from ledgermq.aio.receiving import Browser, Consumer, Message
from ledgermq.aio.sending import GroupSender, Producer
from ledgermq.aio.service import MessageRejectedError, Service
from ledgermq.aio.session import Session

__all__ = [
    "Browser",
    "Connection",
    "Consumer",
    "GroupSender",
    "Message",
    "MessageRejectedError",
    "Producer",
    "Service",
    "Session",
    "connect",
]
