"""The outbox of the examples: what a database decided is in the queue once, kills or not."""

import contextlib
import importlib.util
import os
import random
import subprocess
import sys
import time

import pytest

from ledgermq.testing import MemoryBroker
from support.checkout import ROOT

PROGRAM = ROOT / "examples" / "services" / "outbox.py"
ORDERS = 1_000
LIMIT_SECONDS = 60


@pytest.fixture(scope="module")
def outbox():
    """The example as a module."""
    spec = importlib.util.spec_from_file_location("outbox", PROGRAM)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def bodies(connection, outbox):
    """What the queue holds, sorted."""
    with connection.session() as session, session.browser(f"queue:{outbox.QUEUE}") as browser:
        return sorted(message.body for message in browser)


class Killed(BaseException):
    """The process is gone, just there."""


def test_what_was_sent_but_not_removed_is_sent_again_and_vanishes(outbox, tmp_path, capsys):
    """The one moment that an outbox has to fear."""

    class Dying:
        def __init__(self, database):
            self.execute = database.execute

        def __enter__(self):
            raise Killed

        def __exit__(self, *_):
            pass

    database = outbox.opened(str(tmp_path / "orders.db"))
    with (
        contextlib.closing(database),
        MemoryBroker().connect() as connection,
        connection.session() as session,
    ):
        outbox.make_queue(connection.admin)
        producer = session.producer(f"queue:{outbox.QUEUE}")
        for item in ("tea", "milk"):
            outbox.place_order(database, item)
        with pytest.raises(Killed):
            outbox.forward(Dying(database), producer)
        outbox.place_order(database, "sugar")
        assert outbox.forward(database, producer) == 3
        assert outbox.forward(database, producer) == 0
        assert "3 forwarded, 2 of them had been before" in capsys.readouterr().out
        assert bodies(connection, outbox) == ["milk", "sugar", "tea"]


@pytest.mark.kafka
def test_forwarders_that_are_killed_again_and_again_put_each_order_once(
    outbox, installation, tmp_path
):
    """Two of them at work on one outbox, with SIGKILL at any moment, on the real broker."""
    path = str(tmp_path / "orders.db")
    with contextlib.closing(outbox.opened(path)) as database:
        for number in range(ORDERS):
            outbox.place_order(database, f"item {number:04}")

        def forwarder():
            return subprocess.Popen(
                [sys.executable, str(PROGRAM), path, "forward", installation.address],
                env=os.environ | {"LEDGERMQ_TOPIC_PREFIX": installation.topics.prefix},
                stdout=subprocess.PIPE,
                text=True,
            )

        dice, kills = random.Random(20), 0
        while database.execute("SELECT count(*) FROM outbox").fetchone()[0]:
            both = [forwarder(), forwarder()]
            if kills < 8:
                both[0].stdout.readline()
                time.sleep(dice.random() * 0.02)
                for one in both:
                    one.kill()
                    kills += 1
            for one in both:
                one.communicate(timeout=LIMIT_SECONDS)
    with installation.connect() as connection:
        found = bodies(connection, outbox)
        connection.admin.delete_queue(outbox.QUEUE, purge=True)
    assert found == [f"item {number:04}" for number in range(ORDERS)]
