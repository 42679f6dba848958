"""`message_events` alone tells the state of every queue at any position."""

import json
import random
import re
from collections import Counter

import pyarrow.parquet as pq
import pytest

from ledgermq.core.apply import new_state
from ledgermq.core.moves import state_of
from ledgermq.core.state.message_states import NAMES
from ledgermq.core.state.records import Subscription, Topic
from ledgermq.protocol import operations as op
from ledgermq.protocol.administration import CopyMessages, MoveMessages
from ledgermq_spark.audit.findings.evidence import Evidence
from ledgermq_spark.audit.report import findings_table
from ledgermq_spark.audit.report.report import write_report
from ledgermq_spark.tables.all_tables import TABLES
from ledgermq_spark.tables.writing import write_tables
from support.audits.engines import duck_engine, spark_engine
from support.audits.testimonies import Logs
from support.brokers.log_writer import Script, color_header, fold_one
from support.checkout import ROOT
from support.pages.reports import report_of
from support.random_logs.random_log import RandomLog

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FLAVOURS = (
    {},
    {"topics": True, "ends": True},
    {"groups": True, "moves": True},
    {"redelivery": True, "quotas": True, "topics": True},
)
# What JSON may write in several ways, and what looks like the end of the properties.
WRITTEN_IN_WAYS = {
    "c": 1,
    "letters": 'x"},"c":\\ / \t\x00\u2028\x7f} \U0001f600 Z\xfcrich',
    "brace": "}",
    "large": 1e16,
    "small": 1e-7,
    "smallest": 5e-324,
    "zero": -0.0,
    "long": 2**62,
    "float": 123456789.0,
    "yes": True,
}
# The state of every message at a position is where its last move up to it took it.
STATE_AT = """
SELECT kind, store, sequence, put_position, put_index, state, backouts
FROM (
    SELECT kind, store, sequence, put_position, put_index,
        max_by(after, (position, step)) AS state, max_by(backouts, (position, step)) AS backouts
    FROM {events}
    WHERE queue_manager = '%s' AND position <= %d AND event <> 'blocked'
    GROUP BY kind, store, sequence, put_position, put_index
)
WHERE state NOT IN ('gone', 'published')
"""


def standing(state):
    """Where every message of a state is, as the query tells it."""
    found = set()
    for store in (*state.stores.values(), *state.topics.values()):
        kind = "queue"
        if isinstance(store, Topic):
            continue
        if isinstance(store, Subscription):
            kind = "subscription"
        for one in store.messages.values():
            place = (one.sequence, one.put_position, one.put_index)
            row = (kind, store.created_position, *place, NAMES[state_of(one)], one.backout_count)
            found.add(row)
    return found


@pytest.fixture(scope="module")
def logs():
    """Return random logs, and what stood at some positions of each."""
    logs, stood = Logs(), {}
    chosen = random.Random(4)
    for seed, flavour in enumerate(FLAVOURS):
        script = Script(random=random.Random(seed + 50))
        RandomLog(script, **flavour).grow(150)
        logs.fold(f"L{seed}", script.entries)
        positions = sorted(chosen.sample(range(20, len(script.entries)), 3))
        state, contents = new_state(), {}
        for position, entry in enumerate(script.entries):
            fold_one(state, contents, position, entry)
            if position in positions:
                stood[f"L{seed}", position] = standing(state)
    return logs, stood


def test_the_state_at_any_position_is_one_query_over_the_events(logs):
    """State of every queue at T, equal to the fold's state at T."""
    folded, stood = logs
    facts = folded.facts(duck_engine())
    for (name, position), expected in stood.items():
        rows = facts.rows(STATE_AT % (name, position))
        numbered = {tuple(row.values()) for row in rows if row["state"] != "uncommitted put"}
        assert numbered == expected, f"{name}@{position}"


