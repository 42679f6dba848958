"""A web service on queues: an order is answered once it is on the log, and billed beside that.

LEDGERMQ_ADDRESS=kafka://localhost:9092/QM1 uvicorn --app-dir examples/services order_desk:app
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, PositiveFloat

import ledgermq
from ledgermq import aio

ADDRESS = os.environ.get("LEDGERMQ_ADDRESS", "kafka://localhost:9092/QM1")
PREFIX = os.environ.get("LEDGERMQ_TOPIC_PREFIX")
service = aio.Service(ADDRESS, topic_prefix=PREFIX)
bills: dict[int, float] = {}


class Order(BaseModel):
    """What is ordered; anything else is answered 422 and never comes to the queue."""

    id: int
    amount: PositiveFloat


@service.consumer("queue:orders", concurrency=4)
async def bill(order: aio.Message) -> None:
    """May be called again for an order, after a crash: it does the same again."""
    bills[order.body["id"]] = round(order.body["amount"] * 1.19, 2)


@contextlib.asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Consumers run as long as the web server; what is at work is finished at the end."""
    async with aio.connect(ADDRESS, topic_prefix=PREFIX) as connection:
        app.state.connection = connection
        app.state.serving = serving = asyncio.create_task(service.serve())
        try:
            yield
        finally:
            service.stop()
            await serving


app = FastAPI(lifespan=lifespan)


@app.post("/orders", status_code=202)
async def take(order: Order) -> dict[str, int]:
    """202 says that the order cannot be lost any more; 503 that it may be sent again."""
    try:
        # A session of its own: whatever becomes of one request, the next one begins anew.
        async with app.state.connection.session() as session:
            receipt = await session.producer("queue:orders").send(order.model_dump())
    except ledgermq.LedgerMQError as error:
        raise HTTPException(503, str(error)) from error
    return {"sequence": receipt.sequence}


@app.get("/bills/{order}")
async def show(order: int) -> dict[str, float]:
    """404 as long as the order is not billed."""
    if order not in bills:
        raise HTTPException(404, f"order {order} has no bill yet")
    return {"total": bills[order]}


@app.get("/health")
async def tell_health() -> dict[str, bool]:
    """503 once the consumers have ended though the web server runs."""
    if app.state.serving.done():
        raise HTTPException(503, "the consumers have ended; the log says why")
    return {"consuming": True}
