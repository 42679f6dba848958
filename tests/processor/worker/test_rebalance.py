"""Several workers: take-over, zombies, stand-by, rebalances, questions to the owner (H9 to H13)."""

import json
import signal
import socket
import time

import pytest

from ledgermq.protocol import operations as op
from ledgermq.wire.topics.registry import claim_queue_manager
from support.brokers import topic_surgery as surgery
from support.brokers.raw_client import RawClient
from support.brokers.traffic import Traffic
from support.checks.history import check_history

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def test_a_second_worker_stands_by_and_takes_over_from_a_killed_one(place):
    """The stand-by says so; after SIGKILL of the owner it goes on, and the history is whole."""
    first = place.worker("first")
    traffic = Traffic(place.client(0), place.client(1))
    second = place.worker("second", ready=False)
    second.wait_for_log("owns QM1" if _moved(first, second) else "stands by")
    traffic.run(10)
    owner, other = (second, first) if "owns QM1" in second.log else (first, second)
    owner.kill()
    other.wait_for_log("state loaded")
    traffic.run(10)
    traffic.settle()
    check_history(place)


def _moved(first, second, seconds=20.0):
    """Whether the group gave the queue manager to the newcomer."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        if "owns QM1" in second.log:
            return True
        if "stands by" in second.log:
            return False
        time.sleep(0.05)
    raise AssertionError(first.log + second.log)


def test_a_worker_whose_web_port_is_taken_says_so_in_a_line(place):
    """It ends with code 1 and no traceback."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        worker = place.worker(ready=False, WEB_PORT=taken.getsockname()[1])
        assert worker.wait() == 1
    assert "give another --web-port" in worker.log
    assert "Traceback" not in worker.log


def test_two_workers_of_one_name_do_not_fight_for_ever(place):
    """One of them ends with code 4 and says why; the other one works on.

    One that Kafka turns away in the middle of joining ends with code 1 and is started again.
    """
    said = "another worker is called twin too"
    workers = [place.worker("twin")]
    workers.append(place.worker("twin", ready=False))
    limit = time.monotonic() + 60
    while not any(worker.code == 4 for worker in workers):
        assert time.monotonic() < limit, workers[0].log + workers[1].log
        time.sleep(0.1)
        if 1 in (codes := [worker.code for worker in workers]):
            workers[codes.index(1)] = place.worker("twin", ready=False)
    other, ended = sorted(workers, key=lambda worker: worker.code == 4)
    assert said in ended.log
    if said in other.log:
        assert other.wait() == 1
        place.worker("twin")
    traffic = Traffic(place.client(0), place.client(1))
    traffic.run(5)
    traffic.settle()
    check_history(place)


def test_a_zombie_changes_no_outcome(place):
    """A worker stopped beyond its session time-out and then continued writes only repeats (I10)."""
    first = place.worker("first", CHECKPOINT_SECONDS=1)
    traffic = Traffic(place.client(0), place.client(1))
    traffic.run(10)
    first.signal(signal.SIGSTOP)
    traffic.run(3)
    second = place.worker("second", ready=False, CHECKPOINT_SECONDS=1)
    second.wait_for_log("state loaded")
    traffic.run(10)
    traffic.settle()
    assert place.client(0).ask("CHECKPOINT", wait_seconds=60.0)["reason"] == ""
    first.signal(signal.SIGCONT)
    traffic.run(10)
    traffic.settle()
    check_history(place)
    first.kill()
    second.kill()
    third = place.worker("third")
    assert "(from a checkpoint)" in third.log
    check_history(place)


def test_rebalances_under_load_lose_nothing(place):
    """Workers that come and go while operations pour in leave a whole history (H9, H10, H30)."""
    place.worker("steady", CHECKPOINT_SECONDS=1)
    traffic = Traffic(place.client(0), place.client(1), seed=7)
    for name in ("guest-a", "guest-b", "guest-c"):
        guest = place.worker(name, ready=False, CHECKPOINT_SECONDS=1)
        traffic.run(15)
        guest.wait_for_log("worker")
        traffic.run(15)
        assert guest.stop() == 0
    traffic.run(5)
    traffic.settle()
    check_history(place)


@pytest.mark.parametrize("offset", [0, 3, 100_000])
def test_the_offset_committed_to_the_group_is_only_a_hint(place, offset):
    """Whatever offset the group holds, the worker reads on from its own state (H9)."""
    first = place.worker("first")
    traffic = Traffic(place.client(0), place.client(1))
    traffic.run(5)
    traffic.settle()
    assert first.stop() == 0
    surgery.commit_to_group(place, offset)
    place.worker("first")
    traffic.run(5)
    traffic.settle()
    check_history(place)


def test_two_queue_managers_are_shared_by_two_workers_and_questions_find_their_owner(wide_place):
    """Each worker owns one queue manager and answers its questions (H12)."""
    place = wide_place
    second_claim = claim_queue_manager(place.bootstrap, place.topics, "QM2", lanes=place.lanes)
    workers = [place.worker("a", ready=False), place.worker("b", ready=False)]
    place.wait_for_worker()
    _wait_for_one_each(workers)
    place.wait_for_worker()
    names = set()
    for claim in (place.claim, second_claim):
        client = RawClient(place.bootstrap, place.topics, claim)
        place.clients.append(client)
        session = client.open()
        session.put("queue:a", 3)
        session.do(op.Commit, deliveries=[], puts=3)
        document = json.loads(client.ask("QUEUE_MANAGER")["document"])
        assert document["name"] == claim.queue_manager
        names.add(document["worker"])
    assert names == {"a", "b"}
    check_history(place)


def _wait_for_one_each(workers, seconds=40.0):
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        last = [
            [line for line in worker.log.splitlines() if " owns " in line] for worker in workers
        ]
        if all(lines and "," not in lines[-1].split(" owns ")[1].split("(")[0] for lines in last):
            return
        time.sleep(0.1)
    raise AssertionError("\n".join(worker.log for worker in workers))


def test_a_queue_manager_claimed_while_the_worker_runs_is_taken_up(wide_place):
    """A claim in the registry is enough: nobody has to restart the worker."""
    place = wide_place
    place.worker()
    claim = claim_queue_manager(place.bootstrap, place.topics, "LATE", lanes=place.lanes)
    client = RawClient(place.bootstrap, place.topics, claim)
    place.clients.append(client)
    session = client.open()
    session.put("queue:a", 1)
    session.do(op.Commit, deliveries=[], puts=1)


def test_a_slow_load_holds_up_no_other_queue_manager(wide_place):
    """QM2 works while QM1's checkpoints are still being read, and the group stays calm (H11)."""
    place = wide_place
    claim = claim_queue_manager(place.bootstrap, place.topics, "QM2", lanes=place.lanes)
    for number in range(120):
        key = f"QM1/chunk/{number:064x}"
        surgery.write(place, place.topics.checkpoints, key, bytes(1_000_000))
    worker = place.worker("w", ready=False)
    client = RawClient(place.bootstrap, place.topics, claim)
    place.clients.append(client)
    session = client.open()
    session.put("queue:a", 1)
    session.do(op.Commit, deliveries=[], puts=1)
    worker.wait_for_log("QM1: state loaded")
    # How long the load takes depends on the machine; that QM2 did not wait for it does not.
    assert worker.log.index("QM2: state loaded") < worker.log.index("QM1: state loaded")
    assert worker.log.count(" owns ") == 1