def test_what_waits_for_room_at_a_topic_is_of_a_topic():
    """As it is of a queue where it waits at a queue."""
    script, folded = Script(), Logs()
    session = script.session()
    session.send(op.AlterQueueManager, messages_max=1)
    session.put("q", "a")
    for destination in ("queue:q", "topic:t"):
        messages = [script.message("b")]
        session.send(op.Put, destination=destination, messages=messages, blocking_ms=50_000)
    folded.fold("QM1", script.entries)
    rows = folded.facts(duck_engine()).rows(
        "SELECT kind, destination FROM {events} WHERE event = 'blocked' ORDER BY position"
    )
    assert [tuple(row.values()) for row in rows] == [("queue", "queue:q"), ("topic", "topic:t")]


def test_a_message_that_comes_to_a_queue_twice_at_once_is_told_by_its_numbers():
    """Its key must tell the rows apart, else whoever merges tables by that loses one."""
    script, folded = Script(), Logs()
    session = script.session()
    session.put("q", "a")
    for queue in ("n", "old"):
        session.send(op.CreateQueue, queue=queue)
    by_bob = {"actor": "bob", "reason": "as agreed"}
    for _ in range(2):
        session.send(CopyMessages, selection=all_of("queue:q"), target="queue:n", **by_bob)
    session.send(MoveMessages, selection=all_of("queue:n"), target="queue:old", **by_bob)
    folded.fold("QM1", script.entries)
    _, key, _ = contracts()["messages"]
    facts = folded.facts(duck_engine())
    rows = facts.rows(
        f"SELECT {', '.join(key)} FROM {{rows}}", rows=facts.query(TABLES["messages"])
    )
    assert len({tuple(row.values()) for row in rows}) == len(rows) == 5
    came = Counter((row["store"], row["come_position"]) for row in rows)
    assert sorted(came.values()) == [1, 1, 1, 2]


def test_two_copies_that_wait_in_one_queue_are_moved_for_the_same_reason():
    """What one waits for is not that of the other."""
    script, folded = Script(), Logs()
    session = script.session()
    session.put("q", "a")
    session.send(op.CreateQueue, queue="n")
    by_bob = {"actor": "bob", "reason": "as agreed"}
    for _ in range(2):
        session.send(CopyMessages, selection=all_of("queue:q"), target="queue:n", **by_bob)
    session.send(op.OpenConsumer, consumer=1, destination="queue:n", redelivery_delay_ms=60_000)
    session.get(2)
    session.recover((1, 2))
    session.send(MoveMessages, selection=all_of("queue:n"), target="queue:q", **by_bob)
    folded.fold("QM1", script.entries)
    facts = folded.facts(duck_engine())
    rows = facts.rows("SELECT before, reason FROM {events} WHERE event = 'moved'")
    assert [tuple(row.values()) for row in rows] == [("delayed", "by administration")] * 2


def all_of(source):
    """All messages of a queue."""
    chosen = {"selector": "", "sequences": [], "after_sequence": -1, "limit": 0}
    return {"source": source, "subscription": "", "client_id": "", "durable": False} | chosen


def contracts():
    """Columns with their types, key and example query of each table, as the documents have them."""
    text = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")
    found = {}
    for section in text.split("\n## ")[1:]:
        name = section.partition("\n")[0]
        columns = re.findall(r"^\| (\w+) \| (\w+) \|", section, re.MULTILINE)[1:]
        (key,) = re.findall(r"^Key: `(.+)`$", section, re.MULTILINE)
        (query,) = re.findall(r"```sql\n(.+?)\n```", section, re.DOTALL)
        found[name] = (columns, key.split(", "), query)
    return found


