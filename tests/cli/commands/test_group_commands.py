"""`ledgermq group` and the group affinity of queues on a real broker and worker."""

import pytest

from ledgermq.cli.commands import groups
from ledgermq.cli.printing.exits import OK, REFUSED, USAGE
from support.messages.grouped_items import get_items, group_id, put_items

pytestmark = pytest.mark.kafka

Y, Z = group_id("Y").hex(), group_id("Z").hex()


@pytest.fixture
def connection(own_connection):
    """Shared with no other test: these number consumers of the administration's session."""
    return own_connection


def table_of(answer):
    """The rows of a piped table, as mappings by its headings."""
    assert answer.code == OK, answer.err
    heading, *rows = [line.split("\t") for line in answer.lines]
    return [dict(zip(heading, row, strict=True)) for row in rows]


def test_group_list_says_what_is_there_and_what_is_missing(cli, queue, connection):
    """GRP-46: the oldest group first; then how much cannot be got in logical order, and why."""
    put_items(connection, queue, "A", "c{g=Z.3}", "a{g=Y.1}", "b{g=Y.2!}")
    answer = cli("group", "list", f"queue:{queue}")
    incomplete, complete = table_of(answer)
    assert (incomplete["GROUP"], complete["GROUP"]) == (Z, Y)
    assert (incomplete["STATE"], complete["STATE"]) == ("incomplete", "available")
    assert incomplete["MISSING"] == "messages 1 to 2, what comes after message 3"
    assert complete["MISSING"] == ""
    assert (complete["MESSAGES"], complete["ITEMS"], complete["HELD"]) == ("2", "2", "0")
    assert complete["SINCE"].endswith("Z")
    assert answer.err == (
        "1 of 4 messages cannot be got in logical order now: 1 in groups without their first item\n"
    )
    (left,) = table_of(cli("group", "list", queue, "--incomplete"))
    assert left["GROUP"] == Z


def test_group_list_says_who_holds_the_rest(cli, queue, connection):
    """GRP-17: session and consumer that the group is kept for."""
    put_items(connection, queue, "a{g=Y.1}", "b{g=Y.2!}")
    session = get_items(connection, queue, consumer=3, logical_order=True)
    (row,) = table_of(cli("group", "list", queue))
    assert (row["STATE"], row["HELD"]) == ("complete", "1")
    assert row["KEPT FOR"] == f"session {session}, consumer 3"


def test_group_list_for_programs_has_everything(cli, queue, connection):
    """With --json one document: the groups, and the count of what cannot be got, by reason."""
    put_items(connection, queue, "b{g=Y.2@3+4!}", "c{g=Y.4!}", "A")
    told = cli("group", "list", queue, "--json").document
    assert (told["queue"], told["message_count"]) == (queue, 3)
    assert (told["blocked"], told["blocked_at_least"]) == (2, False)
    assert told["blocked_by_reason"] == {"without_first_item": 2}
    (one,) = told["groups"]
    assert (one["group_id"], one["state"], one["complete"]) == (Y, "incomplete", False)
    assert one["missing"] == [[1, 1], [3, 3]]
    assert one["missing_segments"] == [{"group_sequence": 2, "start": 0, "end": 3}]
    assert (one["holder"], one["clashing"], one["first_sequence"]) == (None, [], 0)
    assert one["first_enqueued_at"].endswith("Z")


def test_group_list_of_a_queue_without_groups_is_empty(cli, queue):
    """A heading, and what the queue holds."""
    answer = cli("group", "list", queue)
    assert (table_of(answer), answer.err) == ([], "the queue holds no messages\n")
    assert cli("group", "list", queue, "--json").document["groups"] == []


def test_group_list_looks_into_no_more_groups_than_it_may(cli, queue, connection, monkeypatch):
    """With very many incomplete groups it says `at least` and does not ask for each."""
    monkeypatch.setattr(groups, "LOOKED_INTO_MAX", 1)
    put_items(connection, queue, "b{g=Y.2!}", "d{g=Z.2!}")
    answer = cli("group", "list", queue)
    assert answer.err.startswith("at least 1 of 2 messages cannot be got")
    assert cli("group", "list", queue, "--json").document["blocked_at_least"] is True


