"""Ten questions that an auditor asks, answered from the tables of what happened.

    python examples/history/ten_questions.py            # prints them with their answers
    python examples/history/ten_questions.py --write    # writes README.md and the pictures anew

It starts a broker and a queue manager of its own, lets a day happen there (`shop_day.py`) and reads
it back with Spark. Each question is one query, which `ledgermq sql` answers of any log.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as f
from shop_day import LAST_MINUTE, MINUTE_US, TWO_O_CLOCK_US, Day, live_through

import ledgermq
from ledgermq.processor.worker.supervisor import running_installation
from ledgermq_spark import history
from ledgermq_spark.log.session import spark_session
from ledgermq_spark.pages.pictures import chart_picture, timeline_picture
from ledgermq_spark.tables.all_tables import TABLES
from ledgermq_spark.tables.life import Life

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HERE: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, the query that answers it, what to see in the answer, and its picture."""

    name: str
    title: str
    query: str
    remark: str
    picture: str = ""


QUESTIONS: Final = (
    Question(
        name="life",
        title="What happened to order 3, who had it, and why is it gone?",
        query="""
SELECT date_format(time, 'HH:mm') AS at, event, destination, client_id AS who, reason, actor
FROM message_events LEFT JOIN sessions USING (queue_manager, session)
WHERE correlation_id = 'order-3' AND destination <> 'queue:answers'
ORDER BY position, step
""",
        remark="""`packer-2` rolled it back until that exceeded its redelivery limit, which moved it
out of the way. Ann moved it back, and `packer-1` consumed it.
`ledgermq trace --correlation-id order-3` tells the same. Numbers are those of the rows:""",
        picture="life-of-order-3.svg",
    ),
    Question(
        name="moment",
        title="What was in the queue of orders at 14:03?",
        query="""
WITH then AS (
    SELECT queue_manager, store, correlation_id, put_position, put_index,
        max_by(after, (position, step)) AS state, max_by(session, (position, step)) AS session
    FROM message_events
    WHERE destination = 'queue:orders' AND time < TIMESTAMP '2026-03-02 14:03:00'
    GROUP BY ALL
)
SELECT correlation_id, state, IF(state = 'available', NULL, client_id) AS held_by
FROM then LEFT JOIN sessions USING (queue_manager, session)
WHERE state <> 'gone'
ORDER BY put_position, put_index
""",
        remark="""A message is in the state that its last move up to then left it in. Order 2 was in
the hands of `packer-1`, in a unit of work that was open.""",
    ),
    Question(
        name="waiting",
        title="Which orders waited longest until somebody got them, and whom did they wait for?",
        query="""
WITH waits AS (
    SELECT one.queue_manager, one.store, one.sequence, one.correlation_id, one.enqueued_at,
        min(delivered_at) AS got_at, min_by(session, position) AS session
    FROM messages AS one JOIN deliveries USING (queue_manager, store, sequence)
    WHERE one.destination = 'queue:orders'
    GROUP BY ALL
)
SELECT wait.correlation_id, date_format(wait.enqueued_at, 'HH:mm') AS put_at,
    date_format(got_at, 'HH:mm') AS got_at,
    timestampdiff(MINUTE, wait.enqueued_at, got_at) AS minutes, got_by.client_id AS got_by,
    coalesce(listagg(DISTINCT concat(getter.client_id, ' ', date_format(other.settled_at, 'HH:mm')),
        ', ') WITHIN GROUP (ORDER BY concat(getter.client_id, ' ',
        date_format(other.settled_at, 'HH:mm'))), 'nobody') AS busy_until
FROM waits AS wait
JOIN sessions AS got_by ON wait.queue_manager = got_by.queue_manager
    AND wait.session = got_by.session
LEFT JOIN deliveries AS other ON wait.queue_manager = other.queue_manager
    AND wait.store = other.store AND other.settled_at BETWEEN wait.enqueued_at AND got_at
    AND other.sequence < wait.sequence
LEFT JOIN sessions AS getter ON other.queue_manager = getter.queue_manager
    AND other.session = getter.session
GROUP BY ALL
ORDER BY minutes DESC, wait.correlation_id
LIMIT 4
""",
        remark="""`busy_until` names who settled an earlier order meanwhile, and when. From 14:06 to
14:10 nobody got any: blue is waiting, green is in somebody's hands.""",
        picture="orders.svg",
    ),
    Question(
        name="redeliveries",
        title="Which consumer causes redeliveries?",
        query="""
SELECT client_id, count(*) AS deliveries, count_if(settled = 'consumed') AS consumed,
    count_if(settled = 'returned') AS came_back, count_if(settled = 'moved') AS exceeded_the_limit,
    array_join(array_sort(collect_set(IF(settled <> 'consumed', deliveries.reason, NULL))), '; ')
        AS why
FROM deliveries JOIN sessions USING (queue_manager, session)
WHERE destination = 'queue:orders'
GROUP BY client_id
ORDER BY client_id
""",
        remark="Nothing that `packer-2` was given was ever consumed.",
    ),
    Question(
        name="unit-of-work",
        title="What did the unit of work do that put and got, and was rolled back?",
        query="""
SELECT date_format(time, 'HH:mm') AS at, client_id, event, destination, one.correlation_id, reason
FROM units_of_work AS unit JOIN message_events AS one USING (queue_manager, session, unit_of_work)
    JOIN sessions USING (queue_manager, session)
WHERE unit.ended_as = 'rolled back' AND puts > 0 AND gets > 0
ORDER BY one.position, one.step
""",
        remark="""The order went back and its answer is gone. Below the order are that answer and
that of the unit of work that followed:""",
        picture="unit-of-work.svg",
    ),
    Question(
        name="operators",
        title="What did operators change by hand, and what followed?",
        query="""
WITH by_hand AS (
    SELECT queue_manager, position, time, entry, actor, why, event, destination, correlation_id,
        put_position, put_index
    FROM message_events WHERE actor IS NOT NULL AND after = 'gone'
)
SELECT date_format(one.time, 'HH:mm') AS at, one.actor, one.entry, one.why, one.correlation_id,
    one.destination, coalesce(max_by(concat(later.event, ' at ', date_format(later.time, 'HH:mm'),
        coalesce(concat(' by ', client_id), '')), (later.position, later.step)),
        any_value(one.event)) AS in_the_end
FROM by_hand AS one
LEFT JOIN message_events AS later ON one.queue_manager = later.queue_manager
    AND one.put_position = later.put_position AND one.put_index = later.put_index
    AND one.position < later.position
LEFT JOIN sessions ON later.queue_manager = sessions.queue_manager
    AND later.session = sessions.session
GROUP BY ALL
ORDER BY at, min(one.put_position)
""",
        remark="What Ann moved was consumed then. What Bob removed had `test` as a property.",
    ),
    Question(
        name="answers",
        title="Which orders of the EU never got an answer?",
        query="""
SELECT correlation_id, date_format(come_at, 'HH:mm') AS put_at, fate, reason,
    date_format(gone_at, 'HH:mm') AS gone_at, properties
FROM messages AS asked
WHERE destination = 'queue:orders' AND get_json_object(properties, '$.region') = 'EU'
    AND coalesce(fate, '') <> 'moved'
    AND NOT EXISTS (
        SELECT 1 FROM messages AS answer
        WHERE answer.destination = 'queue:answers' AND answer.fate IS DISTINCT FROM 'rolled back'
            AND answer.correlation_id = asked.correlation_id)
ORDER BY put_position, put_index
""",
        remark="""The two of the load test are right. Order 5 is not: it was consumed, and nobody
answered it.""",
    ),
    Question(
        name="backlog",
        title="When was the backlog deepest, and what ended it?",
        query="""
WITH deepest AS (
    SELECT queue_manager, destination, store, max(depth) AS depth,
        min_by(position, struct(-depth, position)) AS position,
        min_by(time, struct(-depth, position)) AS time
    FROM queue_depth WHERE destination = 'queue:orders'
    GROUP BY ALL
)
SELECT most.destination, most.depth, date_format(most.time, 'HH:mm') AS deepest_at, event,
    coalesce(actor, client_id, 'the queue manager') AS through, count(*) AS messages,
    date_format(min(gone.time), 'HH:mm') AS from, date_format(max(gone.time), 'HH:mm') AS to
FROM deepest AS most
JOIN message_events AS gone ON most.queue_manager = gone.queue_manager
    AND most.store = gone.store AND gone.position > most.position AND gone.after = 'gone'
LEFT JOIN sessions ON gone.queue_manager = sessions.queue_manager
    AND gone.session = sessions.session
GROUP BY ALL
ORDER BY from, event
""",
        remark="Bob's purge of the load test ended the most of it, and `packer-1` the rest.",
        picture="depth.svg",
    ),
    Question(
        name="publications",
        title="Did any subscriber miss a publication?",
        query="""
SELECT one.correlation_id, get_json_object(one.properties, '$.product') AS product,
    subscription.subscription,
    CASE WHEN subscription.store > one.numbered_position THEN 'missed: it came later'
        WHEN subscription.ended_position < one.numbered_position THEN 'missed: it had ended'
        WHEN copy.put_position IS NULL THEN concat('not wanted: ', selector)
        WHEN copy.fate = 'consumed' THEN 'consumed'
        WHEN copy.fate IS NULL THEN 'is still there'
        ELSE concat('missed: ', copy.reason) END AS became
FROM messages AS one
JOIN subscriptions AS subscription USING (queue_manager, destination)
LEFT JOIN messages AS copy ON copy.queue_manager = one.queue_manager
    AND copy.kind = 'subscription' AND copy.store = subscription.store
    AND copy.put_position = one.put_position AND copy.put_index = one.put_index
WHERE one.kind = 'topic'
ORDER BY one.put_position, subscription.subscription
""",
        remark="""`books` subscribed after the first two. The third was about tea, and too old when
`letters` might have read it.""",
    ),
    Question(
        name="groups",
        title="Was any group split or out of order?",
        query="""
SELECT one.correlation_id, count(*) AS deliveries,
    listagg(group_sequence, ' ') WITHIN GROUP (ORDER BY one.sequence) AS put_as,
    listagg(group_sequence, ' ') WITHIN GROUP (ORDER BY given.position, given.delivery) AS given_as,
    array_join(array_sort(collect_set(client_id)), ', ') AS given_to,
    count(DISTINCT given.session) > 1 AS is_split,
    array_sort(collect_list(struct(given.position, given.delivery, group_sequence))).group_sequence
        <> array_sort(collect_list(group_sequence)) AS is_out_of_order
FROM messages AS one
JOIN deliveries AS given USING (queue_manager, store, sequence)
JOIN sessions ON given.queue_manager = sessions.queue_manager AND given.session = sessions.session
WHERE group_id IS NOT NULL AND one.kind = 'queue'
GROUP BY one.queue_manager, one.store, group_id, one.correlation_id
ORDER BY one.correlation_id
""",
        remark="""The second shipment was put in a wrong order, and two vans took what came next. A
consumer with `order=Order.LOGICAL` gets a group whole and in its order.""",
    ),
)


