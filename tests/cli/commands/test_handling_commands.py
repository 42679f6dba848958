"""`ledgermq queue purge|move`, `msg` and `dlq` on a queue manager in memory."""

import pytest

from ledgermq.cli.printing.exits import OK, REFUSED, USAGE

WHY = ("--reason", "tidying", "--yes")


def put(broker, queue, *bodies, **more):
    """Puts messages."""
    with broker.connect() as connection, connection.session() as session:
        for body in bodies:
            session.producer(f"queue:{queue}").send(body, **more)


def bodies(broker, queue):
    """What a queue shows."""
    with broker.connect() as connection:
        return [message.body for message in connection.browser(f"queue:{queue}")]


def test_purge_needs_a_reason_and_a_yes(memory, broker_in_memory):
    """Without them nothing is done, and the command says what it would do."""
    put(broker_in_memory, "a", "x", "y")
    answer = memory("queue", "purge", "a", "--yes")
    assert (answer.code, "--reason" in answer.err) == (USAGE, True)
    answer = memory("queue", "purge", "a", "--reason", "tidying")
    assert answer.code == USAGE
    assert "this would purge 2 messages of queue:a: add --yes" in answer.err
    assert bodies(broker_in_memory, "a") == ["x", "y"]
    answer = memory("queue", "purge", "a", *WHY)
    assert (answer.code, answer.out) == (OK, "2 messages of queue:a purged\n")
    assert bodies(broker_in_memory, "a") == []


def test_dry_run_counts_and_lists(memory, broker_in_memory):
    """It needs no reason, changes nothing, and says what it is true at."""
    put(broker_in_memory, "b", "x", "y", "z")
    answer = memory("msg", "delete", "b", "--sequence", "1..2", "--dry-run")
    assert answer.code == OK
    assert answer.lines[0] == "2 messages of queue:b would be deleted"
    assert [line.split("\t")[0] for line in answer.lines[1:]] == ["SEQ", "1", "2"]
    told = memory("msg", "delete", "b", "--sequence", "1..2", "--dry-run", "--json").document
    assert (told["affected"], told["skipped"], told["dry_run"]) == (2, 0, True)
    assert [one["body"] for one in told["messages"]] == ["y", "z"]
    assert bodies(broker_in_memory, "b") == ["x", "y", "z"]


def test_messages_are_moved_copied_and_deleted(memory, broker_in_memory):
    """By selector or by sequence number; JSON says how many."""
    put(broker_in_memory, "c", "red", properties={"color": "red"})
    put(broker_in_memory, "c", "blue", "green")
    put(broker_in_memory, "d", "first")
    moved = memory("msg", "move", "c", "d", "--selector", "color = 'red'", *WHY, "--json")
    assert (moved.document["action"], moved.document["affected"]) == ("move", 1)
    assert memory("msg", "copy", "c", "d", "--sequence", "1", *WHY).code == OK
    assert bodies(broker_in_memory, "d") == ["first", "red", "blue"]
    assert memory("msg", "delete", "c", "--sequence", "2", *WHY).code == OK
    assert bodies(broker_in_memory, "c") == ["blue"]
    assert memory("queue", "move", "c", "queue:d", *WHY).out == "1 message of queue:c moved\n"
    assert bodies(broker_in_memory, "d") == ["first", "red", "blue", "blue"]


@pytest.mark.parametrize(
    "wrong",
    [
        ("msg", "delete", "e", *WHY),
        ("msg", "delete", "e", "--sequence", "x", *WHY),
        ("msg", "delete", "e", "--sequence", "3..2", *WHY),
        ("queue", "purge", "e", "--sequence", "1", *WHY),
        ("msg", "show", "topic:e", "0"),
    ],
)
def test_wrong_use_is_said(memory, broker_in_memory, wrong):
    """What is to be deleted must be named, and numbers must be numbers."""
    put(broker_in_memory, "e", "x")
    assert memory(*wrong).code == USAGE
    assert bodies(broker_in_memory, "e") == ["x"]


def test_a_topic_in_the_place_of_a_queue_is_called_what_it_is(memory):
    """And a queue in that of a topic: no name has a colon, which is not what is wrong."""
    answer = memory("queue", "show", "topic:prices")
    assert (answer.code, answer.err) == (USAGE, "error: 'topic:prices' is a topic, no queue\n")
    answer = memory("topic", "show", "queue:orders")
    assert (answer.code, answer.err) == (USAGE, "error: 'queue:orders' is a queue, no topic\n")


