"""Tests of queries of people: they are answered, and nothing else is run."""

import json
import re

import pytest

from ledgermq_spark.archive.archived import facts_of_nothing
from ledgermq_spark.tables.all_tables import TABLES
from ledgermq_spark.tables.asking import (
    NoQueryError,
    QueryInvalidError,
    answer_query,
    check_query,
)

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def nothing(spark):
    """The facts of a log without a record."""
    return facts_of_nothing(spark)


@pytest.mark.parametrize(
    "text",
    [
        "INSERT OVERWRITE DIRECTORY '{evil}' USING parquet SELECT 1",
        "WITH one AS (SELECT 1) INSERT INTO parquet.`{evil}` SELECT * FROM one",
        "FROM VALUES (1) INSERT INTO one SELECT 1 INSERT INTO two SELECT 2",
        "CREATE TABLE evil USING parquet LOCATION '{evil}' AS SELECT 1",
        "CREATE TEMPORARY VIEW evil AS SELECT 1",
        "DROP VIEW IF EXISTS messages",
        "EXECUTE IMMEDIATE 'SET a = 1'",
        "BEGIN SELECT 1; END",
        "SET spark.sql.ansi.enabled = false",
        "CACHE TABLE messages",
        "ADD JAR '{evil}'",
        "SELECT TRANSFORM (1) USING 'touch {evil}' AS (x)",
        "SELECT 1 IN (SELECT TRANSFORM (1) USING 'touch {evil}' AS (x))",
        "WITH one AS (SELECT TRANSFORM (1) USING 'touch {evil}' AS (x)) SELECT * FROM one",
    ],
)
def test_what_is_no_query_is_not_run(nothing, tmp_path, text):
    """Whatever writes, makes, sets or runs anything, wherever in the text it stands."""
    with pytest.raises(NoQueryError, match="run"):
        check_query(text.format(evil=tmp_path / "evil"), nothing)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM messages;",
        "WITH one AS (SELECT 1 AS x) SELECT * FROM one",
        "VALUES (1)",
        "FROM operations SELECT kind",
        "SELECT * FROM IDENTIFIER('queue' || '_depth')",
        "DESCRIBE groups",
        "EXPLAIN SELECT * FROM sessions",
    ],
)
def test_what_only_answers_is_run(nothing, text):
    """Queries of each form, and statements that only tell what there is."""
    check_query(text, nothing)
    assert answer_query(text, nothing, 1).columns


@pytest.mark.parametrize(
    ("text", "is_of_rows"),
    [
        ("SHOW TABLES", False),
        ("DESCRIBE messages", False),
        ("SHOW COLUMNS IN sessions", False),
        ("EXPLAIN SELECT * FROM sessions", True),
        ("SELECT 'show tables' FROM sessions", True),
    ],
)
def test_no_log_is_read_for_names_and_types(nothing, text, is_of_rows):
    """Whoever asks what tables there are does not wait for all of them to be worked out."""
    assert check_query(text, nothing) is is_of_rows


def test_tables_are_shown(nothing):
    """All of them, though none is named."""
    rows = answer_query("SHOW TABLES", nothing, 100).rows
    assert {row[1] for row in rows} >= set(TABLES)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT * FROM nosuch", r"\(line 1, position 14\): .*`nosuch`.*there are message_events"),
        ("SELECT nosuch FROM messages", r"`nosuch` cannot be resolved"),
        ("SELEC 1", r"\(line 1, position 0\): Syntax error at or near 'SELEC'"),
        ("SELECT 1/0", "Division by zero"),
        ("SELECT 1/id FROM range(2)", "Division by zero"),
        ("SELECT (SELECT id FROM range(2))", "More than one row"),
        ("SELECT make_interval(1, 2)", "cast them to STRING"),
        ("SELECT timestamp_micros(9223372036854775807)", "after 9999: cast them to STRING"),
        ("SELECT array(DATE '9999-12-31' + 1)", "after 9999: cast them to STRING"),
        ("SELECT DATE '0001-01-01' - 1", "before the year 1 or"),
        ("SELECT reflect('java.lang.System', 'exit', 0)", "`reflect`"),
        ("SELECT java_method('java.lang.System', 'exit', 0)", "`java_method`"),
        ("VALUES (try_reflect('java.lang.System', 'exit', 0))", "`try_reflect`"),
        ("SELECT IDENTIFIER('ref' || 'lect')('java.lang.System', 'exit', 0)", "`reflect`"),
    ],
)
def test_what_is_wrong_with_a_query_is_a_sentence(nothing, text, said):
    """Of Spark's words only those for people: no frames of Java, no codes, no settings."""

    def ask():
        check_query(text, nothing)
        answer_query(text, nothing, 1)

    with pytest.raises(QueryInvalidError, match=said) as told:
        ask()
    assert not re.search(r"\n|SQLSTATE|spark\.sql|\[[A-Z]", str(told.value))


def test_columns_of_one_name_are_all_told(nothing):
    """Where each must have a name of its own, that is asked for."""
    text = "SELECT 1 AS x, 2 AS x, 3 AS y"
    answer = answer_query(text, nothing, 1)
    assert (answer.columns, answer.rows) == (["x", "x", "y"], [[1, 2, 3]])
    with pytest.raises(QueryInvalidError, match="several columns are called x: name them apart"):
        check_query(text, nothing, apart=True)


def test_values_are_what_json_can_have(nothing, live_in):
    """Also where this machine is far from UTC; times end with Z, as other commands write them."""
    live_in("Asia/Tokyo")
    text = """
        SELECT TIMESTAMP '2026-01-01 00:00:00Z', TIMESTAMP_NTZ '2026-01-01 00:00:00',
            DATE '2026-01-01', array(1, 2), map('a', 1), struct(1 AS x, 2 AS y), X'00ff', NULL,
            1.5BD, double('NaN'), array(double('Infinity'), -double('Infinity')), TRUE
    """
    answer = answer_query(text, nothing, 1)
    times = ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00", "2026-01-01"]
    nested = [[1, 2], {"a": 1}, {"x": 1, "y": 2}]
    rest = ["00ff", None, "1.5", "NaN", ["Infinity", "-Infinity"], True]
    assert answer.rows == [[*times, *nested, *rest]]
    json.dumps(answer.rows, allow_nan=False)


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
def test_the_first_and_the_last_times_are_told_wherever_this_machine_is(nothing, live_in, zone):
    """They stand for never, and for what has not ended; in another zone there are none."""
    live_in(zone)
    first, last = "TIMESTAMP '0001-01-01 00:00:00Z'", "TIMESTAMP '9999-12-31 23:59:59.999999Z'"
    text = (
        f"SELECT {first} AS x, {last} AS x, array({first}), map({last}, struct({first} AS `y z`))"
    )
    early, late = "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"
    assert answer_query(text, nothing, 1).rows == [[early, late, [early], {late: {"y z": early}}]]
