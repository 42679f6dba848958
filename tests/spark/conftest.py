"""One Spark session for all tests of the Spark jobs."""

import pytest

from ledgermq_spark.log.session import spark_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A local Spark session with the Kafka connector, tuned for logs of a few hundred records."""
    session = spark_session(
        directory=tmp_path_factory.mktemp("spark"),
        driver_memory="1500m",
        log_level="ERROR",
        # Compiling code costs more here than it could win: for Java, and below for Spark.
        brief=True,
        java_options="-XX:+UseSerialGC -XX:MetaspaceSize=256m -Xms1500m -Xmn900m",
    )
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session.conf.set("spark.sql.constraintPropagation.enabled", "false")
    yield session
    session.stop()


@pytest.fixture
def without_laws(monkeypatch):
    """The audit asks no laws: they are most of its time, and other tests are about them."""
    monkeypatch.setattr("ledgermq_spark.audit.audit.breaches", lambda _facts, _laws: ([], []))
