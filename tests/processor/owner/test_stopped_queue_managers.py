"""A queue manager that is damaged stops alone: the others of its worker go on (H14)."""

import json
from types import SimpleNamespace

import pytest

from ledgermq.errors import WorkerUnavailableError
from ledgermq.protocol import operations as op
from ledgermq.protocol.outcomes import Accepted
from ledgermq.wire.framing.codec import encode_chunk
from ledgermq.wire.topics.identity import log_identity
from ledgermq.wire.topics.log_topics import lane_partition
from ledgermq.wire.topics.registry import Claim, claim_queue_manager
from support.brokers import topic_surgery as surgery
from support.brokers.raw_client import RawClient
from support.brokers.scraping import scrape
from support.checks.history import check_history

pytestmark = pytest.mark.kafka

STOPPED = "queue-manager-stopped"


def put(client, count=1):
    """Puts messages in a unit of work, which is committed: the queue manager is served."""
    session = client.open()
    session.put("queue:a", count)
    session.do(op.Commit, deliveries=[], puts=count)


def cut(place, claim=None):
    """Lets a lane of QM1, or of another one, tell of a position that its log does not have."""
    told = Accepted(position=9_999, index=0, session=0, session_sequence=1)
    name, partition, lanes = claim or place.claim
    lane = Claim(name, lane_partition(partition, lanes, 0), lanes)
    where = SimpleNamespace(bootstrap=place.bootstrap, claim=lane)
    surgery.write(where, place.topics.outcomes, None, encode_chunk(-1, -2, [told], bytes(32)))


def exchange(place):
    """Makes the newest checkpoint of QM1 one of another log."""
    surgery.rewrite_manifest(place, cluster_id="another")


@pytest.fixture
def other(wide_place):
    """A client of QM2, which is served beside QM1; both have a checkpoint."""
    place = wide_place
    claim = claim_queue_manager(place.bootstrap, place.topics, "QM2", lanes=place.lanes)
    worker = place.worker("first")
    found = RawClient(place.bootstrap, place.topics, claim)
    place.clients.append(found)
    put(place.client(), 3)
    put(found, 3)
    assert worker.stop() == 0
    return found


@pytest.mark.parametrize(("damage", "code"), [(cut, "log-cut"), (exchange, "checkpoint-mismatch")])
def test_one_that_is_damaged_stops_alone_and_goes_on_when_it_is_mended(
    wide_place, other, damage, code, capsys
):
    """Log, metrics, health and commands say why; to mend it, no worker has to stop."""
    place = wide_place
    damage(place)
    worker = place.worker("second", WEB_PORT=0)
    worker.wait_for_log(f"QM1 is stopped [{code}]: ")
    put(other)
    shown = scrape(worker)
    assert shown("queue_manager_stopped", code=code) == 1
    capsys.readouterr()
    assert place.command("queue", "list", "--json") == 3
    told = json.loads(capsys.readouterr().err)["error"]
    assert told["code"] == STOPPED
    assert f"it is stopped [{code}]: QM1: " in told["message"]
    assert place.command("check", "cluster") == 3
    assert f"[{code}]" in " ".join(capsys.readouterr().out.split())
    assert place.command("doctor") == 4
    assert place.command("checkpoint", "discard", "--queue-manager", "QM2", "--yes") == 1
    assert place.command("checkpoint", "discard", "--yes") == 0
    worker.wait_for_log("QM1 is served again", 90)
    assert scrape(worker)("queue_manager_stopped", code=code) is None
    put(place.client(), 2)
    put(other)
    assert worker.code is None
    assert "Traceback" not in worker.log
    check_history(place)


def test_one_that_is_damaged_costs_no_other_worker(wide_place, other):
    """Who stands by goes on to; when it takes over, it serves the other, and stops that one too."""
    place = wide_place
    cut(place)
    first = place.worker("second")
    first.wait_for_log("QM1 is stopped [log-cut]")
    second = place.worker("third", ready=False)
    second.wait_for_log("stands by")
    put(other)
    first.kill()
    second.wait_for_log("QM1 is stopped [log-cut]")
    put(other)
    assert second.code is None


def test_answers_of_one_that_is_stopped_do_not_hide_why_it_is(wide_place, other):
    """They stand on the lane behind the outcome that tells of it, however many they are."""
    place = wide_place
    cut(place)
    worker = place.worker("second")
    worker.wait_for_log("QM1 is stopped [log-cut]")
    asking = place.client()
    assert {asking.ask("QUEUE_MANAGER")["reason"] for _ in range(50)} == {STOPPED}
    worker.wait_for_count("QM1 is stopped [log-cut]", 2)
    assert worker.stop() == 0
    worker = place.worker("third")
    worker.wait_for_log("QM1 is stopped [log-cut]")
    put(other)


def test_a_client_learns_why_its_queue_manager_is_stopped(wide_place, other):
    """It does not connect, as where no worker runs; the error has the reason."""
    place = wide_place
    cut(place)
    place.worker("second").wait_for_log("QM1 is stopped [log-cut]")
    with pytest.raises(WorkerUnavailableError) as told:
        place.connect(timeout=4.0)
    assert told.value.code == STOPPED
    assert "[log-cut]" in str(told.value)


def test_a_session_waits_and_goes_on_when_its_queue_manager_is_mended(wide_place, other):
    """What it asks to catch up stays without an answer; a refusal would end its connection."""
    place = wide_place
    worker = place.worker("second")
    with place.connect(timeout=90.0, suspect_timeout_seconds=45) as connection:
        session = connection.session(ack="CLIENT")
        session.producer("queue:b").send("held")
        held = session.consumer("queue:b").receive(20)
        asking = place.client()
        assert worker.stop() == 0
        exchange(place)
        worker = place.worker("third")
        worker.wait_for_log("QM1 is stopped [checkpoint-mismatch]")
        number = asking.ask_only("RESYNC")
        assert asking.ask("QUEUE_MANAGER")["reason"] == STOPPED
        assert number not in asking.answers
        here = log_identity(place.bootstrap, place.topics.operations, 20)
        surgery.rewrite_manifest(place, cluster_id=here.cluster_id)
        held.acknowledge()
        assert connection.admin.queue_status("b").message_count == 0
    put(other)


def test_a_worker_ends_where_all_of_its_queue_managers_are_damaged(wide_place, other):
    """Whoever watches it sees that, as of one that has but one queue manager."""
    place = wide_place
    cut(place)
    cut(place, other.claim)
    worker = place.worker("second", ready=False)
    assert worker.wait() == 4
    assert "QM1: " in worker.log
    assert "QM2: " in worker.log
