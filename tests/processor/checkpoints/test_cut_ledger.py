"""A ledger that is older than what clients were told: refused until it is declared right (H14)."""

import shutil

import pytest

from ledgermq.protocol import operations as op
from ledgermq.protocol.answers import Answer
from ledgermq.protocol.outcomes import Accepted
from ledgermq.wire.framing.answers import encode_answer
from ledgermq.wire.framing.codec import encode_chunk
from ledgermq.wire.topics.log_topics import ensure_topics
from ledgermq.wire.topics.reading import PartitionReader
from support.brokers import topic_surgery as surgery
from support.brokers.worker_process import new_place
from support.checks.history import check_history, read_partition

pytestmark = pytest.mark.kafka


def put(session, count):
    """Puts messages in a unit of work, which is committed."""
    session.put("queue:a", count)
    session.do(op.Commit, deliveries=[], puts=count)


def put_back(place, records):
    """Makes the ledger one of these records."""
    surgery.delete_topic(place, place.topics.operations)
    ensure_topics(place.bootstrap, place.topics, partitions=place.partitions, lanes=place.lanes)
    for record in records:
        headers = record.headers()
        surgery.write(place, record.topic(), record.key(), record.value(), headers=headers)


def wait_for_leader(place):
    """Waits until a broker that came up answers for the ledger."""
    with PartitionReader(place.bootstrap, 30.0) as reader:
        reader.ends(place.topics.operations, 0)


def keep_copy(broker, files, copy):
    """Copies what is on the disk of a broker now; it is stopped meanwhile."""
    broker.stop()
    shutil.copytree(files, copy)
    broker.start()


def put_copy_back(broker, files, copy):
    """Lets a broker have what it had before."""
    broker.stop()
    shutil.rmtree(files)
    shutil.copytree(copy, files)
    broker.start()


@pytest.mark.parametrize("kept", [0, -1])
def test_a_ledger_that_ends_before_what_lanes_tell_stops_the_start_until_it_is_declared_right(
    place, capsys, kept
):
    """Nothing of it, or all but the last entry; new operations would get positions of others."""
    worker = place.worker("first", CHECKPOINT_SECONDS=3600)
    put(place.client().open(), 3)
    worker.kill()
    records = read_partition(place.bootstrap, place.topics.operations, 0)
    put_back(place, records[:kept])
    highest = len(records) - 1
    refused = place.worker("second", ready=False)
    assert refused.wait() == 4
    assert (f"ends at position {highest - 1}, but" if kept else "is empty, but") in refused.log
    assert f"has an outcome of position {highest}: " in refused.log
    assert "Traceback" not in refused.log
    assert place.command("doctor") == 4
    assert f"has an outcome of position {highest}: " in " ".join(capsys.readouterr().out.split())
    assert place.command("checkpoint", "discard", "--yes") == 0
    place.worker("third")
    put(place.client().open(), 2)
    check_history(place)


def test_a_ledger_that_grew_anew_below_what_lanes_tell_stops_the_worker_before_it_tells_more(
    place, capsys
):
    """As where clients went on while no worker would run on a ledger that had lost its end.

    Where it is trimmed, checkpoints have to stay, and outcomes alone are discarded.
    """
    worker = place.worker("first", CHECKPOINT_SECONDS=3600)
    client = place.client()
    session = client.open()
    put(session, 3)
    assert client.ask("CHECKPOINT")["reason"] == ""
    put(session, 2)
    worker.kill()
    last = len(read_partition(place.bootstrap, place.topics.operations, 0)) - 1
    told = Accepted(position=last, index=0, session=0, session_sequence=1)
    for value in (encode_chunk(-1, -2, [told], bytes(32)), encode_answer(1, last, 0, Answer())):
        surgery.write(place, place.topics.outcomes, None, value)
    before = read_partition(place.bootstrap, place.topics.outcomes, 0)
    refused = place.worker("second", ready=False)
    assert refused.wait() == 4
    assert f"the log up to position {last} is not the one whose outcomes" in refused.log
    assert len(read_partition(place.bootstrap, place.topics.outcomes, 0)) == len(before)
    surgery.delete_records(place, place.topics.operations, 0, 1)
    assert place.command("checkpoint", "discard", "--yes") == 1
    assert "`ledgermq checkpoint discard --outcomes`" in capsys.readouterr().err
    assert place.command("checkpoint", "discard", "--outcomes", "--yes") == 0
    assert "(from a checkpoint)" in place.worker("third").log


