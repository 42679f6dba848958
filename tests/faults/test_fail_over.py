"""Clients and workers that are given several addresses, some of which do not answer (F3)."""

import asyncio
import json
import socket

import pytest

import ledgermq
from ledgermq import aio
from ledgermq.cli.main import main
from support.brokers.worker_process import new_place
from support.clusters.kafka_cluster import NODES, KafkaCluster
from support.faults import nemesis
from support.faults.stage import Stage
from support.faults.suite import Suite

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def closed_address():
    """An address at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@pytest.fixture
def place_with_a_dead_address(broker, tmp_path):
    """An installation of which the first address that everybody is given does not answer."""
    found = new_place(broker.bootstrap, tmp_path)
    found.bootstrap = f"{closed_address()},{broker.bootstrap}"
    yield found
    found.close()


def test_one_address_that_answers_is_enough(place_with_a_dead_address, capsys):
    """For worker, client, asyncio and command line; where none does, the error names them all."""
    place = place_with_a_dead_address
    place.worker()
    with place.connect() as connection, connection.session() as session:
        session.producer("queue:a").send("over the second address")

    async def receive():
        async with (
            aio.connect(place.address, topic_prefix=place.topics.prefix) as connection,
            connection.session() as session,
            session.consumer("queue:a") as consumer,
        ):
            return (await consumer.receive(20)).body

    assert asyncio.run(receive()) == "over the second address"
    options = ["--bootstrap", place.bootstrap, "--topic-prefix", place.topics.prefix, "--json"]
    assert main(["queue", "list", *options]) == 0
    assert json.loads(capsys.readouterr().out)[0]["name"] == "a"
    dead = f"{closed_address()},{closed_address()}"
    with pytest.raises(ledgermq.BrokerUnavailableError, match=dead):
        ledgermq.connect(f"kafka://{dead}/QM1", timeout=2)


@pytest.mark.timeout(900)
def test_faults_under_load_are_but_a_delay_to_clients_of_every_kind(tmp_path):
    """A short `make faults`: AUTO, CLIENT, transacted, groups, asyncio; nothing lost or doubled."""
    faults = (
        *(nemesis.kill_broker, nemesis.kill_worker, nemesis.drain_worker),
        *(nemesis.mislead_worker, nemesis.write_bad_records),
    )
    (tmp_path / "disk").mkdir()
    stage = Stage(tmp_path, seed=5)
    try:
        suite = Suite(stage, faults, print)
        for _ in faults:
            suite.round()
        counts = suite.end().counts
    finally:
        stage.close()
    assert counts["messages put"] > 50
    assert counts["messages taken"] >= counts["messages put"]


@pytest.mark.long
def test_the_loss_of_each_node_of_a_cluster_in_turn_is_but_a_delay(tmp_path):
    """The node that leads the ledger is killed first; nothing confirmed is lost, no error shows."""
    with KafkaCluster(tmp_path / "cluster") as cluster:
        place = new_place(cluster.bootstrap, tmp_path)
        try:
            for name in ("a", "b"):
                place.worker(name, ready=False, CHECKPOINT_SECONDS=1)
            place.wait_for_worker(180)
            sent = received = 0
            with (
                place.connect(timeout=180) as connection,
                connection.session() as sending,
                connection.session(transacted=True) as taking,
            ):
                producer = sending.producer("queue:a")
                consumer = taking.consumer("queue:a")
                leader = cluster.leader_of(place.topics.operations)
                for node in sorted(NODES, key=lambda one: one != leader):
                    for killed in (False, True, False):
                        if killed:
                            cluster.kill(node)
                        for _ in range(20):
                            producer.send(f"{sent}")
                            sent += 1
                            message = consumer.receive(180)
                            assert message.body == f"{received}"
                            received += 1
                            taking.commit()
                    cluster.start(node)
                    cluster.wait_until_whole()
                assert connection.admin.queue_status("a").message_count == 0
        finally:
            place.close()