def name_tables(past: history.History, day: Day) -> None:
    """Let queries name the tables, with the times of the day in place of those of the log."""
    for name in TABLES:
        table = past.table(name)
        for column, kind in table.dtypes:
            if kind == "timestamp":
                table = table.withColumn(column, _clock(column, day))
        table.createOrReplaceTempView(name)


def _clock(column: str, day: Day) -> Any:
    """The minute of the day in which something happened."""
    begun = f.array(*map(f.lit, day.marks))
    at = f.unix_micros(column)
    number = f.size(f.filter(begun, lambda mark: mark <= at)) - 1
    return f.when(at.isNotNull(), f.timestamp_micros(TWO_O_CLOCK_US + number * MINUTE_US))


def answers(spark: SparkSession) -> dict[str, DataFrame]:
    """The answer to each question, by its name."""
    return {one.name: spark.sql(one.query) for one in QUESTIONS}


def pictures(spark: SparkSession, past: history.History, day: Day) -> dict[str, str]:
    """The pictures by their file names, as SVG."""
    lives = [
        replace(one, steps=[replace(step, time=day.clock(step.time)) for step in one.steps])
        for one in past.lives(f.col("correlation_id").startswith("order-"), most=100)
    ]
    orders = [one for one in lives if one.steps[0].place == "queue orders"]
    return {
        "life-of-order-3.svg": timeline_picture(_of(orders, "order-3")),
        "orders.svg": timeline_picture(orders),
        "unit-of-work.svg": timeline_picture(_of(lives, "order-2")),
        "depth.svg": chart_picture("Messages in the queue", _depths(spark, "orders", "answers")),
    }


