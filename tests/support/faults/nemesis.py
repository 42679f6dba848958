"""The nemesis: faults that it puts into a run, one after another, in an order from the seed.

A fault lays hands on somebody, holds for a while and is mended; both ends stand in the history,
with the clients that it hurt: those alone may be shown an error.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Final

from ledgermq.processor.worker.crash_points import CRASH_POINTS
from support.brokers.far_broker import Way
from support.brokers.foreign_batches import producers, write_unnamed_header
from support.checks.bad_records import BadRecords
from support.faults.stage import ROLES, WORKERS, Stage

Fault = Callable[[Stage], None]

DISK_MIB = 768
# A full disk has so little left, and is filled in such steps.
LEFT_BYTES, STEP_BYTES = 64 * 1024, 4 * 1024 * 1024
BAD_RECORDS = 100
DEATH_SECONDS = 20.0
WRONG_CLOCKS_SECONDS = (-3600, -20, 20, 3600)
# Of the library's settings: beyond it a frozen worker has lost its queue managers.
FROZEN_SECONDS = (1.0, 8.0)
# Beyond twice the suspect time-out of the clients their sessions are ended.
FROZEN_CLIENT_SECONDS = (2.0, 14.0)
CUT_OFF_SECONDS = (0.5, 8.0)
SLOW_BYTES_PER_SECOND = 20_000


@contextmanager
def _told(stage: Stage, name: str, *hurts: str, **more: object) -> Iterator[None]:
    stage.history.write("fault", what=name, hurts=hurts, **more)
    yield
    stage.history.write("healed", what=name)


def _hold(stage: Stage, shortest: float, longest: float) -> None:
    time.sleep(stage.random.uniform(shortest, longest))


# Workers -----------------------------------------------------------------------------------------


def kill_worker(stage: Stage) -> None:
    """F1: the worker that owns the queue manager is killed."""
    name = stage.owner()
    with _told(stage, "worker killed", worker=name):
        stage.workers[name].kill()
        _hold(stage, 0.0, 6.0)
        stage.mend_workers()


def kill_all_workers(stage: Stage) -> None:
    """F1: nobody is left to take over for a while."""
    with _told(stage, "all workers killed"):
        for worker in stage.workers.values():
            worker.kill()
        _hold(stage, 0.0, 3.0)
        stage.mend_workers()


def freeze_worker(stage: Stage) -> None:
    """F4: the owner stands still, mostly beyond its session time, and comes back as a zombie."""
    name = stage.owner()
    with _told(stage, "worker frozen", worker=name):
        stage.workers[name].signal(signal.SIGSTOP)
        _hold(stage, *FROZEN_SECONDS)
        stage.workers[name].signal(signal.SIGCONT)


def drain_worker(stage: Stage) -> None:
    """F9: the owner is told to stop, and another one is started."""
    name = stage.owner()
    with _told(stage, "worker drained", worker=name):
        assert stage.workers[name].stop() == 0, stage.workers[name].log[-3000:]
        stage.start_worker(name)


def crash_worker(stage: Stage) -> None:
    """F1: the owner kills itself at a point that its code names."""
    point = stage.random.choice(CRASH_POINTS)
    count = stage.random.randint(2, 30) if "fold" in point or "produce" in point else 1
    name = stage.owner()
    with _told(stage, "worker crashed", worker=name, point=point):
        for worker in stage.workers.values():
            worker.kill()
        armed = stage.start_worker(name, CRASH_AT=f"{point}:{count}", CHECKPOINT_SECONDS=0.5)
        limit = time.monotonic() + DEATH_SECONDS
        while armed.code is None and time.monotonic() < limit:
            time.sleep(0.05)
        armed.kill()
        stage.mend_workers()


def mislead_worker(stage: Stage) -> None:
    """F16: the owner gives way to itself with a clock that is wrong, for a while."""
    name = stage.owner()
    by = stage.random.choice(WRONG_CLOCKS_SECONDS)
    with _told(stage, "worker's clock wrong", worker=name, by=by):
        stage.workers[name].kill()
        stage.start_worker(name, clock_seconds=by)
        _hold(stage, 4.0, 10.0)
        stage.workers[name].kill()
        stage.mend_workers()


# Broker ------------------------------------------------------------------------------------------


def kill_broker(stage: Stage) -> None:
    """F3: the broker is killed and started again."""
    with _told(stage, "broker killed"):
        stage.broker.kill()
        _hold(stage, 0.0, 2.0)
        stage.broker.start()
        stage.mend_workers()


def restart_broker(stage: Stage) -> None:
    """F3: the broker is stopped in good order and started again."""
    with _told(stage, "broker restarted"):
        stage.broker.stop()
        stage.broker.start()
        stage.mend_workers()


def freeze_broker(stage: Stage) -> None:
    """F5: the broker stands still."""
    with _told(stage, "broker frozen"):
        pid = stage.broker.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        _hold(stage, 1.0, 5.0)
        os.kill(pid, signal.SIGCONT)
        stage.mend_workers()


def fill_disk(stage: Stage) -> None:
    """F13: the broker's disk is full; it ends, and is started again when there is room."""
    with _told(stage, "disk full"):
        ballast = stage.directory / "disk" / "ballast"
        with ballast.open("wb") as file:
            # What the broker writes meanwhile was free when it was asked for.
            while (free := shutil.disk_usage(ballast.parent).free) > LEFT_BYTES:
                with suppress(OSError):
                    size = os.fstat(file.fileno()).st_size
                    os.posix_fallocate(file.fileno(), size, min(free - LEFT_BYTES, STEP_BYTES))
        limit = time.monotonic() + DEATH_SECONDS
        while stage.broker.running and time.monotonic() < limit:
            time.sleep(0.1)
        stage.history.write("told", broker_ended=not stage.broker.running)
        stage.broker.kill()
        ballast.unlink()
        stage.broker.start()
        stage.mend_workers()


