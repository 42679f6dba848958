"""`ledgermq topic`, `subscription`, `binding` and selectors on a real broker and worker."""

import uuid

import pytest

from ledgermq.cli.printing.exits import OK, REFUSED, USAGE
from ledgermq.protocol.operations import CloseConsumer, OpenConsumer

pytestmark = pytest.mark.kafka


@pytest.fixture
def connection(own_connection):
    """Shared with no other test: these number consumers of the administration's session."""
    return own_connection


@pytest.fixture
def topic(connection) -> str:
    """A topic that no other test uses."""
    name = f"topic.{uuid.uuid4().hex[:12]}"
    connection.admin.create_topic(name)
    return name


def subscribe(connection, topic, name, *, number, shared=True, **fields):
    """Makes a durable subscription and leaves it without a consumer."""
    kind = {"subscription": name, "durable": True, "shared": shared}
    named = {"consumer": number, "destination": f"topic:{topic}", **kind, **fields}
    connection.admin._change(OpenConsumer, **named)
    connection.admin._change(CloseConsumer, consumer=number, unseen=[])


def test_topic_create_makes_a_topic_with_its_settings(cli):
    """A created topic shows what it was created with; a second creation is refused."""
    name = f"made.{uuid.uuid4().hex[:8]}"
    limits = ("--message-bytes-max", 99, "--unacknowledged-max", 5)
    made = cli("topic", "create", name, "--description", "rates", *limits)
    assert (made.code, made.out) == (OK, f"topic {name} created\n")
    shown = cli("topic", "stat", f"topic:{name}", "--json").document
    assert (shown["description"], shown["message_bytes_max"]) == ("rates", 99)
    assert shown["unacknowledged_max"] == 5
    assert cli("topic", "alter", name, "--unacknowledged-max", 0).code == OK
    assert cli("topic", "stat", name, "--json").document["unacknowledged_max"] == 0
    again = cli("topic", "create", f"topic:{name}", "--json")
    assert (again.code, again.error["code"]) == (REFUSED, "topic-exists")
    assert name in again.error["message"]


def test_a_topic_moves_what_nobody_wants_while_it_is_asked_to(cli):
    """The setting is created, shown and altered."""
    name = f"moving.{uuid.uuid4().hex[:8]}"

    def shown():
        return cli("topic", "show", name, "--json").document["settings"]["moves_unrouted"]

    assert cli("topic", "create", name, "--moves-unrouted").code == OK
    assert shown() is True
    assert cli("topic", "alter", name, "--message-bytes-max", 99).code == OK
    assert shown() is True
    assert cli("topic", "alter", name, "--no-moves-unrouted").code == OK
    assert shown() is False


def test_topic_stat_shows_everything_and_where_it_is_true(cli, topic, connection):
    """Piped, a label and a value a line, with the log position."""
    subscribe(connection, topic, f"s.{topic}", number=1)
    fields = dict(line.split("\t") for line in cli("topic", "stat", topic).lines)
    assert (fields["name"], fields["subscriptions"], fields["receivers"]) == (topic, "1", "0")
    assert fields["position"].startswith("QM1@")
    assert fields["first enqueued at"] == ""


def test_topic_list_shows_each_topic_once(cli, topic):
    """Piped, a heading and a line a topic; --json has every figure."""
    heading, *rows = [line.split("\t") for line in cli("topic", "list").lines]
    (row,) = [row for row in rows if row[0] == topic]
    figures = dict(zip(heading, row, strict=True))
    assert (figures["SUBSCR"], figures["DROPPED"]) == ("0", "0")
    (document,) = [one for one in cli("topic", "list", "--json").document if one["name"] == topic]
    assert document["next_sequence"] == 0


def test_unknown_topic_is_refused_with_its_name(cli):
    """Whoever asks for it, and for its subscriptions."""
    commands = [("topic", "stat", "no.such"), ("topic", "delete", "no.such")]
    commands += [("subscription", "list", "--topic", "no.such")]
    for command in commands:
        answer = cli(*command, "--json")
        assert (answer.code, answer.error["code"]) == (REFUSED, "topic-unknown"), command
        assert "no.such" in answer.error["message"]


def test_topic_delete_with_purge_counts_before_it_is_told_yes(cli, topic, connection):
    """Durable subscriptions stand in the way; --purge and --dry-run count, --yes deletes."""
    subscribe(connection, topic, f"s.{topic}", number=1)
    refused = cli("topic", "delete", topic)
    assert (refused.code, "topic-not-empty" in refused.err) == (REFUSED, True)
    asked = cli("topic", "delete", topic, "--purge")
    assert (asked.code, "1 subscription and 0 messages" in asked.err) == (USAGE, True)
    assert "--yes" in asked.err
    tried = cli("topic", "delete", topic, "--purge", "--dry-run", "--json").document
    assert tried == {"topic": topic, "subscriptions": 1, "messages": 0, "deleted": False}
    assert cli("topic", "delete", topic, "--purge", "--yes").out == f"topic {topic} deleted\n"
    assert cli("topic", "stat", topic).code == REFUSED


