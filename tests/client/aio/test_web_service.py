"""The web service of the examples, as a process of its own, on the real broker."""

import os
import re
import signal
import subprocess
import sys
import time

import httpx
import pytest

from support.checkout import ROOT

LIMIT_SECONDS = 60


@pytest.fixture
def desk(installation):
    """A running web service and its address."""
    program = subprocess.Popen(
        [
            *(sys.executable, "-m", "uvicorn", "--app-dir", str(ROOT / "examples" / "services")),
            *("order_desk:app", "--host", "127.0.0.1", "--port", "0"),
        ],
        env=os.environ
        | {
            "LEDGERMQ_ADDRESS": installation.address,
            "LEDGERMQ_TOPIC_PREFIX": installation.topics.prefix,
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for line in program.stderr:
            if found := re.search(r"running on (http://\S+)", line):
                yield program, found[1]
                break
    finally:
        program.kill()
        program.wait(LIMIT_SECONDS)


def test_orders_are_taken_and_billed_and_none_is_left_when_it_is_told_to_stop(installation, desk):
    """202 only for what is an order; SIGTERM ends it in order."""
    program, address = desk
    with httpx.Client(base_url=address, timeout=LIMIT_SECONDS) as web:
        assert web.get("/health").json() == {"consuming": True}
        assert web.get("/bills/7").status_code == 404
        assert web.post("/orders", json={"id": 7, "amount": -1}).status_code == 422
        taken = web.post("/orders", json={"id": 7, "amount": 100})
        assert (taken.status_code, list(taken.json())) == (202, ["sequence"])
        deadline = time.monotonic() + LIMIT_SECONDS
        while (answer := web.get("/bills/7")).status_code == 404:
            assert time.monotonic() < deadline, "the order was not billed"
            time.sleep(0.05)
        assert answer.json() == {"total": 119.0}
    program.send_signal(signal.SIGTERM)
    assert program.wait(LIMIT_SECONDS) in (0, -signal.SIGTERM)
    with installation.connect() as connection:
        assert connection.admin.queue_status("orders").message_count == 0
        connection.admin.delete_queue("orders")