@pytest.mark.parametrize("group", ["msg", "dlq"])
def test_what_is_not_there_is_refused_as_by_every_show(memory, broker_in_memory, group):
    """Numbers are no wrong use; whether a message is held or not there, its code says."""
    put(broker_in_memory, "e", "x")
    missing = memory(group, "show", "e", "7", "--json")
    assert (missing.code, missing.error["code"]) == (REFUSED, "message-unknown")
    with broker_in_memory.connect() as connection, connection.session(transacted=True) as session:
        session.consumer("queue:e").receive()
        held = memory(group, "show", "e", "0", "--json")
    assert (held.code, held.error["code"]) == (REFUSED, "message-held")
    assert "somebody holds it" in held.error["message"]


@pytest.mark.parametrize("group", ["queue", "dlq"])
def test_a_purge_offers_no_sequence_numbers(memory, group):
    """Its help names the command that takes them."""
    told = memory(group, "purge", "--help").out
    assert "--sequence" not in told
    assert "msg delete" in told


def test_a_move_to_what_is_not_there_is_refused(memory, broker_in_memory):
    """It is not created."""
    put(broker_in_memory, "f", "x")
    for how in (WHY, ("--dry-run",), ("--reason", "r")):
        answer = memory("queue", "move", "f", "nowhere", *how)
        assert (answer.code, "queue-unknown" in answer.err) == (REFUSED, True)
        answer = memory("msg", "copy", "f", "topic:nowhere", *how)
        assert (answer.code, "topic-unknown" in answer.err) == (REFUSED, True)
    assert bodies(broker_in_memory, "f") == ["x"]


def test_dead_letters_are_listed_shown_sent_back_and_purged(memory, broker_in_memory):
    """What expired says where it was; it goes back there, or is removed."""
    assert memory("queue", "create", "dead").code == OK
    assert memory("queue", "create", "g", "--expiry-destination", "dead").code == OK
    put(broker_in_memory, "g", "one", "two", "three", time_to_live=1)
    broker_in_memory.advance(2)
    told = memory("dlq", "list", "--json").document
    assert told == [{"queue": "dead", "reason": "expired", "origin": "queue:g", "messages": 3}]
    shown = memory("dlq", "show", "dead", "1", "--json").document
    assert (shown["body"], shown["origin"]["destination"]) == ("two", "queue:g")
    assert (shown["origin"]["reason"], shown["origin"]["sequence"]) == ("expired", 1)
    assert "origin reason\texpired" in memory("dlq", "show", "dead", "1").lines
    planned = memory("dlq", "retry", "dead", "--limit", "1", "--dry-run")
    assert planned.lines[0] == "1 message of queue:dead would be sent back"
    sent = memory("dlq", "retry", "dead", "--limit", "1", *WHY)
    assert sent.out == "1 message of queue:dead sent back\n"
    assert bodies(broker_in_memory, "g") == ["one"]
    assert memory("dlq", "purge", "dead", *WHY).out == "2 messages of queue:dead purged\n"
    assert memory("dlq", "list", "dead").lines == ["QUEUE\tREASON\tFROM\tMESSAGES"]


def test_a_retry_says_why_a_message_stays(memory, broker_in_memory):
    """One whose origin is gone, and one that was put there itself."""
    memory("queue", "create", "gone")
    memory("queue", "create", "dead")
    put(broker_in_memory, "gone", "a")
    put(broker_in_memory, "dead", "b")
    why = ("--reason", "test", "--yes")
    assert memory("queue", "move", "gone", "dead", *why).code == OK
    assert memory("queue", "delete", "gone").code == OK
    answer = memory("dlq", "retry", "dead", *why)
    assert answer.code == OK
    assert "2 left as they are: somebody holds them, they came from nowhere or by" in answer.out


def test_puts_are_disabled_and_enabled(memory, broker_in_memory):
    """One option of `queue alter`; `show` says which it is."""
    put(broker_in_memory, "h", "x")
    assert memory("queue", "alter", "h", "--puts-disabled").code == OK
    assert memory("queue", "show", "h", "--json").document["settings"]["puts_disabled"] is True
    assert memory("put", "h", "y").code == REFUSED
    assert memory("queue", "alter", "h", "--no-puts-disabled").code == OK
    assert memory("put", "h", "y").code == OK


def test_a_queue_is_told_by_its_name_whether_or_not_that_says_that_it_is_one(memory):
    """As a topic is; `queue:n` is what messages of other commands call it."""
    assert memory("queue", "create", "queue:n").out == "queue n created\n"
    assert memory("queue", "suspend", "queue:n", "--json").document["queue"] == "n"
    assert memory("queue", "delete", "queue:n", "--dry-run").out.startswith("queue n would be")
    assert memory("topic", "create", "topic:n").out == "topic n created\n"
