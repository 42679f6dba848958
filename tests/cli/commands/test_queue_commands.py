"""`ledgermq queue` on a real broker and worker."""

import re
import uuid

import pytest

import ledgermq
from ledgermq.cli.printing.exits import OK, REFUSED, USAGE
from ledgermq.core.queries.obstacles import OBSTACLES_MAX

pytestmark = pytest.mark.kafka

LABELS = [
    "Queue Name",
    "First enqueue time",
    "Last enqueue time",
    "Number of current receivers",
    "Message count",
    "Messages sent and committed",
    "Min sequence number",
    "Max sequence number",
    "Suspended",
]


def screen_of(cli, queue):
    """The nine lines of the status screen as a mapping, in their order."""
    answer = cli("queue", "stat", queue)
    assert answer.code == OK
    assert [line.partition(": ")[0] for line in answer.lines] == LABELS
    return dict(line.split(": ", 1) for line in answer.lines)


def put(connection, queue, *bodies):
    """Put messages and return the times at which they were numbered."""
    with connection.session() as session:
        producer = session.producer(f"queue:{queue}")
        for body in bodies:
            producer.send(body)


def test_create_makes_a_queue_with_its_settings(cli):
    """A created queue shows what it was created with."""
    name = f"made.{uuid.uuid4().hex[:8]}"
    assert (
        cli("queue", "create", name, "--description", "for tea", "--message-bytes-max", 99).out
        == f"queue {name} created\n"
    )
    shown = cli("queue", "show", name, "--json").document
    assert (shown["description"], shown["message_bytes_max"]) == ("for tea", 99)


def test_create_refuses_a_queue_that_exists(cli, queue):
    """A second creation is refused, and says which queue is there."""
    answer = cli("queue", "create", queue)
    assert answer.code == REFUSED
    assert queue in answer.err
    assert "queue-exists" in answer.err


def test_create_refuses_a_name_that_is_none(cli):
    """A queue's name has no blanks."""
    answer = cli("queue", "create", "a b", "--json")
    assert answer.code == USAGE
    assert "a b" in answer.error["message"]


def test_seq_13_screen_of_a_queue_that_never_held_a_message(cli, queue):
    """SEQ-10, SEQ-13, SEQ-19: zeros, blank times, not suspended."""
    assert screen_of(cli, queue) == {
        "Queue Name": queue,
        "First enqueue time": "",
        "Last enqueue time": "",
        "Number of current receivers": "0",
        "Message count": "0",
        "Messages sent and committed": "0",
        "Min sequence number": "0",
        "Max sequence number": "0",
        "Suspended": "No",
    }


def test_seq_13_every_field_of_the_screen_follows_the_queue(cli, queue, connection):
    """SEQ-12, SEQ-13: after puts, gets, a receiver and a suspension all nine fields have moved."""
    put(connection, queue, "a", "b", "c")
    with connection.session(transacted=True) as session:
        consumer = session.consumer(f"queue:{queue}", prefetch=1)
        assert consumer.receive(timeout=10).body == "a"
        session.commit()
        assert cli("queue", "suspend", queue).code == OK
        status = connection.admin.queue_status(queue)
        expected = {
            "Queue Name": queue,
            "First enqueue time": status.first_enqueued_at.strftime("%m%d%Y:%H:%M:%S"),
            "Last enqueue time": status.last_enqueued_at.strftime("%m%d%Y:%H:%M:%S"),
            "Number of current receivers": "1",
            "Message count": "2",
            "Messages sent and committed": "1",
            "Min sequence number": "1",
            "Max sequence number": "2",
            "Suspended": "Yes",
        }
        assert screen_of(cli, queue) == expected
    assert cli("queue", "resume", queue).code == OK
    assert screen_of(cli, queue)["Suspended"] == "No"