# Clients -----------------------------------------------------------------------------------------


def kill_client(stage: Stage) -> None:
    """F2: a client is killed in whatever it does, and another one comes."""
    client = stage.random.choice(list(stage.clients.values()))
    with _told(stage, "client killed", client.name):
        client.kill()
        del stage.clients[client.name]
        stage.start_client(client.role)


def freeze_client(stage: Stage) -> None:
    """F5: a client stands still, perhaps until its sessions have ended, and goes on."""
    client = stage.random.choice(list(stage.clients.values()))
    with _told(stage, "client frozen", client.name):
        client.signal(signal.SIGSTOP)
        _hold(stage, *FROZEN_CLIENT_SECONDS)
        client.signal(signal.SIGCONT)


def replace_by_losing_client(stage: Stage) -> None:
    """F6, F8: a client gives way to one that loses a part of the replies that come for it."""
    client = stage.random.choice(list(stage.clients.values()))
    with _told(stage, "replies lost", client.name):
        client.kill()
        del stage.clients[client.name]
        stage.start_client(client.role, lose=0.05)


# Networks ----------------------------------------------------------------------------------------


def cut_client_off(stage: Stage) -> None:
    """F6: clients of a role are cut off, one way or both, perhaps until their sessions end."""
    role = stage.random.choice(ROLES)
    hurt = [client.name for client in stage.clients.values() if client.role == role]
    _trouble(stage, role, hurt, FROZEN_CLIENT_SECONDS)


def trouble_client(stage: Stage) -> None:
    """F6: the same for a shorter while, of which nobody is to see anything but a delay."""
    _trouble(stage, stage.random.choice(ROLES), [], CUT_OFF_SECONDS)


def cut_workers_off(stage: Stage) -> None:
    """F6: all workers are cut off, one way or both; some come back as zombies."""
    _trouble(stage, WORKERS, [], FROZEN_SECONDS)
    stage.mend_workers()


def _trouble(stage: Stage, name: str, hurt: list[str], seconds: tuple[float, float]) -> None:
    network = stage.networks[name]
    troubles: dict[str, Callable[[], AbstractContextManager[object]]] = {
        "cut": network.shut,
        "slow": lambda: network.slowed_down(SLOW_BYTES_PER_SECOND),
        "dead": lambda: nullcontext(network.kill_in_silence()),
        "held up": lambda: network.held_up(*Way),
        "deaf": lambda: network.held_up(Way.FROM_BROKER),
        "dumb": lambda: network.held_up(Way.TO_BROKER),
    }
    kind = stage.random.choice([*troubles])
    with _told(stage, f"network {kind}", *hurt, of=name), troubles[kind]():
        _hold(stage, *seconds)


# The log -----------------------------------------------------------------------------------------


def write_bad_records(stage: Stage) -> None:
    """F11: what is no operation stands between operations, and what is no question as well."""
    bad = BadRecords(stage.random.randrange(2**32))
    topics = stage.place.topics
    with _told(stage, "bad records"):
        all_producers = producers(stage.broker.bootstrap)
        for number in range(BAD_RECORDS):
            topic = topics.questions if number % 4 == 0 else topics.operations
            kind = "ledgermq.question." if number % 4 == 0 else "ledgermq.operation."
            value = bad.unreadable(kind)
            if number % 10 == 0:
                write_unnamed_header(stage.broker.bootstrap, topic, value, bad.key())
                continue
            producer = all_producers[number % len(all_producers)]
            producer.produce(topic, key=bad.key(), value=value, partition=0, headers=bad.headers())
            producer.poll(0)
        assert sum(one.flush(60) for one in all_producers) == 0


def lose_scratch(stage: Stage) -> None:
    """F17: all workers are killed and lose their directories; no state is kept there."""
    with _told(stage, "scratch lost"):
        for name, worker in stage.workers.items():
            worker.kill()
            shutil.rmtree(stage.directory / name, ignore_errors=True)
        stage.mend_workers()


FAULTS: Final[tuple[Fault, ...]] = (
    kill_worker,
    freeze_worker,
    drain_worker,
    crash_worker,
    mislead_worker,
    kill_all_workers,
    kill_broker,
    restart_broker,
    freeze_broker,
    kill_client,
    freeze_client,
    replace_by_losing_client,
    cut_client_off,
    trouble_client,
    cut_workers_off,
    write_bad_records,
    lose_scratch,
)


def small_disk(directory: Path) -> bool:
    """Gives a directory a small disk of its own, which only root may; whether it has one."""
    directory.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "tmpfs", "-o", f"size={DISK_MIB}m", str(directory)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def take_disk_away(directory: Path) -> None:
    """Lets go of the small disk."""
    subprocess.run(["umount", "--lazy", str(directory)], check=True)


def deck(stage: Stage, faults: tuple[Fault, ...]) -> Iterator[Fault]:
    """Faults in a seeded order without end: all once, then all again in another order."""
    while True:
        yield from stage.random.sample(faults, len(faults))