def test_findings_of_audits_are_a_table(spark, tmp_path):
    """With a contract as the others; an audit of the same positions takes the place of another."""
    columns, key, query = contracts()[findings_table.NAME]
    lost = Evidence(kind="lost", source="laws", summary="s", field="law A", position=7)
    digest = Evidence(kind="digest mismatch", source="live state", summary="d", queue="q")
    for anomalies in ([digest], [lost, digest]):
        write_report(report_of(anomalies=anomalies, verdict="anomalies"), tmp_path)
    write_report(report_of(queue_manager="_other/QM"), tmp_path)
    table = spark.read.parquet(str(tmp_path / findings_table.NAME))
    fields = [(one.name, one.dataType.simpleString()) for one in table.schema.fields]
    assert fields == columns
    rows = table.orderBy(*key).collect()
    told = [(row["audited_until"], row["number"], row["law"], row["position"]) for row in rows]
    assert told == [(99, 1, "A", 7), (99, 2, None, None)]
    marked = query.replace(findings_table.NAME, f"{{{findings_table.NAME}}}")
    assert len(spark.sql(marked, **{findings_table.NAME: table}).collect()) == 2


def test_every_table_is_what_its_contract_says(logs, spark, tmp_path):
    """Its columns, types and key; its example query can be asked (data contracts).

    Whether DuckDB writes it or Spark; to who reads the files themselves they say the same, too.
    """
    folded, _ = logs
    answered, facts = folded.facts(spark_engine(spark)), folded.facts(duck_engine())
    write_tables(facts, tmp_path)
    write_tables(answered, tmp_path / "by_spark")
    told = contracts()
    del told[findings_table.NAME]
    assert list(told) == list(TABLES)
    for name, (columns, key, query) in told.items():
        table = spark.read.parquet(str(tmp_path / name))
        files = [pq.read_table(place / name) for place in (tmp_path, tmp_path / "by_spark")]
        types = [[(one.name, one.type) for one in rows.schema] for rows in files]
        assert types[0] == types[1], name
        answer = answered.query(TABLES[name])
        for frame in (table, answer):
            fields = [(one.name, one.dataType.simpleString()) for one in frame.schema.fields]
            assert fields == columns, name
        assert Counter(map(str, table.collect())) == Counter(map(str, answer.collect())), name
        assert table.count() == table.dropDuplicates(key).count() > 0, name
        marked = re.sub(rf"\bFROM {name}\b", f"FROM {{{name}}}", query)
        spark.sql(marked, **{name: table}).collect()


def test_tables_are_the_same_in_a_session_without_ansi_mode(spark):
    """Sessions of users may have it off; the size of an array that is not there is then -1."""
    small, script = Logs(), Script(random=random.Random(7))
    RandomLog(script, **FLAVOURS[0]).grow(60)
    small.fold("L0", script.entries)
    told = []
    for ansi in ("true", "false"):
        spark.conf.set("spark.sql.ansi.enabled", ansi)
        try:
            facts = small.facts(spark_engine(spark))
            told.append({name: Counter(map(str, facts.rows(TABLES[name]))) for name in TABLES})
        finally:
            spark.conf.unset("spark.sql.ansi.enabled")
    for name in TABLES:
        assert told[0][name] == told[1][name], name


def test_properties_are_one_text_whichever_engine_tells_them(spark):
    """That of the header, letters as they were put: who looks for a text finds it in either."""
    logs, script = Logs(), Script()
    session = script.session()
    session.send(op.CreateQueue, queue="q")
    queue = "queue:q"
    for given in (WRITTEN_IN_WAYS, {}):
        header = {**color_header("red"), "properties": given, "correlation_id": "\xfc"}
        session.send(op.Put, destination=queue, messages=[script.message(header=header)])
    logs.fold("L0", script.entries)
    query = f"SELECT properties, correlation_id FROM ({TABLES['message_events']}) ORDER BY position"
    wanted = json.dumps(WRITTEN_IN_WAYS, separators=(",", ":"), ensure_ascii=False)
    for engine in (duck_engine(), spark_engine(spark)):
        found = [
            (row["properties"], row["correlation_id"]) for row in logs.facts(engine).rows(query)
        ]
        assert found == [(wanted, "\xfc"), (None, "\xfc")]
