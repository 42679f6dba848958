"""A log on the broker and an archive of it that was added to twice, for all tests of archives."""

from dataclasses import replace

import pytest

from support.audits.archives import archive
from support.brokers.broker_logs import write
from support.brokers.log_writer import Script
from support.planted.planting import conversation
from support.random_logs.random_log import RandomLog


@pytest.fixture(scope="package")
def log(broker):
    """A conversation, then whatever comes at random."""
    script = Script(step_us=0)
    conversation(script, "talk")
    RandomLog(script, topics=True).grow(150)
    plain = [replace(one, stamp=1, wait_seconds=0.0) for one in script.entries]
    return write(broker.bootstrap, plain)


@pytest.fixture(scope="package")
def path(spark, log, tmp_path_factory):
    """The archive of the whole log, in stretches that are shorter at the ends."""
    path = tmp_path_factory.mktemp("archive")
    archive(spark, log, path)
    return path