def test_subscription_list_shows_what_each_is(cli, topic, connection):
    """Of one topic or of all, as a table and as JSON."""
    subscribe(connection, topic, f"s.{topic}", number=1, selector="region = 'EU'")
    heading, row = [
        line.split("\t") for line in cli("subscription", "list", "--topic", topic).lines
    ]
    figures = dict(zip(heading, row, strict=True))
    assert (figures["TOPIC"], figures["NAME"], figures["KIND"]) == (topic, f"s.{topic}", "durable")
    assert (figures["SHARED"], figures["SELECTOR"]) == ("yes", "region = 'EU'")
    parts = ("CURRENT", "PENDING", "SENT", "EXPIRED", "REMOVED", "MOVED", "DROPPED")
    assert int(figures["ADDED"]) == sum(int(figures[part]) for part in parts)
    found = cli("subscription", "list", "--json").document
    (one,) = [one for one in found if one["topic"] == topic]
    assert (one["shared"], one["client_id"], one["message_count"]) == (True, "", 0)


def test_subscription_delete_says_what_is_not_there(cli, topic):
    """The name of a subscription that is unknown, and of an option that is missing."""
    answer = cli("subscription", "delete", topic, "--client-id", "", "--json")
    assert (answer.code, answer.error["code"]) == (REFUSED, "subscription-unknown")
    assert topic in answer.error["message"]
    missing = cli("subscription", "delete", topic)
    assert (missing.code, "--client-id" in missing.err) == (USAGE, True)


def test_subscription_delete_takes_it_away(cli, topic, connection):
    """A shared one without a client id, which --dry-run leaves alone."""
    name = f"s.{topic}"
    subscribe(connection, topic, name, number=1)
    tried = cli("subscription", "delete", name, "--client-id", "", "--dry-run", "--json").document
    assert (tried["messages"], tried["deleted"]) == (0, False)
    done = cli("subscription", "delete", name, "--client-id", "")
    assert (done.code, done.out) == (OK, f"subscription {name} deleted\n")
    assert connection.admin.subscriptions(topic) == []


def test_subscription_delete_asks_before_messages_go(cli, topic, connection):
    """A subscription that holds messages goes with --yes only."""
    name = f"s.{topic}"
    subscribe(connection, topic, name, number=1)
    assert cli("put", f"topic:{topic}", "x").code == OK
    asked = cli("subscription", "delete", name, "--client-id", "")
    assert (asked.code, "1 message:" in asked.err, "--yes" in asked.err) == (USAGE, True, True)
    assert cli("subscription", "delete", name, "--client-id", "", "--yes").code == OK
    assert connection.admin.topic(topic).dropped == 1


def test_subscription_of_a_client_id_is_deleted_with_it(cli, topic, connect):
    """While an application has the client id the command is refused; then it deletes."""
    name, client = f"s.{topic}", f"c.{topic}"
    with connect(client_id=client) as own:
        subscribe(own, topic, name, number=1, shared=False)
        refused = cli("subscription", "delete", name, "--client-id", client, "--json")
        assert (refused.code, refused.error["code"]) == (REFUSED, "client-id-in-use")
    done = cli("subscription", "delete", name, "--client-id", client, "--json").document
    assert (done["subscription"], done["client_id"], done["deleted"]) == (name, client, True)


def test_what_is_no_client_id_is_wrong_use(cli):
    """No connection can have it, as one can that is in use now."""
    answer = cli("subscription", "delete", "s", "--client-id", "a b", "--json")
    assert (answer.code, answer.error["code"]) == (USAGE, "setting-invalid")


def test_put_to_a_topic_is_numbered_by_it(cli, topic):
    """The answer names the topic; without subscriptions the message is dropped."""
    sent = cli("put", f"topic:{topic}", "4.20", "--json").document
    assert (sent["topic"], sent["sequence"]) == (topic, 0)
    assert f"put on topic {topic}" in cli("put", f"topic:{topic}", "4.30").out
    assert cli("topic", "stat", topic, "--json").document["dropped"] == 2


def test_put_get_and_browse_take_a_queue_with_its_kind(cli, queue):
    """`queue:NAME` is NAME."""
    assert cli("put", f"queue:{queue}", "x", "--json").document["queue"] == queue
    assert cli("browse", f"queue:{queue}", "--body-only").lines == ["x"]
    assert cli("get", f"queue:{queue}", "--body-only").lines == ["x"]


