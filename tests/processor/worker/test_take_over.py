"""Workers that share queue managers: killed, frozen, told to stop, of two versions (F1, F4)."""

import signal
import time

import pytest

from ledgermq.core import apply as apply_module
from ledgermq.protocol import operations as op
from ledgermq.protocol.administration import VersionOffered
from ledgermq.wire.topics.registry import claim_queue_manager
from support.brokers.raw_client import RawClient
from support.brokers.traffic import Traffic
from support.checks.history import check_history

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def owner_of(workers):
    """The worker that says that it has QM1, once the others know that they have not."""
    deadline = time.monotonic() + 120
    while True:
        owners = [
            one
            for one in workers
            if one.code is None and one.log.rfind(" owns QM1") >= one.log.rfind(" stands by")
        ]
        if len(owners) == 1:
            return owners[0]
        assert time.monotonic() < deadline, [one.log for one in workers]
        time.sleep(0.1)


@pytest.mark.parametrize("how", ["killed", "frozen", "told to stop"])
def test_another_worker_goes_on_where_one_is_gone(place, how):
    """Under load, twice in turn: nothing is lost, no outcome changes, zombies only repeat."""
    workers = {name: place.worker(name, ready=False, CHECKPOINT_SECONDS=1) for name in "ab"}
    place.wait_for_worker(120)
    traffic = Traffic(place.client(0), place.client(1), seed=3)
    for _ in range(2):
        traffic.run(15)
        gone = owner_of(workers.values())
        [other] = [one for one in workers.values() if one is not gone]
        loads = other.log.count("QM1: state loaded")
        if how == "killed":
            gone.kill()
        elif how == "frozen":
            gone.signal(signal.SIGSTOP)
        else:
            assert gone.stop() == 0, gone.log
        traffic.run(5)
        other.wait_for_count("QM1: state loaded", loads + 1, 120)
        traffic.run(10)
        traffic.settle()
        if how == "frozen":
            gone.signal(signal.SIGCONT)
            traffic.run(10)
        else:
            workers[gone.name] = place.worker(gone.name, ready=False, CHECKPOINT_SECONDS=1)
            workers[gone.name].wait_for_log("stands by", 120)
    traffic.settle()
    check_history(place)


def test_a_worker_that_is_told_to_stop_hands_over_with_a_checkpoint_of_just_now(place):
    """The next worker folds nothing again that was there when the signal came."""
    first = place.worker("first", CHECKPOINT_SECONDS=1000)
    second = place.worker("second", ready=False, CHECKPOINT_SECONDS=1000)
    second.wait_for_log("stands by", 120)
    traffic = Traffic(place.client(0), place.client(1))
    traffic.run(20)
    traffic.settle()
    end = max(position for position, _ in traffic.producer.client.outcomes)
    assert first.stop() == 0
    second.wait_for_log("(from a checkpoint)", 120)
    loaded = int(second.log.split("state loaded at position ")[1].split()[0])
    assert loaded >= end
    traffic.run(5)
    traffic.settle()
    check_history(place)


def test_a_worker_that_stops_alone_leaves_a_checkpoint(place):
    """Started again, it goes on from there."""
    first = place.worker("only", CHECKPOINT_SECONDS=1000)
    traffic = Traffic(place.client(0), place.client(1))
    traffic.run(10)
    traffic.settle()
    assert first.stop() == 0
    again = place.worker("only")
    assert "(from a checkpoint)" in again.log
    traffic.run(5)
    traffic.settle()
    check_history(place)


@pytest.fixture
def two_managers(wide_place):
    """QM1 and QM2 on one place; the clients of both."""
    claims = [wide_place.claim]
    claims.append(
        claim_queue_manager(wide_place.bootstrap, wide_place.topics, "QM2", lanes=wide_place.lanes)
    )
    clients = [RawClient(wide_place.bootstrap, wide_place.topics, claim) for claim in claims]
    wide_place.clients += clients
    return wide_place, clients


def put_and_commit(session, count=3):
    """A unit of work that must be answered."""
    session.put("queue:a", count)
    session.do(op.Commit, deliveries=[], puts=count)


def test_three_workers_share_two_queue_managers_and_only_what_one_had_moves(two_managers):
    """The one that stood by takes over; the third keeps what it has, without loading it anew."""
    place, clients = two_managers
    workers = {name: place.worker(name, ready=False) for name in "abc"}
    place.wait_for_worker(120)
    sessions = [client.open("TRANSACTED") for client in clients]
    for session in sessions:
        put_and_commit(session)
    owners = {}
    limit = time.monotonic() + 60
    while len(owners) < 2 or len(set(owners.values())) < 2:
        assert time.monotonic() < limit, "\n".join(one.log for one in workers.values())
        owners = {
            number: next(name for name in workers if f'"worker":"{name}"' in document)
            for number, document in enumerate(
                client.ask("QUEUE_MANAGER", wait_seconds=60)["document"] for client in clients
            )
        }
    kept = workers[owners[1]]
    loads = kept.log.count("state loaded")
    workers[owners[0]].kill()
    for session in sessions:
        session.reply(session.write(op.Alive), 120)
        put_and_commit(session)
    assert kept.log.count("state loaded") == loads
    check_history(place)


def test_a_worker_that_lacks_the_active_version_leaves_that_queue_manager_to_one_that_knows_it(
    two_managers, monkeypatch
):
    """Its other queue managers go on where they are; the newer worker folds both versions (H3)."""
    monkeypatch.setattr(apply_module, "PROTOCOL_VERSION", 2)
    place, clients = two_managers
    old = place.worker("old")
    sessions = [client.open("TRANSACTED") for client in clients]
    for session in sessions:
        put_and_commit(session)
    clients[0].write(VersionOffered(worker="new", version=2))
    upgrade = sessions[0].write(op.Upgrade, version=2)
    sessions[0].reply(upgrade)
    alive = sessions[0].write(op.Alive)
    clients[0].flush()
    old.wait_for_log("QM1 is left to a worker that knows its version", 120)
    assert "protocol version 2 is active, this worker knows 1" in old.log
    put_and_commit(sessions[1])
    new = place.worker("new", ready=False, version=2)
    sessions[0].reply(alive, 120)
    put_and_commit(sessions[0])
    put_and_commit(sessions[1])
    assert new.log.count("QM1: state loaded") == 1
    assert old.code is None
    assert old.stop() == 0
    new.wait_for_log("QM2: state loaded", 120)
    for session in sessions:
        put_and_commit(session)
    check_history(place)


def test_an_upgrade_while_old_and_new_workers_run_changes_hands_without_a_loss(place, monkeypatch):
    """The old worker has nothing else: it ends with code 4 and says why; the new one goes on."""
    monkeypatch.setattr(apply_module, "PROTOCOL_VERSION", 2)
    old = place.worker("old")
    new = place.worker("new", ready=False, version=2)
    new.wait_for_log("stands by", 120)
    client = place.client(0)
    traffic = Traffic(client, place.client(1))
    traffic.run(5)
    session = place.client(0).open("TRANSACTED")
    session.client.write(VersionOffered(worker="new", version=2))
    session.write(op.Upgrade, version=2)
    session.client.flush()
    traffic.run(5)
    assert old.wait(120) == 4
    assert "protocol version 2 is active, this worker knows 1" in old.log
    new.wait_for_log("QM1: state loaded", 120)
    traffic.run(5)
    traffic.settle()
    check_history(place)
