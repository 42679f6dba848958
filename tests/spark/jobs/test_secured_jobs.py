"""Tests of Spark jobs on a broker with TLS, users and an authorizer."""

import pytest

from ledgermq.errors import AccessDeniedError
from ledgermq.wire.topics.address import AddressError
from ledgermq_spark.jobs.run import run_audit
from ledgermq_spark.log.positions import partition_ranges
from ledgermq_spark.log.read_log import read_raw
from ledgermq_spark.log.spark_options import spark_options
from ledgermq_spark.rebuild.rebuild import rebuild_at
from support.brokers.secured_broker import FOR_JAVA
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


@pytest.fixture
def given(used, monkeypatch):
    """Sets the options of a user in the environment; returns the addresses of the broker."""

    def give(options):
        variables = used.variables(options)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return variables["LEDGERMQ_BOOTSTRAP"]

    return give


def test_an_auditor_with_a_password_reads_the_log(spark, used, given, capfd):
    """Operations and outcomes are there, and no secret is in what Spark says or explains."""
    where = given(used.options("auditor"))
    (log,) = partition_ranges(where, "ledgermq.operations", [0])
    frame = read_raw(spark, where, [log])
    assert frame.count() == log.end - log.start > 0
    lanes = partition_ranges(where, "ledgermq.outcomes", [0, 1, 2, 3])
    assert read_raw(spark, where, lanes).count() == sum(one.end - one.start for one in lanes) > 0
    frame.explain(extended=True)
    said = "".join(capfd.readouterr())
    assert "offset" in said
    for secret in (*used.passwords.values(), "BEGIN CERTIFICATE"):
        assert secret not in said


@pytest.mark.long
def test_an_auditor_audits_with_the_rights_printed(spark, used, given):
    """Reading the log is all that an audit takes; no secret is in its report."""
    report = run_audit(given(used.options("auditor")), "QM1", spark=spark)
    assert report.verdict == "agrees"
    assert not [one for one in used.passwords.values() if one in repr(report.as_dict())]


@pytest.mark.parametrize("password", ["", "secret-of-key"])
def test_an_auditor_with_a_certificate_reads_the_log(spark, used, given, password):
    """Certificate and key, encrypted or not, reach Spark as texts, and rebuild what is there."""
    where = given(used.broker.by_certificate("auditor", password, FOR_JAVA))
    (log,) = partition_ranges(where, "ledgermq.operations", [0])
    assert read_raw(spark, where, [log]).count() == log.end - log.start > 0
    assert rebuild_at(where, "QM1", spark=spark).position == log.end - 1


def test_a_key_that_java_cannot_read_is_refused_in_words(used, given):
    """OpenSSL's own encryption; the text has the command that helps."""
    given(used.broker.by_certificate("auditor", "secret-of-key"))
    with pytest.raises(AddressError, match="openssl pkcs8 -topk8 -v1 PBE-SHA1-3DES"):
        spark_options()


def test_a_reader_without_its_right_is_told_which(used, given):
    """The right to read is missed before Spark begins, for hidden topics and others alike."""
    where = given(used.options("auditor"))
    with pytest.raises(AccessDeniedError, match=r"user auditor Read on topic ledgermq.questions"):
        partition_ranges(where, "ledgermq.questions", [0])
    where = given(used.options("client"))
    with pytest.raises(AccessDeniedError, match=r"user client Read on topic ledgermq.operations"):
        partition_ranges(where, "ledgermq.operations", [0])
