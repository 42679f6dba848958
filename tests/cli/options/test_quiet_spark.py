"""What Java and Spark say behind a command stays there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from ledgermq.cli.printing.exits import OK

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

# As Java does without being asked when something is wrong with it, on standard output.
TALKATIVE = "-Xlog:codecache=info -Xlog:gc=info -Xlog:startuptime=info"
QUERY = "SELECT count(*) AS messages FROM messages"
NOISE = re.compile(r"warn|codecache|slf4j|openjdk|picked up|\[info\]", re.IGNORECASE)


def test_no_word_of_java_or_spark_reaches_the_terminal(
    connection, queue, worker, topic_prefix, tmp_path
):
    """However much Java has to say: standard output is the answer, standard error our remarks."""
    with connection.session() as session:
        session.producer(f"queue:{queue}").send("a")
    where = ["--bootstrap", worker, "--topic-prefix", topic_prefix, "--json"]
    ended = subprocess.run(
        [sys.executable, "-m", "ledgermq", "sql", QUERY, *where],
        cwd=tmp_path,
        env={**os.environ, "JDK_JAVA_OPTIONS": TALKATIVE},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == OK, ended.stderr
    assert [line for line in ended.stderr.splitlines() if NOISE.search(line)] == []
    assert json.loads(ended.stdout)
