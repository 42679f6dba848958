"""One Spark session for all tests of the Spark jobs, and one judgement of many logs."""

import os
from collections import defaultdict
from contextlib import chdir
from unittest.mock import patch

import pytest

from ledgermq_spark.laws.all_laws import LAWS
from ledgermq_spark.log.machine import MEMORY_VARIABLE
from ledgermq_spark.log.session import spark_session
from support.audits.engines import duck_engine
from support.audits.lawful_logs import lawful_logs
from support.audits.tampered_logs import tampered_logs
from support.checkout import ROOT


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A local Spark session with the Kafka connector, tuned for logs of a few hundred records."""
    # Python's processes find what tests define below the directory in which Spark was started,
    # which the first test that asks for it may have left.
    with chdir(ROOT), patch.dict(os.environ, {MEMORY_VARIABLE: "2500m"}):
        session = spark_session(
            directory=tmp_path_factory.mktemp("spark"),
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


@pytest.fixture(scope="session")
def scripts():
    """Return every story and random log by its name."""
    return lawful_logs()


@pytest.fixture(scope="session")
def all_logs(scripts):
    """Return the rows of all of them, and of those in which something breaks a law."""
    logs = tampered_logs()
    for name, script in scripts.items():
        logs.fold(name, script.entries)
    return logs


@pytest.fixture(scope="session")
def facts(all_logs):
    """Return the frames of all these logs."""
    return all_logs.facts(duck_engine())


@pytest.fixture(scope="session")
def broken(facts):
    """Return what breaks a law in each of these logs: law, position, summary.

    Laws are asked once for all: that takes as long for many logs as for one.
    """
    found = defaultdict(list)
    for row in facts.judge(LAWS):
        found[row["queue_manager"]].append((row["law"], row["position"], row["summary"]))
    return found