def test_group_show_marks_what_is_missing_between_the_items(cli, queue, connection):
    """Every item in logical order with its state, and who holds it."""
    put_items(connection, queue, "d{g=Y.4!}", "a{g=Y.1}", "b{g=Y.2@0+5}")
    session = get_items(connection, queue, consumer=3, group_id=group_id("Y"), group_sequence=4)
    rows = table_of(cli("group", "show", queue, f"ID:{Y.upper()}"))
    assert [(row["MESSAGE"], row["STATE"], row["SEQUENCE"]) for row in rows] == [
        ("1", "available", "1"),
        ("2", "available", "2"),
        ("2", "missing", ""),
        ("3", "missing", ""),
        ("4", "held", "0"),
    ]
    assert [(row["OFFSET"], row["LENGTH"], row["PART"]) for row in rows[1:3]] == [
        ("0", "5", "segment"),
        ("5", "", ""),
    ]
    last = rows[-1]
    assert (last["PART"], last["OFFSET"], last["PRIORITY"]) == ("last message", "", "4")
    assert (last["SESSION"], last["CONSUMER"]) == (str(session), "3")


def test_group_show_for_programs_has_each_item(cli, queue, connection):
    """With --json the items are those that are there; ranges say what is missing."""
    put_items(connection, queue, "b{g=Y.2}")
    told = cli("group", "show", queue, Y, "--json").document
    assert (told["queue"], told["group_id"], told["missing"]) == (queue, Y, [[1, 1]])
    (item,) = told["members"]
    assert (item["group_sequence"], item["state"], item["clashing"]) == (2, "available", False)


def test_group_is_named_by_the_beginning_of_its_id(cli, queue, connection):
    """One that fits is shown; several are named, none is refused, and no digits are wrong use."""
    put_items(connection, queue, "a{g=Y.1}", "b{g=Z.1}")
    assert cli("group", "show", queue, "5a", "--json").document["group_id"] == Z
    several = cli("group", "show", queue, "5")
    assert (several.code, Y in several.err, Z in several.err) == (USAGE, True, True)
    for digits in ("77", "77" * 24):
        none = cli("group", "show", queue, digits, "--json")
        assert (none.code, none.error["code"]) == (REFUSED, "group-unknown"), digits
        assert digits in none.error["message"]
    for wrong in ("Y", "", "5" * 49):
        assert cli("group", "show", queue, wrong).code == USAGE, wrong


def test_unknown_queue_and_topic_are_told(cli):
    """A queue that is not there is refused with its name; topics take no groups (GRP-45)."""
    for command in (("group", "list", "no.such"), ("group", "show", "no.such", "5")):
        answer = cli(*command, "--json")
        assert (answer.code, answer.error["code"]) == (REFUSED, "queue-unknown"), command
        assert "no.such" in answer.error["message"]
    topic = cli("group", "list", "topic:prices")
    assert (topic.code, "topics take no groups" in topic.err) == (USAGE, True)


def test_group_affinity_is_set_shown_and_altered(cli, queue, connection):
    """By `queue create`, `queue show`, `queue list` and `queue alter`; altering more leaves it."""
    assert cli("queue", "create", f"{queue}.a", "--group-affinity").code == OK
    assert cli("queue", "show", f"{queue}.a", "--json").document["group_affinity"] is True
    assert cli("queue", "show", queue, "--json").document["group_affinity"] is False
    assert cli("queue", "alter", queue, "--group-affinity").code == OK
    assert cli("queue", "alter", queue, "--description", "by customer").code == OK
    put_items(connection, queue, "a{g=Y.1}")
    (row,) = [one for one in table_of(cli("queue", "list")) if one["NAME"] == queue]
    assert (row["GROUPS"], row["AFFINITY"]) == ("1", "yes")
    assert cli("queue", "alter", queue, "--no-group-affinity").code == OK
    assert connection.admin.queue_status(queue).group_affinity is False