def test_seq_09_empty_again_min_and_max_are_the_next_number(cli, queue, connection):
    """SEQ-09, SEQ-19: with all consumed, min = max = next, and the times are the last one's."""
    put(connection, queue, "a", "b")
    assert cli("get", queue, "--count", 2).code == OK
    screen = screen_of(cli, queue)
    assert screen["Min sequence number"] == screen["Max sequence number"] == "2"
    assert screen["Messages sent and committed"] == "2"
    assert screen["First enqueue time"] == screen["Last enqueue time"] != ""


def test_stat_gives_programs_the_same_values(cli, queue, connection):
    """With --json the nine labels are keys in snake case."""
    put(connection, queue, "a")
    document = cli("queue", "stat", queue, "--json").document
    assert list(document) == [label.lower().replace(" ", "_") for label in LABELS]
    assert document["message_count"] == 1
    assert document["suspended"] is False
    assert document["first_enqueue_time"].endswith("Z")


def test_list_shows_each_queue_once_and_its_figures(cli, queue, connection):
    """Piped, the list is a heading and a line a queue, separated by tabs."""
    put(connection, queue, "a", "b")
    answer = cli("queue", "list")
    assert answer.code == OK
    heading, *rows = [line.split("\t") for line in answer.lines]
    (row,) = [row for row in rows if row[0] == queue]
    figures = dict(zip(heading, row, strict=True))
    assert figures["CURRENT"] == "2"
    assert figures["STATE"] == "running"
    (document,) = [one for one in cli("queue", "list", "--json").document if one["name"] == queue]
    assert document["current"] == 2


@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_a_list_has_those_whose_names_fit_one_of_the_patterns(cli, kind):
    """As shells have them for files; a name alone fits itself, however it is said."""
    base = f"{kind}-{uuid.uuid4().hex[:8]}"
    for name in ("a.eu", "a.us", "b.eu"):
        assert cli(kind, "create", f"{base}.{name}").code == OK
    for patterns, fit in (
        ((f"{base}.*.eu",), ["a.eu", "b.eu"]),
        ((f"{kind}:{base}.a.*", f"{base}.b.??", f"{base}.a.eu"), ["a.eu", "a.us", "b.eu"]),
        ((f"{base}.b.eu",), ["b.eu"]),
        ((f"{base}.B.*", base), []),
    ):
        found = cli(kind, "list", *patterns)
        assert [line.partition("\t")[0] for line in found.lines[1:]] == [f"{base}.{n}" for n in fit]
        document = cli(kind, "list", *patterns, "--json").document
        assert [one["name"] for one in document] == [f"{base}.{n}" for n in fit]


def test_show_adds_up(cli, queue, connection):
    """The figures add up: current + pending = message count + uncommitted puts."""
    put(connection, queue, "a", "b", "c")
    with connection.session(transacted=True) as session:
        session.consumer(f"queue:{queue}", prefetch=1).receive(timeout=10)
        shown = cli("queue", "show", queue, "--json").document
    assert shown["uncommitted_gets"] == 1
    left = shown["current"] + shown["pending"]
    assert left == shown["message_count"] + shown["uncommitted_puts"] == 3


def test_alter_changes_what_is_given_and_nothing_else(cli, queue):
    """A setting that is not given stays as it is."""
    assert cli("queue", "alter", queue, "--description", "new").code == OK
    assert cli("queue", "alter", queue, "--message-bytes-max", 77).code == OK
    shown = cli("queue", "show", queue, "--json").document
    assert (shown["description"], shown["message_bytes_max"]) == ("new", 77)


def test_alter_without_a_setting_is_wrong_use(cli, queue):
    """Nothing to change is a mistake of the caller."""
    assert cli("queue", "alter", queue).code == USAGE


def test_delete_refuses_a_queue_with_messages_and_keeps_them(cli, queue, connection):
    """Without --purge nothing is thrown away."""
    put(connection, queue, "a")
    answer = cli("queue", "delete", queue)
    assert answer.code == REFUSED
    assert "queue-not-empty" in answer.err
    assert connection.admin.queue_status(queue).message_count == 1


