"""The supervisor: a dead worker comes back, a refused one does not, nobody outlives the owner."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from ledgermq.cli.main import main
from ledgermq.embedded.directory import LOG_BYTES_MAX
from ledgermq.processor.worker.supervisor import Supervisor, WorkerNotRunningError
from ledgermq.protocol import operations as op
from ledgermq.protocol.administration import VersionOffered
from ledgermq.protocol.outcomes import Accepted
from ledgermq.wire.framing.codec import encode_chunk
from ledgermq.wire.topics.log_topics import Topics, lane_partition
from ledgermq.wire.topics.registry import find_queue_manager
from support.brokers import topic_surgery as surgery
from support.brokers.raw_client import RawClient
from support.checkout import SERVICES

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

OWNER = """
import sys, time
from pathlib import Path
from ledgermq.processor.worker.supervisor import Supervisor
supervisor = Supervisor(Path(sys.argv[1])).start()
ids = f"{supervisor.worker_pid} {supervisor.broker.pid}"
sys.exit(supervisor.run(ready=lambda: print(ids, flush=True)))
"""


def is_alive(pid):
    """Whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_gone(*pids, seconds=30.0):
    """Waits until none of the processes runs."""
    limit = time.monotonic() + seconds
    while any(is_alive(pid) for pid in pids):
        assert time.monotonic() < limit, [pid for pid in pids if is_alive(pid)]
        time.sleep(0.05)


def test_a_killed_worker_is_started_again_and_a_second_start_finds_the_data(tmp_path):
    """After SIGKILL the worker is back by itself; after a stop all data are there again.

    So it is where nobody can be told: a terminal that was closed takes no word more.
    """
    said = []

    def tell(text):
        said.append(text)
        raise OSError(errno.EIO, "Input/output error")

    with Supervisor(tmp_path, tell=tell) as supervisor:
        topics = Topics()
        claim = find_queue_manager(supervisor.bootstrap, topics, "QM1")
        client = RawClient(supervisor.bootstrap, topics, claim)
        session = client.open()
        session.put("queue:kept", 5)
        session.do(op.Commit, deliveries=[], puts=5)
        first = supervisor.worker_pid
        supervisor.kill_worker()
        session.do(op.Alive)
        assert supervisor.worker_pid != first
        assert supervisor.restarts == 1, said
        assert "was killed by SIGKILL" in said[0]
        client.close()
    with Supervisor(tmp_path) as supervisor:
        client = RawClient(supervisor.bootstrap, topics, claim)
        assert '"message_count":5' in client.ask("QUEUE", queue="kept")["document"]
        client.close()


def test_a_large_log_of_the_worker_is_put_aside_when_it_is_started(tmp_path):
    """One that dies over and over would fill the disk of the ledger with it."""
    broker = SimpleNamespace(bootstrap="127.0.0.1:1")
    for size in (LOG_BYTES_MAX, LOG_BYTES_MAX + 1):
        (tmp_path / "worker.log").write_bytes(b"x" * size)
        worker = Supervisor(tmp_path, broker=broker)._spawn()
        worker.kill()
        worker.wait()
        assert (tmp_path / "worker.log.1").exists() is (size > LOG_BYTES_MAX)
    assert (tmp_path / "worker.log").stat().st_size < LOG_BYTES_MAX


def test_a_start_tells_of_a_queue_manager_that_is_stopped_and_serves_the_others(tmp_path):
    """Nobody reads the worker's log where all seems well."""
    said, names = [], ("QM1", "QM2")
    with Supervisor(tmp_path, queue_managers=names, tell=said.append) as supervisor:
        claim = find_queue_manager(supervisor.bootstrap, Topics(), "QM2")
        told = Accepted(position=9_999, index=0, session=0, session_sequence=1)
        lane = claim._replace(partition=lane_partition(claim.partition, claim.lanes, 0))
        where = SimpleNamespace(bootstrap=supervisor.bootstrap, claim=lane)
        value = encode_chunk(-1, -2, [told], bytes(32))
        surgery.write(where, Topics().outcomes, None, value)
    assert said == []
    with Supervisor(tmp_path, tell=said.append) as supervisor:
        assert said == [f"QM2 is stopped; the worker's log, {supervisor.worker_log}, says why"]


def test_a_worker_that_has_no_directory_ends_all_with_a_word(tmp_path):
    """Starting it again would not help, so that it is not waited for.

    What its log said before this start is not the reason.
    """
    (tmp_path / "worker").write_text("somebody's file")
    (tmp_path / "worker.log").write_text("of a start long ago\n")
    said = []
    ended = r"(?s)the worker ended; .*data_directory is"
    with pytest.raises(WorkerNotRunningError, match=ended) as caught:
        Supervisor(tmp_path, tell=said.append).start()
    assert "long ago" not in said[0] + str(caught.value)
    assert "the worker refuses to run" in said[0]
    assert "Traceback" not in said[0]


def test_a_broker_that_is_killed_ends_all_and_the_signal_is_told(tmp_path):
    """A system without memory kills it so; what its log said before is not the reason."""
    (tmp_path / "broker").mkdir()
    (tmp_path / "broker" / "broker.log").write_text("x ERROR kafka - of a start long ago\n")
    said = []
    with Supervisor(tmp_path, tell=said.append) as supervisor:
        kill = threading.Timer(0.5, os.kill, (supervisor.broker.pid, signal.SIGKILL))
        assert supervisor.run(ready=kill.start) == 1
    assert "the broker was killed by SIGKILL, perhaps by a system without memory" in said[-1]
    assert "broker.log" in said[-1]
    assert "long ago" not in said[-1]


@pytest.fixture
def owner(tmp_path):
    """A process that owns a supervisor, and the ids of its worker and broker."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(SERVICES)},
    )
    worker, broker = map(int, process.stdout.readline().split())
    yield process, worker, broker
    process.kill()
    process.wait()
    process.stdout.close()


def test_worker_and_broker_die_with_a_killed_owner(owner):
    """SIGKILL of the supervising process leaves no process behind."""
    process, worker, broker = owner
    process.kill()
    wait_until_gone(worker, broker)


def test_a_signal_stops_worker_and_broker_in_order(owner):
    """SIGTERM to the owner ends everything with code 0."""
    process, worker, broker = owner
    process.send_signal(signal.SIGTERM)
    assert process.wait(40) == 0
    wait_until_gone(worker, broker)


def test_a_worker_that_refuses_to_run_is_not_started_again_before_somebody_helps(tmp_path):
    """Exit code 4 asks for a person: the supervisor ends, and the command that it shows helps."""
    said = []
    supervisor = Supervisor(tmp_path, tell=said.append)
    with supervisor:
        topics = Topics()
        claim = find_queue_manager(supervisor.bootstrap, topics, "QM1")
        client = RawClient(supervisor.bootstrap, topics, claim)
        session = client.open()
        client.write(VersionOffered(worker="w", version=9))
        upgrade = session.write(op.Upgrade, version=9)
        session.reply(upgrade)
        session.write(op.Alive)
        client.flush()
        assert supervisor.run() == 4
        client.close()
    assert "the worker refuses to run" in said[0]
    assert "protocol version 9" in said[0]
    command = f"log skip {session.positions[upgrade][0]}"
    assert f"ledgermq {command} --queue-manager QM1" in said[0]
    options = ["--data-dir", str(tmp_path), "--reason", "a mistake", "--timeout", "5", "--yes"]
    assert main([*command.split(), *options]) == 0
    with Supervisor(tmp_path) as supervisor:
        assert supervisor.restarts == 0
