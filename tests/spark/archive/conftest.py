"""A log on the broker and an archive of it that was added to twice, for all tests of archives."""

import pytest

from support.audits.archives import archive
from support.brokers.broker_logs import write
from support.random_logs.talk_and_chance import talk_and_chance


@pytest.fixture(scope="package")
def log(broker):
    """A conversation, then whatever comes at random."""
    return write(broker.bootstrap, talk_and_chance())


@pytest.fixture(scope="package")
def path(spark, log, tmp_path_factory):
    """The archive of the whole log, in stretches that are shorter at the ends."""
    path = tmp_path_factory.mktemp("archive")
    archive(spark, log, path)
    return path
