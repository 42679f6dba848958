"""`ledgermq put`, `get`, `browse` and `session list` on a real broker and worker."""

import json
import signal
import subprocess
import sys
import threading
import time

import pytest

import ledgermq
from ledgermq.cli.printing.exits import OK, REFUSED, USAGE
from ledgermq.client.sending import making

pytestmark = pytest.mark.kafka


def test_put_and_get_carry_text_with_everything_around_it(cli, queue):
    """What was put with a message comes out with it."""
    sent = cli(
        *("put", queue, "hello", "--property", "region=EU", "--property", "count=3"),
        *("--property", "share=0.5", "--property", "code=007", "--property", "late=true"),
        *("--priority", 7, "--correlation-id", "c1", "--reply-to", "queue:answers"),
        *("--type", "greeting", "--non-persistent", "--json"),
    ).document
    (got,) = cli("get", queue, "--json").documents
    assert got["message_id"] == sent["message_id"]
    assert got["sequence"] == sent["sequence"] == 0
    assert (got["body_kind"], got["body"]) == ("text", "hello")
    assert got["properties"] == {
        "region": "EU",
        "count": 3,
        "share": 0.5,
        "code": "007",
        "late": True,
    }
    assert (got["priority"], got["correlation_id"], got["type"]) == (7, "c1", "greeting")
    assert (got["reply_to"], got["persistent"]) == ("queue:answers", False)


def test_put_takes_durations_for_how_long_a_message_lives_and_when_it_is_born(cli, queue):
    """A time to live ends it; until its delivery delay is over nobody gets it (INF-01)."""
    assert cli("put", queue, "late", "--delivery-delay", "1h").code == OK
    assert cli("put", queue, "short", "--time-to-live", "1ms").code == OK
    assert cli("get", queue, "--json").documents == []
    shown = cli("queue", "show", queue, "--json").document
    assert (shown["unborn"], shown["expired"]) == (1, 1)
    assert cli("put", queue, "never", "--time-to-live", "-1s").code == USAGE


def test_put_json_body_is_a_map_message(cli, queue):
    """A JSON object becomes a map message."""
    assert cli("put", queue, '{"id": 1, "name": "tea", "gone": null}', "--json-body").code == OK
    (got,) = cli("get", queue, "--json").documents
    assert (got["body_kind"], got["body"]) == ("map", {"id": 1, "name": "tea", "gone": None})


@pytest.mark.parametrize("body", ["{", "[1]", "3"])
def test_put_refuses_what_is_no_json_object(cli, queue, body):
    """--json-body takes objects only, and nothing is put otherwise."""
    assert cli("put", queue, body, "--json-body").code == USAGE
    assert cli("queue", "show", queue, "--json").document["message_count"] == 0


def test_put_refuses_nested_values_by_name(cli, queue):
    """A nested value is refused with the name of its entry."""
    answer = cli("put", queue, '{"deep": {"a": 1}}', "--json-body")
    assert answer.code == USAGE
    assert "deep" in answer.err


def test_put_file_is_bytes(cli, queue, tmp_path):
    """A file's bytes arrive as they are."""
    path = tmp_path / "picture"
    path.write_bytes(b"\xff\x00\xfe")
    assert cli("put", queue, "--file", path).code == OK
    (got,) = cli("get", queue, "--json").documents
    assert (got["body_kind"], got["body_encoding"], got["body"]) == ("bytes", "base64", "/wD+")


def test_put_reads_a_message_a_line(cli, queue):
    """Without a body each line of standard input is a message, in order."""
    answer = cli("put", queue, stdin=b"one\ntwo\n\nfour\n")
    assert "4 messages put" in answer.out
    assert cli("get", queue, "--count", 9, "--body-only").lines == ["one", "two", "", "four"]


def test_put_reads_json_lines(cli, queue):
    """With --json-body each line is an object, and a bad line is named."""
    lines = b'{"n": 1}\n{"n": 2}\n'
    answer = cli("put", queue, "--json-body", "--json", stdin=lines)
    assert answer.document == {"queue": queue, "count": 2, "last_sequence": 1}
    bad = cli("put", queue, "--json-body", stdin=b'{"n": 3}\nnonsense\n')
    assert bad.code == USAGE
    assert "line 2" in bad.err


