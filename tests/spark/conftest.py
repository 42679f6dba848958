"""One Spark session for all tests of the Spark jobs."""

import os

import pytest

from ledgermq_spark.session import spark_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A local Spark session with the Kafka connector."""
    os.environ.setdefault("SPARK_TESTING", "1")
    session = spark_session(
        directory=tmp_path_factory.mktemp("spark"), driver_memory="1500m", log_level="ERROR"
    )
    yield session
    session.stop()
