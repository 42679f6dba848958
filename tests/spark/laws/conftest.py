"""What the tests of laws ask of Spark: how logs of a hundred entries are joined."""

import pytest

BROADCASTS = "spark.sql.autoBroadcastJoinThreshold"


@pytest.fixture(scope="module")
def spark(spark):
    """A session that joins where the rows are.

    The frames of these tests have one part each (`support.audits.testimonies`), so a query is one
    task; a broadcast would be a task of its own for each join. Audits of logs, in `spark/audit` and
    `spark/jobs`, ask the same laws with parts and broadcasts as jobs have them.
    """
    before = spark.conf.get(BROADCASTS)
    spark.conf.set(BROADCASTS, "-1")
    yield spark
    spark.conf.set(BROADCASTS, before)
