"""A service: each order becomes a bill, in one unit of work; run it twice, kill it, run it again.

python examples/services/bill_orders.py kafka://localhost:9092/QM1
"""

from __future__ import annotations

import logging
import os
import sys

from ledgermq import aio
from ledgermq.aio import Message, Session

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
service = aio.Service(
    sys.argv[1] if len(sys.argv) > 1 else "kafka://localhost:9092/QM1",
    topic_prefix=os.environ.get("LEDGERMQ_TOPIC_PREFIX"),
)


@service.consumer("queue:orders", transacted=True, concurrency=4)
async def bill(order: Message, session: Session) -> None:
    """What raises goes back; after the redelivery limit of the queue, to its error destination."""
    if order.body["amount"] <= 0:
        raise ValueError(f"order {order.body['id']} is for nothing")
    total = round(order.body["amount"] * 1.19, 2)
    await session.producer("queue:bills").send({"order": order.body["id"], "total": total})


@service.consumer("queue:bills")
def print_bill(bill: Message) -> None:
    """A function that is no coroutine runs in a thread, so that it may wait."""
    print(f"order {bill.body['order']}: {bill.body['total']:.2f}", flush=True)


if __name__ == "__main__":
    service.run()
