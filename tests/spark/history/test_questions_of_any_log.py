"""The ten questions of examples/history can be asked of any log, and their page has them all."""

import random
import sys

import pytest
from pyspark.sql import functions as f

from ledgermq_spark.history import History
from support.audits.engines import spark_engine
from support.audits.testimonies import Logs
from support.brokers.log_writer import Script
from support.checkout import ROOT
from support.random_logs.random_log import RandomLog

EXAMPLE = ROOT / "examples/history"


@pytest.fixture(scope="module")
def script():
    """The example, which lies beside its own modules."""
    sys.path.insert(0, str(EXAMPLE))
    try:
        import ten_questions
    finally:
        sys.path.remove(str(EXAMPLE))
    return ten_questions


@pytest.mark.spark
@pytest.mark.slow
def test_every_question_can_be_asked_of_any_log(script, spark):
    """Its query names columns that there are, and its answer is a small table."""
    logs, written = Logs(), Script(random=random.Random(7))
    RandomLog(written, topics=True, groups=True).grow(120)
    logs.fold("QM1", written.entries)
    facts = logs.facts(spark_engine(spark))
    for name, text in script.TABLES.items():
        facts.query(text).createOrReplaceTempView(name)
    for name, answer in script.answers(spark).items():
        assert script.plain(answer).splitlines()[0].split() == answer.columns, name
    lives = History(facts, "QM1").lives(f.col("put_position") >= 0, most=3)
    assert len({(one.put_position, one.put_index) for one in lives}) == 3


def test_the_page_has_every_question_with_its_query_and_picture(script):
    """In their order, below what is told of the day."""
    page = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    assert page.startswith((EXAMPLE / "beginning.md").read_text(encoding="utf-8").rstrip())
    at = 0
    for number, one in enumerate(script.QUESTIONS, 1):
        parts = [f"## {number}. {one.title}", one.query.strip(), one.remark]
        parts += [f"](pictures/{one.picture})"] if one.picture else []
        for part in parts:
            at = page.index(part, at)
    drawn = {one.picture for one in script.QUESTIONS if one.picture}
    assert {path.name for path in (EXAMPLE / "pictures").iterdir()} == drawn
