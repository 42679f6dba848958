"""Trimming: what is needed is not cut, the rest goes, and the audit says what it cannot prove."""

from __future__ import annotations

import pytest

import ledgermq
from ledgermq.cli.commands.log import PINS_SHOWN
from ledgermq.processor.worker.supervisor import running_installation

pytestmark = pytest.mark.kafka

MESSAGES = 6
KEPT = 2


def work(connection: ledgermq.Connection, queue: str = "busy") -> None:
    """Some operations, and a checkpoint that covers them."""
    with connection.session() as session:
        session.producer(f"queue:{queue}").send("x")
        message = session.consumer(f"queue:{queue}").receive(timeout=30)
        assert message is not None
        message.acknowledge()
    connection.admin.checkpoint()


@pytest.mark.long
def test_a_log_is_cut_only_below_what_is_needed_and_the_rest_is_unproven(
    plain, installation, connected
):
    """A live message pins the log, then checkpoints do; after the cut nothing is said to be lost.

    (H25)
    """
    run = {"plain": plain, "bootstrap": installation}
    with connected(installation) as connection:
        with connection.session(ack=ledgermq.AckMode.INDIVIDUAL) as session:
            producer = session.producer("queue:orders")
            for number in range(MESSAGES):
                producer.send(str(number))
            consumer = session.consumer("queue:orders")
            messages = [consumer.receive(timeout=30) for _ in range(MESSAGES)]
            for number, message in enumerate(messages):
                if number != KEPT:
                    message.acknowledge()
        for _ in range(4):
            work(connection)
        pins = connection.admin.log_pins()
        assert [(one.destination, one.sequence) for one in pins.pins] == [("queue:orders", KEPT)]
        needed = pins.needed_position
        assert needed == pins.pins[0].put_position

        refused = trim(**run, before=needed + 1, more=["--dry-run"])
        assert refused.code == 1
        assert refused.document["furthest"] == needed
        (pin,) = refused.document["pins"]
        assert (pin["destination"], pin["sequence"], pin["needed_position"]) == (
            *("queue:orders", KEPT),
            needed,
        )
        refused = trim(**run, before=needed + 1, more=["--yes"])
        assert (refused.code, refused.error["code"]) == (1, "trim-refused")
        named = f"message {KEPT} of queue:orders, put at position {needed}"
        assert named in refused.error["message"]

        with connection.session() as session:
            message = session.consumer("queue:orders").receive(timeout=30)
            assert message is not None
            message.acknowledge()
        for _ in range(4):
            work(connection)
        end = connection.admin.checkpoint().position + 1
        refused = trim(**run, before=end, more=["--yes"])
        assert (refused.code, refused.error["code"]) == (1, "trim-refused")
        assert "the checkpoint at position" in refused.error["message"]

        furthest = trim(**run, before=end, more=["--dry-run"]).document["furthest"]
        assert needed < furthest < end
        assert trim(**run, before=furthest, more=["--dry-run"]).code == 0
        assert trim(**run, before=furthest).code == 2
        done = trim(**run, before=furthest, more=["--yes"])
        assert (done.code, done.document["trimmed"]) == (0, True)
        assert trim(**run, before=furthest, more=["--yes"]).document["trimmed"] is False
        work(connection, "after")
    check_what_is_left(plain, installation, furthest)


def test_a_worker_starts_on_a_trimmed_log_and_delivers_what_is_left(plain, directory, connected):
    """The state comes from a checkpoint, which is not discarded; bodies are read back."""
    with running_installation(directory) as bootstrap, connected(bootstrap) as connection:
        for _ in range(3):
            work(connection)
        with connection.session() as session:
            session.producer("queue:orders").send("kept")
        for _ in range(4):
            work(connection)
        needed = connection.admin.log_pins().needed_position
        done = trim(plain, bootstrap, before=needed, more=["--yes"])
        assert done.code == 0, done.err
    discarded = plain("checkpoint", "discard", "--json", "--data-dir", directory, "--yes")
    assert (discarded.code, discarded.error["code"]) == (1, "log-incomplete")
    with (
        running_installation(directory) as bootstrap,
        connected(bootstrap) as connection,
        connection.session() as session,
    ):
        message = session.consumer("queue:orders").receive(timeout=30)
        assert message is not None
        assert message.body == "kept"


def test_a_refusal_says_that_more_is_in_the_way_than_it_names(plain, installation, connected):
    """Of many live messages it looks at the oldest: it once said that these were all."""
    with connected(installation) as connection:
        with connection.session() as session:
            producer = session.producer("queue:orders")
            for number in range(PINS_SHOWN + 5):
                producer.send(str(number))
        connection.admin.checkpoint()
        pins = connection.admin.log_pins()
        end = pins.position + 1
    one = trim(plain, installation, before=pins.needed_position + 1, more=["--dry-run"]).document
    assert (len(one["pins"]), one["more"]) == (1, False)
    refused = trim(plain, installation, before=end, more=["--dry-run"]).document
    assert refused["more"]
    told = trim(plain, installation, before=end, more=["--yes"]).error["message"]
    assert f" and at least {len(refused['pins']) - 1} others need what lies below" in told


def trim(plain, bootstrap, *, before, more=()):
    """The trim command with --json."""
    return plain("log", "trim", "--json", "--bootstrap", bootstrap, "--before", before, *more)


def check_what_is_left(plain, bootstrap, furthest):
    """The audit says from where its proof reaches."""
    shown = plain("chain", "show", "--json", "--bootstrap", bootstrap).document
    assert shown["computed_from"] > furthest
    anchor = shown["anchor"]
    audit = plain("audit", "--json", "--bootstrap", bootstrap, "--anchor", anchor)
    assert audit.code == 5, audit.out + audit.err
    report = audit.document
    assert (report["verdict"], report["anomalies"]) == ("unproven", [])
    assert f"begins at position {furthest}" in report["unproven"][0]
    assert any(one.startswith("INF-19 conservation: ") for one in report["notes"])
    check_tables(plain, bootstrap)
    proof = report["chain_proof"]
    # The checkpoints that were kept when the log was cut have made room for younger ones since.
    assert proof["start"] >= furthest
    assert f"reaches from position {proof['start'] + 1} on" in report["unproven"][0]
    assert proof["agreeing"] == proof["anchors"] > 0
    assert proof["counts"]["given"] == 1
    assert report["compared"]["outcomes"] > 0
    proven = report["proven"]
    assert (proven["since"], proven["laws"]) == (proof["start"] + 1, [])
    assert f"the checkpoint at position {proof['start']}" in proven["start"]


def check_tables(plain, bootstrap):
    """What needs the whole log is refused before Spark is started, which takes long."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("ledgermq.cli.options.facts.spark_job", None)
        for command in (
            ("sql", "SELECT 1 AS one"),
            ("trace", "0" * 32),
            ("trace", "--correlation-id", "c"),
            ("tables", "write", "never-made"),
        ):
            refused = plain(*command, "--json", "--bootstrap", bootstrap)
            assert (refused.code, refused.error["code"]) == (1, "position-out-of-range")
            assert "an archive of it may have that (--archive)" in refused.error["message"]
    assert plain("sql", "SHOW TABLES", "--bootstrap", bootstrap).code == 0
