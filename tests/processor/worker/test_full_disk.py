"""The disk runs full: what was confirmed is there, and the reason is told (F3)."""

import os
import subprocess
import threading

import pytest

import ledgermq
from ledgermq.processor.worker.supervisor import Supervisor

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

MOUNT = ["mount", "-t", "tmpfs", "tmpfs"]


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 24 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    try:
        subprocess.run([*MOUNT, "-o", "size=24m", place], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("only root may mount a small disk")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def fill(bootstrap, confirmed):
    """Sends until nothing is confirmed any more."""
    body = os.urandom(1_000_000)
    try:
        with (
            ledgermq.connect(f"kafka://{bootstrap}/QM1", timeout=3) as connection,
            connection.session() as session,
        ):
            producer = session.producer("queue:q")
            while True:
                producer.send(body)
                confirmed.append(1)
    except ledgermq.LedgerMQError:
        return


def test_a_full_disk_loses_nothing_that_was_confirmed(small_disk):
    """The supervisor ends and says why; with more room, everything confirmed can be got."""
    said, confirmed = [], []
    supervisor = Supervisor(small_disk / "data", tell=said.append).start()
    filling = threading.Thread(target=fill, args=(supervisor.bootstrap, confirmed))
    filling.start()
    assert supervisor.run() == 1
    filling.join()
    assert "No space left on device" in "".join(said)
    assert confirmed
    subprocess.run([*MOUNT, "-o", "remount,size=200m", small_disk], check=True)
    with (
        Supervisor(small_disk / "data") as again,
        ledgermq.connect(f"kafka://{again.bootstrap}/QM1") as connection,
        connection.session() as session,
    ):
        # The send that was not confirmed may have been appended, or not.
        count = connection.admin.queue_status("q").message_count
        assert count - len(confirmed) in (0, 1)
        consumer = session.consumer("queue:q", prefetch=4)
        assert sum(1 for _ in consumer.until_idle(2.0)) == count
