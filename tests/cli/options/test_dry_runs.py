"""A dry run refuses what its command refuses in earnest; on a queue manager in memory."""

from itertools import chain

import pytest

from ledgermq.cli.printing.exits import OK, REFUSED, USAGE
from ledgermq.protocol.limits import ACTOR_CHARACTERS_MAX, DESCRIPTION_CHARACTERS_MAX

BY_HAND = (
    ("queue", "purge", "a"),
    ("queue", "move", "a", "b"),
    ("msg", "copy", "a", "b"),
    ("msg", "delete", "a", "--sequence", "0"),
    ("dlq", "retry", "a"),
    ("dlq", "purge", "a"),
    ("log", "relocate", "--all"),
    ("journal", "backup"),
    ("txn", "rollback", "7"),
)


@pytest.mark.parametrize("command", BY_HAND, ids=" ".join)
def test_who_asks_and_why_are_looked_at_before_anything_else(memory, command):
    """Text that the log does not take was found out in earnest only."""
    for option, text, told in (
        ("--reason", "x" * (DESCRIPTION_CHARACTERS_MAX + 1), "it has 1,025 characters, must have"),
        ("--actor", "x" * (ACTOR_CHARACTERS_MAX + 1), "it has 129 characters, must have 1 to 128"),
        ("--actor", "", "it has 0 characters, must have 1 to 128"),
    ):
        given = {"--reason": "tidying", option: text}.items()
        answer = memory(*command, *chain.from_iterable(given), "--dry-run", "--json")
        assert (answer.code, told in answer.error["message"]) == (USAGE, True), answer.err


@pytest.mark.parametrize("command", [("journal", "republish"), ("put", "a", "x")], ids=" ".join)
def test_no_time_is_taken_that_no_message_may_have(memory, command):
    """A hundred years are the most, whether or not anything is put."""
    answer = memory(*command, "--time-to-live", "36601d", "--json")
    assert answer.code == USAGE
    assert "36601d is more than 36600d, the most that there may be" in answer.error["message"]


@pytest.mark.parametrize("place", ["file", "file/below", "made/below"])
def test_a_directory_that_takes_no_backup_is_told_before_there_is_one(memory, tmp_path, place):
    """The look makes none."""
    (tmp_path / "file").touch()
    command = ("journal", "backup", "--dry-run", "--json", "--directory", tmp_path / place)
    answer = memory(*command)
    told = answer.code == USAGE and "file" in answer.error["message"]
    assert told is place.startswith("file"), answer.err
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("command", [("queue", "move"), ("msg", "copy")], ids=" ".join)
def test_messages_go_nowhere_but_where_they_are_not(memory, broker_in_memory, command):
    """As the queue manager says it, also before the question whether to go on."""
    with broker_in_memory.connect() as connection:
        connection.admin.create_queue("a")
    for more in (["--dry-run"], [], ["--yes"]):
        answer = memory(*command, "a", "queue:a", "--reason", "tidying", *more)
        assert (answer.code == OK, "queue:a is where the messages are" in answer.err) == (
            False,
            True,
        )


def same(memory, *command):
    """What a deletion says in a dry run, after it was seen to be refused in earnest, too."""
    tried = memory(*command, "--dry-run", "--json")
    assert tried.code == REFUSED, tried.out
    told = tried.document["refused"]
    assert "would not be deleted: " + told in memory(*command, "--dry-run").out
    assert memory(*command, "--yes").code == REFUSED
    return told


def test_a_queue_that_stays_is_not_said_to_go(memory, broker_in_memory):
    """It is in use, the settings of another name it, or it holds messages."""
    with broker_in_memory.connect() as connection:
        connection.admin.create_queue("a")
        with connection.session(transacted=True) as session:
            consumer = session.consumer("queue:a")
            session.producer("queue:a").send("x")
            session.flush()
            told = same(memory, "queue", "delete", "a", "--purge")
            assert "by 1 consumer, 1 uncommitted put and 0 deliveries in flight" in told
            session.commit()
            assert consumer.receive(timeout=1).body == "x"
            told = same(memory, "queue", "delete", "a", "--purge")
            assert "1 delivery in flight" in told
        assert "it holds 1 message: --purge" in same(memory, "queue", "delete", "a")
        assert memory("queue", "delete", "a", "--purge", "--dry-run").code == OK
        connection.admin.create_topic("t", error_destination="queue:a")
        told = same(memory, "queue", "delete", "a", "--purge")
        assert "it is the error destination of topic:t" in told
        connection.admin.delete_topic("t")
        connection.admin.alter_queue_manager(error_destination="queue:a")
        told = same(memory, "queue", "delete", "a", "--purge")
        assert f"error destination of {connection.queue_manager}" in told


def test_a_topic_or_subscription_that_stays_is_not_said_to_go(memory, broker_in_memory):
    """Its subscriptions are durable, or have consumers."""
    with broker_in_memory.connect() as connection:
        connection.admin.create_topic("t")
        with connection.session() as session:
            session.consumer("topic:t", subscription="s", durable=True, shared=True)
            told = same(memory, "topic", "delete", "t", "--purge")
            assert "in use, by 1 consumer" in told
            told = same(memory, "subscription", "delete", "s", "--client-id", "")
            assert "in use, by 1 consumer" in told
        assert "1 durable subscription and 0 messages" in same(memory, "topic", "delete", "t")
        for command in (("topic", "delete", "t", "--purge"), ("subscription", "delete", "s")):
            more = ("--client-id", "") if command[0] == "subscription" else ()
            answer = memory(*command, *more, "--dry-run", "--json")
            assert (answer.code, answer.document["deleted"]) == (OK, False)