def test_delete_with_purge_says_how_many_before_it_is_told_yes(cli, queue, connection):
    """--purge alone and --dry-run delete nothing and count; --yes deletes."""
    put(connection, queue, "a", "b")
    asked = cli("queue", "delete", queue, "--purge")
    assert (asked.code, "2 messages" in asked.err, "--yes" in asked.err) == (USAGE, True, True)
    tried = cli("queue", "delete", queue, "--purge", "--dry-run", "--json")
    assert tried.document == {"queue": queue, "messages": 2, "deleted": False}
    assert connection.admin.queue_status(queue).message_count == 2
    assert cli("queue", "delete", queue, "--purge", "--yes").code == OK
    assert cli("queue", "stat", queue).code == REFUSED


def test_unknown_queue_is_refused_with_its_name(cli):
    """A queue that is not there is named in the error."""
    answer = cli("queue", "stat", "no.such.queue", "--json")
    assert answer.code == REFUSED
    assert answer.error["code"] == "queue-unknown"
    assert "no.such.queue" in answer.error["message"]


def test_messages_are_moved_sent_back_and_purged_by_hand(cli, queue, connection):
    """The worker knows the operations and the question; the bodies go where the messages go."""
    other = f"other.{uuid.uuid4().hex[:8]}"
    put(connection, queue, "a", "b", "c")
    assert cli("queue", "create", other).code == OK
    why = ("--reason", "test", "--yes")
    assert cli("msg", "move", queue, other, "--sequence", "0..1", *why).code == OK
    told = cli("msg", "delete", other, "--sequence", 1, "--dry-run", "--json").document
    assert [one["body"] for one in told["messages"]] == ["b"]
    assert cli("dlq", "retry", other, "--limit", 1, *why).code == OK
    assert cli("browse", queue, "--body-only").lines == ["c", "a"]
    assert cli("queue", "purge", queue, *why, "--json").document["affected"] == 2
    status = connection.admin.queue_status(queue)
    assert (status.moved, status.removed_by_administration, status.message_count) == (2, 2, 0)


def test_stat_tells_messages_and_bytes_by_state(cli, connection, queue):
    """Current and pending are the sums of their states, and the most there ever were is kept."""
    with connection.session(ack="CLIENT") as session:
        producer = session.producer(f"queue:{queue}")
        producer.send("one")
        with session.consumer(f"queue:{queue}") as consumer:
            assert consumer.receive(20).body == "one"
        producer.send_many(["two", "three"])
        rows = {row["state"].strip(): row for row in cli_rows(cli, queue)}
        assert (rows["current"]["messages"], rows["pending"]["messages"]) == (2, 1)
        assert rows["unacknowledged"] == {**rows["pending"], "state": "unacknowledged"}
        bytes_of_all = rows["current"]["bytes"] + rows["pending"]["bytes"]
        assert rows["highest ever"] == {
            "state": "highest ever",
            "messages": 3,
            "bytes": bytes_of_all,
        }
        shown = cli("queue", "show", queue, "--json").document
        assert shown["message_bytes"] == bytes_of_all


def cli_rows(cli, queue):
    """The rows of `queue stat --states`."""
    return cli("queue", "stat", queue, "--states", "--json").document


def test_show_tells_how_many_sends_a_quota_holds_up_and_since_when(cli, connection, queue):
    """INF-05: in no other figure."""
    assert cli("queue", "alter", queue, "--messages-max", 1).code == OK
    with connection.session() as session:
        producer = session.producer(f"queue:{queue}")
        producer.send("there")
        assert "blocked\tnone" in cli("queue", "show", queue).lines
        waiting = producer.send_async("held up")
        session.producer(f"queue:{queue}.other").send("a sign that the first was read")
        shown = cli("queue", "show", queue, "--json").document
        assert (shown["blocked"]["puts"], shown["blocked"]["messages"]) == (1, 1)
        assert shown["blocked"]["since"].endswith("Z")
        assert (shown["current"], shown["pending"], shown["messages_high"]) == (1, 0, 1)
        (line,) = [one for one in cli("queue", "show", queue).lines if one.startswith("blocked\t")]
        assert f"1 send of 1 message, {shown['blocked']['bytes']} bytes, since 20" in line
        assert cli("queue", "alter", queue, "--messages-max", 0).code == OK
        assert waiting.result(20).sequence == 1