@pytest.mark.parametrize("command", ["get", "browse"])
def test_get_and_browse_do_not_take_topics(cli, topic, command):
    """Wrong use, and the answer says why."""
    answer = cli(command, f"topic:{topic}")
    assert (answer.code, "subscriptions" in answer.err) == (USAGE, True)


def test_selectors_choose_what_get_and_browse_show(cli, queue):
    """What is not selected stays; a selector that selects nothing ends without a message."""
    for region in ("EU", "US", "EU"):
        assert cli("put", queue, region, "--property", f"region={region}").code == OK
    chosen = ("--selector", "region = 'US'", "--body-only")
    assert cli("browse", queue, *chosen).lines == ["US"]
    assert cli("get", queue, "--count", 9, *chosen).lines == ["US"]
    assert cli("browse", queue, "--body-only").lines == ["EU", "EU"]
    none = cli("get", queue, *chosen)
    assert (none.code, none.out) == (OK, "")


@pytest.mark.parametrize("command", ["get", "browse"])
def test_selector_that_is_none_is_wrong_use(cli, queue, command):
    """The answer says where and why."""
    answer = cli(command, queue, "--selector", "a = ", "--json")
    assert (answer.code, answer.error["code"]) == (USAGE, "selector-invalid")


def test_get_takes_more_than_a_session_may_hold(cli, queue):
    """SES-07: it acknowledges in between; what it does not acknowledge, it holds no more of."""
    assert cli("queue", "alter", queue, "--unacknowledged-max", 2).code == OK
    assert cli("queue", "show", queue, "--json").document["unacknowledged_max"] == 2
    assert cli("put", queue, stdin=b"a\nb\nc\nd\ne\n").code == OK
    held = cli("get", queue, "--count", 4, "--no-ack", "--body-only")
    assert (held.code, held.lines) == (OK, ["a", "b"])
    assert cli("get", queue, "--count", 9, "--body-only").lines == ["a", "b", "c", "d", "e"]


@pytest.fixture
def bound(connection) -> str:
    """A queue that no other test uses, and the first word of topics."""
    name = f"bound{uuid.uuid4().hex[:12]}"
    connection.admin.create_queue(name)
    return name


def test_what_is_put_to_topics_goes_to_the_queue_that_they_are_bound_to(cli, bound):
    """Until the binding is ended."""
    pattern, queue = f"{bound}.*", f"queue:{bound}"
    made = cli("binding", "create", pattern, queue)
    assert (made.code, made.out) == (OK, f"topic {pattern} is bound to {queue}\n")
    assert cli("put", f"topic:{bound}.eu", "tea").code == OK
    assert cli("queue", "show", bound, "--json").document["message_count"] == 1
    assert cli("dlq", "list", bound, "--json").document == []
    # As elsewhere, a name alone is a queue, and a topic may say that it is one.
    ended = cli("binding", "delete", f"topic:{pattern}", bound)
    assert (ended.code, ended.out) == (OK, f"topic {pattern} is no longer bound to {queue}\n")
    assert cli("put", f"topic:{bound}.eu", "milk").code == OK
    assert cli("queue", "show", bound, "--json").document["message_count"] == 1
    again = cli("binding", "delete", pattern, queue, "--json")
    assert (again.code, again.error["code"]) == (REFUSED, "binding-unknown")


def test_bindings_are_listed_by_the_topics_that_they_take_in(cli, bound):
    """With where they hand on to, and what."""
    pattern, queue = f"{bound}.#", f"queue:{bound}"
    assert cli("binding", "create", pattern, queue, "--selector", "a = 1").code == OK
    (found,) = cli("binding", "list", "--topic", f"{bound}.x.y", "--json").document
    assert (found["topics"], found["destination"]) == (pattern, queue)
    assert found["selector"] == "a = 1"
    assert pattern in cli("binding", "list").out
    assert cli("binding", "list", "--topic", "nothing", "--json").document == []
    assert cli("binding", "list", "--topic", "a b").code == USAGE
    assert cli("binding", "delete", pattern, queue).code == OK


def test_what_binds_nothing_is_refused_in_words(cli, bound):
    """It says what a pattern is, and what is to be made first."""
    wrong = cli("binding", "create", f"{bound}*", f"queue:{bound}", "--json")
    assert (wrong.code, wrong.error["code"]) == (REFUSED, "name-invalid")
    assert "whole words" in wrong.error["message"]
    missing = cli("binding", "create", bound, "queue:nowhere.at.all", "--json")
    assert (missing.code, missing.error["code"]) == (REFUSED, "destination-unknown")
    assert "create it first" in missing.error["message"]
