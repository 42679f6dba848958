"""Tests of Spark jobs on a broker with TLS, users and an authorizer."""

import pytest

from ledgermq.errors import AccessDeniedError
from ledgermq_spark.jobs.run import run_audit
from ledgermq_spark.log.positions import partition_ranges
from ledgermq_spark.log.read_log import read_raw
from ledgermq_spark.rebuild.rebuild import rebuild_at
from support.brokers.secured_installation import secured_installation

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture(scope="module")
def used(tmp_path_factory):
    """A secured installation on which a client put and got; a queue with one message left."""
    with secured_installation(tmp_path_factory.mktemp("secured")) as installation:
        with installation.connect("client") as connection, connection.session() as session:
            for number in range(3):
                session.producer("queue:orders").send({"number": number})
            consumer = session.consumer("queue:orders")
            assert [consumer.receive(timeout=60).body["number"] for _ in range(2)] == [0, 1]
        yield installation


@pytest.fixture(params=["password", "certificate"])
def auditor(request, used, monkeypatch):
    """The address for an auditor, whose options the environment has."""
    by_certificate = request.param == "certificate"
    options = used.broker.by_certificate("auditor") if by_certificate else used.options("auditor")
    variables = used.variables(options)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return variables["LEDGERMQ_BOOTSTRAP"]


def test_an_auditor_rebuilds_and_audits_with_the_rights_printed(spark, used, auditor, capfd):
    """Reading the log is all it takes, and no secret is in what Spark says or explains."""
    rebuilt = rebuild_at(auditor, "QM1", spark=spark)
    report = run_audit(auditor, "QM1", spark=spark)
    assert report.verdict == "agrees"
    assert report.position >= rebuilt.position
    (log,) = partition_ranges(auditor, "ledgermq.operations", [0])
    read_raw(spark, auditor, [log]).explain(extended=True)
    said = "".join(capfd.readouterr()) + repr(report.as_dict())
    for secret in (*used.passwords.values(), "PRIVATE KEY", "BEGIN CERTIFICATE"):
        assert secret not in said


def test_an_auditor_without_one_of_its_rights_is_told_which(used, monkeypatch):
    """The right to read is missed before Spark begins, hidden topics and others alike."""
    for name, value in used.variables(used.options("auditor")).items():
        monkeypatch.setenv(name, value)
    where = f"127.0.0.1:9,{used.broker.scram_bootstrap}"
    hidden = used.variables(used.options("worker"))
    with pytest.raises(AccessDeniedError, match=r"Read on topic ledgermq.questions"):
        partition_ranges(where, "ledgermq.questions", [0])
    for name, value in hidden.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(AccessDeniedError, match=r"user worker Read on topic ledgermq.outcomes"):
        partition_ranges(where, "ledgermq.outcomes", [0])