def test_the_queue_managers_quotas_are_shown_beside_what_counts_against_them(cli, connection):
    """`manager alter` sets them, for all queues and topics together (INF-04)."""
    before = cli("manager", "show", "--json").document
    assert before["messages_max"] == 0
    assert cli("manager", "alter", "--messages-max", 10_000, "--bytes-max", 2**30).code == OK
    try:
        shown = cli("manager", "show", "--json").document
        assert (shown["messages_max"], shown["bytes_max"]) == (10_000, 2**30)
        assert shown["messages"] >= 0
    finally:
        assert cli("manager", "alter", "--messages-max", 0, "--bytes-max", 0).code == OK
    assert cli("manager", "alter", "--messages-max", -1).code == USAGE


def test_redelivery_of_the_queue_manager_is_shown_where_it_is_taken(cli, queue, connection):
    """`manager alter` sets it, `queue show` tells whose a setting is (INF-16)."""
    assert cli("manager", "alter", "--redelivery-limit", 5).code == OK
    try:
        assert re.search(r"redelivery limit\t5\n", cli("manager", "show").out)
        assert "5, of the queue manager" in cli("queue", "show", queue).out
        shown = cli("queue", "show", queue, "--json").document
        assert (shown["inherited"], shown["settings"]["redelivery_limit"]) == (
            {"redelivery_limit": 5},
            -1,
        )
        assert cli("queue", "alter", queue, "--no-inherits-redelivery").code == OK
        assert "of the queue manager" not in cli("queue", "show", queue).out
    finally:
        assert cli("manager", "alter", "--redelivery-limit", "none").code == OK


def test_queue_why_says_who_gets_nothing_and_why(cli, queue, own_connection):
    """What holds up messages, then each consumer; JSON has the same as fields."""
    with own_connection.session(ack=ledgermq.AckMode.CLIENT) as session:
        session.producer(f"queue:{queue}").send("first", properties={"region": "US"})
        session.producer(f"queue:{queue}").send("later", delivery_delay=3600)
        consumer = session.consumer(f"queue:{queue}", selector="region = 'EU'")
        assert consumer.receive(timeout=0.1) is None
        answer = cli("queue", "why", queue)
        told = cli("queue", "why", queue, "--json").document
    assert answer.code == OK, answer.err
    assert answer.err == (
        f"1 of the 2 messages of queue {queue} can be delivered, and nobody may have them now\n"
    )
    assert [line.split("\t")[0] for line in answer.lines] == ["CAUSE", "unborn", "nothing-selected"]
    assert "region = 'EU'" in answer.lines[2]
    unborn, selecting = told["obstacles"]
    assert (unborn["cause"], unborn["messages"], unborn["session"]) == ("unborn", 1, None)
    assert unborn["until"].endswith("Z")
    assert (selecting["messages"], selecting["consumer"]) == (None, 1)
    assert told["message_count"] == 2


def test_queue_why_of_a_queue_that_is_not_there_is_refused(cli):
    """As of every command that names one."""
    answer = cli("queue", "why", "nowhere")
    assert answer.code == REFUSED
    assert "nowhere" in answer.err


def test_why_says_that_there_are_more_obstacles_to_pipes_too(cli, queue, connection):
    """Once only whoever sat at a terminal was told that a thousand rows are not all."""
    put(connection, queue, "kept")
    with connection.session() as session:
        kept = [session.consumer(f"queue:{queue}") for _ in range(OBSTACLES_MAX + 1)]
        answer = cli("queue", "why", queue)
        assert len(answer.lines) == OBSTACLES_MAX + 1
        assert f"there are more: these are the first {OBSTACLES_MAX}" in answer.err
        assert cli("queue", "why", queue, "--json").document["more"]
        assert kept