@pytest.mark.slow
def test_a_trimmed_ledger_that_lost_its_end_goes_on_from_the_checkpoint_that_belongs_to_it(
    own_broker, tmp_path, capsys
):
    """What the worker asks for when it refuses to start is what helps."""
    place = new_place(own_broker.bootstrap, tmp_path)
    worker = place.worker("first", CHECKPOINT_SECONDS=3600)
    client = place.client()
    put(client.open(), 3)
    kept = client.ask("CHECKPOINT")["position"]
    place.close()
    files = own_broker.directory / "data" / f"{place.topics.operations}-0"
    keep_copy(own_broker, files, tmp_path / "older")
    worker = place.worker("second", CHECKPOINT_SECONDS=3600)
    client = place.client()
    put(client.open(), 2)
    lost = client.ask("CHECKPOINT")["position"]
    surgery.delete_records(place, place.topics.operations, 0, kept)
    place.close()
    put_copy_back(own_broker, files, tmp_path / "older")
    wait_for_leader(place)
    surgery.delete_records(place, place.topics.operations, 0, kept)
    refused = place.worker("third", ready=False)
    assert refused.wait() == 4
    assert f"the checkpoint at position {lost} is not of this log: " in refused.log
    assert "`ledgermq checkpoint discard --queue-manager QM1 --yes`" in refused.log
    assert place.command("checkpoint", "discard", "--yes") == 0
    assert "1 checkpoint of QM1 discarded" in capsys.readouterr().out
    worker = place.worker("fourth")
    assert f"state loaded at position {kept} (from a checkpoint)" in worker.log
    client = place.client()
    put(client.open(), 1)
    assert client.ask("QUEUE", queue="a")["reason"] == ""
    place.close()


@pytest.mark.slow
def test_a_trimmed_ledger_whose_lanes_lost_their_end_goes_on_from_its_newest_checkpoint(
    own_broker, tmp_path
):
    """As after a loss of power: operations are flushed, and outcomes are not.

    Whoever waited for an outcome asks for it, and the state has it.
    """
    place = new_place(own_broker.bootstrap, tmp_path, lanes=1)
    place.worker("first", CHECKPOINT_SECONDS=3600).stop()
    files = own_broker.directory / "data" / f"{place.topics.outcomes}-0"
    keep_copy(own_broker, files, tmp_path / "older")
    worker = place.worker("second", CHECKPOINT_SECONDS=3600)
    with place.connect() as connection, connection.session(transacted=True) as session:
        for _ in range(3):
            session.producer("queue:a").send("kept")
            session.commit()
            newest = connection.admin.checkpoint().position
        needed = connection.admin.log_pins().needed_position
        surgery.delete_records(place, place.topics.operations, 0, needed)
        worker.kill()
        put_copy_back(own_broker, files, tmp_path / "older")
        worker = place.worker("third")
        assert f"state loaded at position {newest} (from a checkpoint)" in worker.log
        assert "outcomes were lost" in worker.log
        assert session.consumer("queue:a").receive(20).body == "kept"
        session.commit()
        assert connection.admin.queue_status("a").message_count == 2
    place.close()


def test_a_trimmed_ledger_to_which_no_checkpoint_belongs_is_said_to_need_a_backup(place, capsys):
    """Nothing is taken away then, and nothing is advised that would not help."""
    worker = place.worker("first", CHECKPOINT_SECONDS=3600)
    client = place.client()
    put(client.open(), 3)
    assert client.ask("CHECKPOINT")["reason"] == ""
    worker.stop()
    put_back(place, read_partition(place.bootstrap, place.topics.operations, 0))
    surgery.delete_records(place, place.topics.operations, 0, 2)
    assert place.command("checkpoint", "discard", "--yes") == 1
    assert "none of the checkpoints belongs to the log" in capsys.readouterr().err
    assert place.command("doctor") == 4
    assert "so no worker can start: restore" in " ".join(capsys.readouterr().out.split())
    assert place.worker("second", ready=False).wait() == 4


@pytest.mark.parametrize("answers", [0, 12])
def test_a_ledger_that_grew_anew_is_refused_again_and_again(place, answers):
    """Nothing is told of it, also below what is looked at of the lanes: that would speak for it.

    Answers, which say nothing of what was folded, do not hide what does.
    """
    worker = place.worker("first", CHECKPOINT_SECONDS=3600)
    client = place.client()
    session = client.open()
    for _ in range(25):
        session.put("queue:a", 1)
        session.do(op.Commit, deliveries=[], puts=1)
    for _ in range(answers):
        client.ask("QUEUE", queue="a")
    worker.kill()
    records = read_partition(place.bootstrap, place.topics.operations, 0)
    put_back(place, [*records[:6], *records[10:], *records[10:]])
    before = len(read_partition(place.bootstrap, place.topics.outcomes, 0))
    for name in ("second", "third"):
        refused = place.worker(name, ready=False, SLICE_RECORDS=1)
        assert refused.wait() == 4
        assert "is not the one whose outcomes clients were told" in refused.log
        assert len(read_partition(place.bootstrap, place.topics.outcomes, 0)) == before


def test_what_is_no_outcome_of_a_worker_on_a_lane_stops_no_start(place):
    """Nor does a lane that is empty, and a log whose beginning was cut."""
    worker = place.worker("first")
    client = place.client()
    put(client.open(), 3)
    assert client.ask("CHECKPOINT")["reason"] == ""
    assert worker.stop() == 0
    for value in (b"", None, b"garbage", encode_chunk(-1, -2, [], bytes(32))):
        surgery.write(place, place.topics.outcomes, None, value)
    end = len(read_partition(place.bootstrap, place.topics.operations, 0))
    surgery.delete_records(place, place.topics.operations, 0, end - 1)
    assert "(from a checkpoint)" in place.worker("second").log