def test_put_that_stops_half_way_says_how_many_were_put(cli, queue):
    """Whoever puts the input again would put those twice."""
    bad = cli("put", queue, "--json-body", "--json", stdin=b'{"n": 1}\n{"n": 2}\nnonsense\n')
    assert (bad.code, "line 3" in bad.error["message"]) == (USAGE, True)
    assert "2 messages of the input put" in bad.error["message"]
    assert cli("queue", "alter", queue, "--messages-max", 3).code == OK
    full = cli("put", queue, "--timeout", 3, stdin=b"a\nb\nc\n")
    assert (full.code, "1 message of the input put" in full.err) == (REFUSED, True)
    assert len(cli("browse", queue, "--body-only").lines) == 3


def test_put_names_the_line_that_is_no_text(cli, queue):
    """The lines before it are put, and counted."""
    bad = cli("put", queue, stdin=b"one\ntwo\n\xff\xfe\nfour\n")
    assert (bad.code, "line 3 is no text in utf-8" in bad.err) == (USAGE, True)
    assert "2 messages of the input put" in bad.err
    assert cli("browse", queue, "--body-only").lines == ["one", "two"]


def test_put_reads_no_more_than_a_message_can_have(cli, queue, tmp_path, monkeypatch):
    """A file or line without end filled the memory; what cannot be read is named."""
    monkeypatch.setattr("ledgermq.cli.commands.put.INPUT_MAX", 100)
    endless = cli("put", queue, "--file", "/dev/zero")
    assert (endless.code, "/dev/zero is longer than 100" in endless.err) == (REFUSED, True)
    long = cli("put", queue, "--json", stdin=b"one\n" + b"x" * 101 + b"\nthree\n")
    assert (long.code, long.error["code"]) == (REFUSED, "message-too-large")
    assert "line 2 is longer than 100" in long.error["message"]
    assert "1 message of the input put" in long.error["message"]
    bad = cli("put", queue, "--file", "/proc/self/mem")
    assert (bad.code, "/proc/self/mem: Input/output error" in bad.err) == (REFUSED, True)


def test_put_refuses_a_file_of_json_that_is_no_text(cli, queue, tmp_path):
    """Its bytes are named, and nothing is put."""
    path = tmp_path / "document"
    path.write_bytes(b'{"n": "\xff"}')
    bad = cli("put", queue, "--json-body", "--file", path)
    assert (bad.code, "the file is no JSON" in bad.err) == (USAGE, True)
    assert cli("browse", queue, "--body-only").lines == []


def test_put_of_nothing_says_so(cli, queue):
    """Empty standard input puts nothing."""
    assert cli("put", queue, "--json").document == {"queue": queue, "count": 0}


def test_put_refuses_a_message_over_the_queues_limit(cli, queue):
    """A queue's own limit is a refusal that names queue and reason."""
    assert cli("queue", "alter", queue, "--message-bytes-max", 10).code == OK
    answer = cli("put", queue, "x" * 100)
    assert answer.code == REFUSED
    assert queue in answer.err
    assert "message-too-large" in answer.err


def test_put_refuses_a_body_and_a_file(cli, queue, tmp_path):
    """Two bodies are one too many."""
    path = tmp_path / "file"
    path.touch()
    assert cli("put", queue, "text", "--file", path).code == USAGE


@pytest.mark.parametrize("given", ["novalue", "=x"])
def test_put_refuses_a_property_without_name_or_value(cli, queue, given):
    """A property is NAME=VALUE."""
    assert cli("put", queue, "text", "--property", given).code == USAGE


def test_get_takes_by_priority_then_order(cli, queue):
    """Messages come out by priority, then as they were put."""
    for body, priority in (("low", 1), ("high", 9), ("next", 9)):
        cli("put", queue, body, "--priority", priority)
    assert cli("get", queue, "--count", 3, "--body-only").lines == ["high", "next", "low"]


