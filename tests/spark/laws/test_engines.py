"""DuckDB answers every query of the laws as Spark does."""

from collections import Counter

import pytest

from ledgermq_spark.archive.archived import facts_of_nothing
from ledgermq_spark.laws.all_laws import LAWS
from ledgermq_spark.laws.facts import DERIVED
from support.audits.engines import duck_engine, spark_engine

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1_200)]

# Where DuckDB has another function of that name, none, or one that does something else with nulls
# or with the place of an element: each with what Spark answers.
ANSWERS = {
    "min_by(a, b) of rows whose value is null": (
        """SELECT min_by(a, b) AS x, max_by(a, b) AS y
        FROM VALUES (NULL, 1), (2, 3) AS v (a, b)""",
        {"x": None, "y": 2},
    ),
    "an order that has nulls": (
        """SELECT min_by(a, b) AS x
        FROM VALUES (1, NULL), (2, 3) AS v (a, b)""",
        {"x": 2},
    ),
    "an element by a column": (
        """SELECT items[at] AS x, get(items, at) AS y
        FROM VALUES (array(5, 6), 1) AS v (items, at)""",
        {"x": 6, "y": 6},
    ),
    "no such element": (
        """SELECT get(array(5), 1) AS x, try_element_at(array(5, 6), -1) AS y""",
        {"x": None, "y": 6},
    ),
    "rows beside the places of elements": (
        """SELECT max(struct(at, item)).at AS x
        FROM VALUES (array('a', 'b')) AS v (items)
        LATERAL VIEW posexplode(items) AS at, item""",
        {"x": 1},
    ),
    "a count of nothing": (
        """SELECT count_if(a > 5) OVER (ORDER BY a ROWS
            BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS x
        FROM VALUES (1) AS v (a)""",
        {"x": 0},
    ),
    "texts of which one is null": (
        """SELECT concat('a', NULL) AS x, concat('a', 1, TRUE) AS y,
            concat_ws(' ', 1, NULL, 2) AS z""",
        {"x": None, "y": "a1true", "z": "1 2"},
    ),
    "structs whose fields are called otherwise": (
        """SELECT struct(a, b) <=> c AS x, c > struct(a - 1, b) AS y, NOT struct(a, b) = c AS z
        FROM VALUES (1, 2, named_struct('p', 1, 'q', 2)) AS v (a, b, c)""",
        {"x": True, "y": True, "z": False},
    ),
    "a map of JSON": (
        """SELECT size(filter(map_entries(from_json('{{"a":1,"b":true,"c":{{"d":"e"}}}}',
            'MAP<STRING, STRING>')), one -> one.key = 'c' AND one.value = '{{"d":"e"}}')) AS x,
            coalesce(size(map_entries(from_json(NULL, 'MAP<STRING, STRING>'))) > 0, FALSE) AS y""",
        {"x": 1, "y": False},
    ),
    "some of the elements": (
        """SELECT size(filter(items, one -> one > 1)) AS x
        FROM VALUES (array(1, 2)) AS v (items)""",
        {"x": 1},
    ),
    "lists that are joined": (
        """SELECT array_max(transform(arrays_zip(a, b), one -> one.a * one.b)) AS x,
            arrays_zip(a, b)[1].b AS y
        FROM VALUES (array(1, 2), array(3, 4)) AS v (a, b)""",
        {"x": 8, "y": 4},
    ),
    "sums over structs": (
        """SELECT aggregate(arrays_zip(a, b), 0L, (sum, one) -> sum + one.b - one.a) AS x
        FROM VALUES (array(1, 2), array(3, 4)) AS v (a, b)""",
        {"x": 4},
    ),
    "a difference that is too large for a whole number": (
        """SELECT CAST(a AS DECIMAL(20, 0)) - b BETWEEN -5 AND 5 AS x
        FROM VALUES (-9223372036854775807L, 9L) AS v (a, b)""",
        {"x": False},
    ),
    "the last one that is not null": (
        """SELECT x
        FROM (SELECT b, last(a, TRUE) OVER (ORDER BY b) AS x
        FROM VALUES (3, 1), (NULL, 2) AS v (a, b)) WHERE b = 2""",
        {"x": 3},
    ),
    "what a text of JSON says, whose braces are doubled": (
        """SELECT from_json(t, 'a BIGINT, b ARRAY<STRUCT<c: STRING>>').b[0].c AS x,
            from_json(t, 'd BIGINT').d AS y, get_json_object(t, '$.b[0].c') AS z
        FROM VALUES ('{{"a": 1, "b": [{{"c": "u"}}]}}') AS v (t)""",
        {"x": "u", "y": None, "z": "u"},
    ),
    "characters that end a text elsewhere": (
        """SELECT length(t) AS x, t = 'a\\0b' AS y
        FROM VALUES ('a\\0b') AS v (t)""",
        {"x": 3, "y": True},
    ),
}


@pytest.mark.parametrize("what", ANSWERS)
def test_a_query_has_one_answer(spark, what):
    """What the laws use of Spark SQL means the same in DuckDB."""
    text, answer = ANSWERS[what]
    for engine in (spark_engine(spark), duck_engine()):
        assert engine.rows(engine.ask(text, {"nothing": 0})) == [answer], engine


@pytest.mark.slow
def test_what_breaks_laws_is_found_by_either_engine(spark, all_logs, facts):
    """The same findings, row by row, in lawful and tampered logs (D10)."""
    found, expected = (
        Counter(tuple(row.values()) for row in one.judge(LAWS))
        for one in (facts, all_logs.facts(spark_engine(spark)))
    )
    assert found == expected
    assert expected


def test_spark_understands_every_frame(spark):
    """Those that only stretches ask for, too, as on a cluster."""
    facts = facts_of_nothing(spark)
    for name in DERIVED:
        facts.frame(name)


@pytest.mark.slow
def test_every_frame_can_be_made(facts):
    """Those that only stretches ask for, too."""
    for name in DERIVED:
        facts.frame(name)