def _of(lives: list[Life], correlation_id: str) -> list[Life]:
    return [one for one in lives if one.correlation_id == correlation_id]


def _depths(spark: SparkSession, *queues: str) -> dict[str, list[tuple[int, float]]]:
    """How many messages were in each queue, from when on."""
    found: dict[str, list[tuple[int, float]]] = {}
    for name in queues:
        rows = spark.sql(
            "SELECT unix_micros(time) AS at, depth FROM queue_depth "
            f"WHERE destination = 'queue:{name}' ORDER BY position"
        ).collect()
        points = [(row["at"], row["depth"]) for row in rows]
        last = TWO_O_CLOCK_US + LAST_MINUTE * MINUTE_US
        found[name] = [(TWO_O_CLOCK_US, 0), *points, (last, points[-1][1])]
    return found


def plain(table: DataFrame) -> str:
    """A small table as text."""
    rows = [[_shown(value) for value in row] for row in (table.columns, *table.collect())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, ["-" * width for width in widths])
    lines = (map(str.ljust, row, widths) for row in rows)
    return "\n".join("  ".join(line).rstrip() for line in lines)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def page(answered: dict[str, DataFrame]) -> str:
    """README.md."""
    parts = [(HERE / "beginning.md").read_text("utf-8").rstrip()]
    for number, one in enumerate(QUESTIONS, 1):
        parts.append(f"## {number}. {one.title}")
        parts.append(f"```sql\n{one.query.strip()}\n```")
        parts.append(f"```\n{plain(answered[one.name])}\n```")
        parts.append(one.remark)
        if one.picture:
            parts.append(f"![{one.title}](pictures/{one.picture})")
    return "\n\n".join(parts) + "\n"


@contextlib.contextmanager
def running(directory: Path) -> Iterator[str]:
    """The address of a queue manager that is there until the end of the block."""
    with running_installation(directory) as bootstrap:
        yield f"kafka://{bootstrap}/QM1"


def main(*arguments: str) -> None:
    """Print questions and answers, or write them down."""
    with tempfile.TemporaryDirectory() as scratch, running(Path(scratch) / "shop") as address:
        # The day happens, and is read back.
        day = live_through(partial(ledgermq.connect, address))
        spark = spark_session(directory=Path(scratch) / "spark", log_level="ERROR", brief=True)
        past = history.read(spark, address, directory=Path(scratch) / "tables")
        name_tables(past, day)
        # Questions are asked.
        answered = answers(spark)
        if "--write" not in arguments:
            for number, one in enumerate(QUESTIONS, 1):
                print(f"\n{number}. {one.title}\n\n{plain(answered[one.name])}")
            return
        (HERE / "README.md").write_text(page(answered), encoding="utf-8")
        for name, drawn in pictures(spark, past, day).items():
            (HERE / "pictures" / name).write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