def test_ctrl_c_while_lines_are_put_says_how_many_were(worker, topic_prefix, queue, connection):
    """Whoever stops it knows what not to put again."""
    where = ("--bootstrap", worker, "--topic-prefix", topic_prefix)
    process = subprocess.Popen(
        [sys.executable, "-m", "ledgermq", "put", queue, *where],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdin.write("a\nb\n")
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while connection.admin.queue_status(queue).message_count < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "\nerror: stopped by Ctrl-C; 2 messages of the input put\n"


def test_get_without_ack_gives_back_what_it_saw(cli, queue):
    """--no-ack leaves the message there; its next delivery counts as a second one."""
    cli("put", queue, "again")
    first = cli("get", queue, "--no-ack", "--json").documents[0]
    second = cli("get", queue, "--json").documents[0]
    assert (first["delivery_count"], second["delivery_count"]) == (1, 2)
    assert (first["sequence"], second["redelivered"]) == (second["sequence"], True)


def test_get_of_an_empty_queue_ends_without_a_message(cli, queue):
    """Nothing there is no error: the answer is empty, and a remark says so."""
    answer = cli("get", queue)
    assert (answer.code, answer.out) == (OK, "")
    assert "no message available" in answer.err


def test_get_of_a_mistyped_queue_creates_none_and_names_the_one_that_was_meant(
    cli, queue, connection
):
    """As `browse` of it; who waits may only be too early, and has it created."""
    mistyped = f"{queue}x"
    for command in ("get", "browse"):
        answer = cli(command, mistyped)
        assert (answer.code, answer.out) == (REFUSED, "")
        assert answer.err.endswith(f"[queue-unknown]; did you mean {queue}?\n")
    assert mistyped not in [one.name for one in connection.admin.list_queues()]
    early = f"{queue}.early"
    assert cli("get", early, "--wait", 0.1).code == OK
    assert early in [one.name for one in connection.admin.list_queues()]


def test_a_queue_that_is_a_topic_is_told_so(cli, queue, connection):
    """And the other way round."""
    connection.admin.create_topic(f"{queue}.topic")
    assert "; there is a topic of that name\n" in cli("queue", "stat", f"{queue}.topic").err
    assert "; there is a queue of that name\n" in cli("topic", "show", queue).err


def test_the_source_of_a_copy_to_nowhere_is_not_what_was_meant(cli, queue, connection):
    """The queue manager names the source, which is there; what is not is the target."""
    connection.admin.create_topic(queue)
    answer = cli("msg", "copy", queue, f"{queue}.none", "--reason", "r", "--yes")
    assert answer.code == REFUSED
    assert answer.err.endswith(f"'{queue}.none' does not exist [queue-unknown]\n")


def test_get_waits_for_a_message_that_comes_later(cli, queue, connection):
    """With --wait a message that is put meanwhile is taken."""

    def put_late():
        time.sleep(2)
        with connection.session() as session:
            session.producer(f"queue:{queue}").send("late")

    late = threading.Thread(target=put_late)
    late.start()
    answer = cli("get", queue, "--wait", 60, "--body-only")
    late.join()
    assert answer.lines == ["late"]


def test_browse_takes_nothing(cli, queue):
    """Browsing shows messages in delivery order and leaves them available."""
    cli("put", queue, stdin=b"a\nb\nc\n")
    assert cli("browse", queue, "--body-only").lines == ["a", "b", "c"]
    assert [json.loads(line)["body"] for line in cli("browse", queue, "--json").lines] == [
        "a",
        "b",
        "c",
    ]
    some = cli("browse", queue, "--count", 2, "--body-only")
    assert some.lines == ["a", "b"]
    assert "2 messages shown; there are more" in some.err
    assert "there are more" in cli("browse", queue, "--count", 2, "--json").err
    assert cli("browse", queue, "--count", 3, "--json").err == ""
    assert cli("browse", queue, "--count", 10**30, "--body-only").lines == ["a", "b", "c"]
    assert cli("queue", "show", queue, "--json").document["current"] == 3


def test_a_message_that_cannot_be_read_hides_no_other(cli, queue, connection, monkeypatch):
    """It is shown with why; who would take it is told what to do, and takes nothing."""
    with connection.session() as session:
        producer = session.producer(f"queue:{queue}")
        producer.send("before")
        with monkeypatch.context() as garbled:
            garbled.setattr(making, "encode_content", lambda *_given, **_named: b"garbage")
            producer.send("garbled")
        producer.send("behind")
    assert [line.split("\t")[-1][:8] for line in cli("browse", queue).lines[1:]] == [
        *("before", "(message", "behind"),
    ]
    _, unread, _ = cli("browse", queue, "--json").documents
    assert ("cannot be read" in unread["undecodable"], unread["sequence"]) == (True, 1)
    bodies = cli("browse", queue, "--body-only")
    assert (bodies.code, bodies.lines) == (OK, ["before", "behind"])
    assert "cannot be read" in bodies.err
    looked = cli("msg", "delete", queue, "--sequence", 1, "--dry-run")
    assert "cannot be read" in looked.out
    refused = cli("get", queue, "--count", 3)
    assert (refused.code, refused.out) == (USAGE, "")
    assert f"`ledgermq msg delete {queue} --sequence 1`" in refused.err
    assert cli("queue", "show", queue, "--json").document["current"] == 3


def test_browse_shows_groups_in_logical_order(cli, queue, connection):
    """A table with group and number, the last message marked; JSON says all of it (GRP-06)."""
    group_id = bytes(range(24))
    with connection.session() as session:
        producer = session.producer(f"queue:{queue}")
        for number in (2, 1):
            place = ledgermq.GroupPlace(
                group_id=group_id, group_sequence=number, last_in_group=number == 2
            )
            producer.send(f"m{number}", group=place)
    assert cli("browse", queue, "--body-only").lines == ["m2", "m1"]
    assert cli("browse", queue, "--order", "logical", "--body-only").lines == ["m1", "m2"]
    assert f"{group_id.hex()}:2!" in cli("browse", queue).lines[-2].split("\t")
    told = json.loads(cli("browse", queue, "--order", "logical", "--json").lines[1])
    assert (told["group_id"], told["group_sequence"], told["offset"]) == (group_id.hex(), 2, 0)
    assert told["group_status"] == "LAST_MESSAGE_IN_GROUP"
    assert told["segment_status"] == "NOT_A_SEGMENT"


def test_tables_are_tab_separated_when_piped(cli, queue):
    """A pipe gets a heading and a line a message, with tabs between."""
    cli("put", queue, "x\ty\nz")
    heading, row = [line.split("\t") for line in cli("browse", queue).lines]
    assert heading[:5] == ["SEQUENCE", "PRI", "DELIVERY", "ENQUEUED", "MESSAGE ID"]
    assert heading[5:] == ["GROUP", "BODY"]
    assert row[0] == "0"
    assert row[-1] == "x\\ty\\nz"


def test_a_queue_that_is_not_created_by_itself_is_refused(cli, connection):
    """With automatic creation off, put, get and browse name the queue that is missing."""
    connection.admin.alter_queue_manager(automatic_creation=False)
    try:
        for command in (("put", "gone", "x"), ("get", "gone"), ("browse", "gone")):
            answer = cli(*command)
            assert answer.code == REFUSED, command
            assert "gone" in answer.err
            assert "queue-unknown" in answer.err
    finally:
        connection.admin.alter_queue_manager(automatic_creation=True)


def test_sessions_show_what_they_hold(cli, queue, connection):
    """An open unit of work shows its get and its put."""
    cli("put", queue, "a")
    with connection.session(transacted=True) as session:
        session.consumer(f"queue:{queue}", prefetch=1).receive(timeout=10)
        found = cli("session", "list", "--json").document
        (one,) = [row for row in found if row["session"] == session.handle]
        assert (one["acknowledge_mode"], one["in_flight"]) == ("TRANSACTED", 1)
        assert one["connection"] == connection.identity
        heading = cli("session", "list").lines[0].split("\t")
        assert "IN FLIGHT" in heading
