"""Tests of how queues come and go, read off administrative operations without the fold."""

from ledgermq_spark.derivation.administration import read_directory
from ledgermq_spark.derivation.contents import Contents
from ledgermq_spark.derivation.directory import AdministrationRow, Situation


def row(position, kind, queue="q", **more):
    """An administrative operation in turn."""
    return AdministrationRow(position=position, kind=kind, queue=queue, **more)


def held(boundaries, *changes, queue="q"):
    """Messages numbered after so many of the boundaries, there for all but so many, how many."""
    return Contents({queue: boundaries}, {queue: list(changes)})


def test_a_first_use_creates_a_queue_and_a_later_create_is_refused():
    """Automatic creation comes first in the log."""
    found = read_directory([row(5, "CreateQueue"), row(2, "Use")], {})
    assert [(one.queue, one.created) for one in found.lifetimes] == [("q", 2)]
    assert found.refusals == {5: "queue-exists"}


def test_a_queue_comes_back_as_another_one():
    """A use after the deletion begins a new life; its limit does not pass on."""
    rows = [
        row(1, "CreateQueue", message_bytes_max=100),
        row(3, "DeleteQueue", flag=True),
        row(7, "Use"),
    ]
    found = read_directory(rows, {}, held([3], (0, 0, 2)))
    assert [(one.created, one.deleted) for one in found.lifetimes] == [(1, 3), (7, None)]
    assert found.purged == {3: 2}
    assert [found.message_bytes_max("q", at) for at in (1, 2, 7, 8)] == [0, 100, 0, 0]


def test_what_is_in_use_or_not_empty_stays():
    """A deletion is refused with the first reason that applies."""
    rows = [row(1, "Use"), row(2, "DeleteQueue", flag=True), row(3, "DeleteQueue", flag=False)]
    found = read_directory(rows, {2: Situation(in_use=1)}, held([2, 3], (0, 0, 1)))
    assert found.refusals == {2: "queue-in-use", 3: "queue-not-empty"}


def test_a_removed_message_no_longer_fills_its_queue():
    """A correction that removes the last message makes the queue empty."""
    rows = [
        row(1, "Use"),
        row(2, "Correct", number=0, action="REMOVE"),
        row(3, "Correct", number=0, action="REMOVE"),
        row(4, "DeleteQueue", flag=False),
    ]
    resident = Situation(resident=True)
    found = read_directory(rows, {2: resident, 3: resident}, held([4], (0, 0, 1)))
    assert found.refusals == {3: "sequence-unknown"}
    assert found.lifetimes[0].deleted == 4


def test_a_removed_message_that_had_expired_since_is_not_taken_off_twice():
    """Of two removed ones the first would have expired by the deletion; a third is there."""
    rows = [
        row(1, "Use"),
        row(2, "Correct", number=0, action="REMOVE"),
        row(3, "Correct", number=1, action="REMOVE"),
        row(6, "DeleteQueue", flag=False),
        row(8, "DeleteQueue", flag=False),
    ]
    situations = {2: Situation(resident=True, expires=6), 3: Situation(resident=True, expires=7)}
    contents = held([6, 8], (0, 0, 3 - 1), (0, 1, -1), (0, 1, -1))
    found = read_directory(rows, situations, contents)
    assert found.refusals == {6: "queue-not-empty"}
    assert found.lifetimes[0].deleted == 8


def test_what_went_with_an_earlier_queue_is_not_missed_when_it_would_have_expired():
    """Two messages purged at 3, one of them to expire at 5; the queue that followed has one."""
    rows = [
        row(1, "Use"),
        row(3, "DeleteQueue", flag=True),
        row(4, "Use"),
        row(6, "DeleteQueue", flag=False),
    ]
    contents = held([3, 6], (0, 0, 2), (0, 1, -1), (1, 1, 1))
    found = read_directory(rows, {}, contents)
    assert found.refusals == {6: "queue-not-empty"}
    assert found.purged == {3: 2}


def test_automatic_creation_counts_from_the_entry_after_its_switch():
    """A use where it is off finds only queues that stand."""
    rows = [row(1, "Use"), row(4, "AlterQueueManager", flag=False)]
    found = read_directory(rows, {})
    assert found.use_refusal("new", 4) is None
    assert found.use_refusal("new", 5) == "queue-unknown"
    assert found.use_refusal("q", 5) is None


def test_settings_are_those_of_the_last_change_and_end_with_their_queue():
    """What is not given stays; another queue of that name begins with the defaults."""
    rows = [
        row(1, "CreateQueue", "old"),
        row(2, "CreateQueue", settings='{"expiry_destination":"queue:old"}'),
        row(3, "AlterQueue", settings='{"time_to_live_override_ms":5000}'),
        row(4, "AlterQueue", settings='{"time_to_live_override_ms":5000}', description="same"),
        row(5, "DeleteQueue", flag=True),
        row(6, "Use"),
        row(7, "CreateTopic", "topic:t", settings='{"delivery_delay_override_ms":-1}'),
        row(8, "AlterTopic", "topic:t", settings='{"expiry_destination":"queue:q"}'),
        row(9, "AlterTopic", "topic:u"),
    ]
    found = read_directory(rows, {}, held([5]))
    told = [(name, made, at, one.expiry_destination) for name, made, at, one in found.settings]
    assert told == [
        *(("q", 2, 2, "queue:old"), ("q", 2, 3, "queue:old")),
        ("topic:t", 7, 8, "queue:q"),
    ]
    assert found.settings[1][3].time_to_live_override_ms == 5_000
    assert found.lifetimes[2].settings.expiry_destination == ""
    assert found.refusals == {9: "topic-unknown"}


def test_a_destination_that_is_named_stays_and_a_wrong_one_is_refused():
    """A deletion is refused while something that stands names it (INF-16)."""
    rows = [
        row(1, "Use", "old"),
        row(2, "CreateQueue", settings='{"expiry_destination":"topic:late"}'),
        row(3, "CreateTopic", "topic:late", settings='{"expiry_destination":"queue:old"}'),
        row(4, "CreateQueue", settings='{"expiry_destination":"topic:late"}'),
        row(5, "DeleteQueue", "old", flag=True),
        row(6, "DeleteTopic", "topic:late", flag=True),
        row(7, "AlterQueue", settings='{"expiry_destination":""}'),
        row(8, "DeleteTopic", "topic:late", flag=True),
        row(9, "DeleteQueue", "old", flag=True),
    ]
    found = read_directory(rows, {}, held([5, 9], queue="old"))
    assert found.refusals == {2: "destination-unknown", 5: "queue-in-use", 6: "topic-in-use"}


def test_a_maximum_lifetime_out_of_range_changes_nothing():
    """Nor does what else its operation asks for (DB-18)."""
    rows = [
        row(1, "AlterQueueManager", maximum_lifetime_ms=0),
        row(2, "AlterQueueManager", maximum_lifetime_ms=-1, flag=False),
    ]
    found = read_directory(rows, {})
    assert found.maximum_lifetimes == [(1, 0)]
    assert found.automatic == []
    assert found.refusals == {2: "setting-invalid"}


def test_segments_are_those_of_the_last_change_that_was_in_range():
    """As the three would be after the change (DB-06 to DB-20); it counts from the next entry on."""
    rows = [
        row(1, "AlterQueueManager", settings='{"segment_bytes":500,"segments_max":9}'),
        row(2, "AlterQueueManager", settings='{"segments_min":10}', flag=False),
        row(3, "AlterQueueManager", settings='{"segments_max":0}'),
        row(4, "AlterQueueManager", settings='{"segments_min":10,"segment_bytes":501}'),
        row(5, "AlterQueueManager", settings='{"segment_bytes":0}'),
    ]
    found = read_directory(rows, {})
    assert found.refusals == {2: "setting-invalid", 5: "setting-invalid"}
    assert found.automatic == []
    sizes = [found.segment_bytes_at(at) for at in (1, 2, 4, 5)]
    assert sizes == [16 * 1024 * 1024, 500, 500, 501]


A, B = "aa", "bb"


def opened(position, connection, **more):
    """An Open whose session is its position."""
    return row(position, "Open", "", session=position, connection=connection, **more)


def subscribed(position, session, consumer=1, topic="topic:t", **more):
    """A consumer of a topic."""
    return row(position, "OpenConsumer", topic, session=session, consumer=consumer, **more)


def gone(kind, position, session, consumer=0, *, due=False):
    """A consumer closed or free, or a session ended."""
    return row(position, kind, "", phase=0 if due else 2, session=session, consumer=consumer)


def ends(found):
    """How each subscription ended."""
    return [(one.created, one.ended, one.why) for one in found.subscriptions]


def test_a_subscription_of_one_consumer_ends_when_nothing_of_it_is_in_flight():
    """Closed at 5, but its last delivery is settled at 8."""
    rows = [opened(1, A), subscribed(2, 1), gone("Closed", 5, 1, 1), gone("Free", 8, 1, 1)]
    found = read_directory(rows, {})
    assert ends(found) == [(2, 8, "last consumer gone")]
    assert found.receptions[0].closed == 5


def test_a_shared_subscription_lives_until_its_last_consumer_is_gone():
    """Two sessions use it, one is lost, the other closes."""
    shared = {"shared": True, "subscription": "s"}
    rows = [
        *(opened(1, A), opened(2, B)),
        *(subscribed(3, 1, **shared), subscribed(4, 2, **shared)),
        *(gone("Ended", 6, 1, due=True), gone("Ended", 9, 2)),
    ]
    assert ends(read_directory(rows, {})) == [(3, 9, "last consumer gone")]


def test_a_durable_subscription_is_made_anew_or_refused_while_in_use():
    """Another selector ends the one that stands, unless somebody uses it."""
    durable = {"durable": True, "subscription": "s", "client_id": "c"}
    rows = [
        opened(1, A, client_id="c"),
        subscribed(2, 1, **durable),
        subscribed(3, 1, 2, **durable),
        subscribed(4, 1, 3, shared=True, **durable),
        *(gone("Closed", 5, 1, 1), gone("Free", 5, 1, 1)),
        subscribed(6, 1, 4, selector="a = 1", **durable),
        row(7, "Unsubscribe", "", subscription="s", client_id="c"),
        row(8, "Unsubscribe", "", subscription="x", client_id="c"),
    ]
    found = read_directory(rows, {})
    assert found.consumer_refusals == {3: "subscription-in-use", 4: "subscription-differs"}
    assert ends(found) == [(2, 6, "made anew"), (6, None, "")]
    assert found.refusals == {7: "subscription-in-use", 8: "subscription-unknown"}


def test_a_client_id_is_one_connections_unless_both_give_the_same_token():
    """The second is refused without a token, and takes over with it."""
    rows = [
        opened(1, A, client_id="c", takeover="77"),
        subscribed(2, 1, client_id="c"),
        opened(3, B, client_id="c"),
        opened(4, B, client_id="c", takeover="77"),
    ]
    found = read_directory(rows, {})
    assert found.open_refusals == {3: "client-id-in-use"}
    assert found.takeovers == [(4, 1)]
    assert ends(found) == [(2, 4, "last consumer gone")]


def test_a_temporary_destination_ends_with_its_connection():
    """Its name is the connection's; it does not stand for the entry at which that was lost."""
    own = "temporary/aa/x"
    rows = [
        opened(1, A),
        row(2, "CreateTemporary", "queue:temporary/bb/x", session=1, connection=A),
        row(3, "CreateTemporary", "queue:" + own, session=1, connection=A),
        row(4, "CreateTemporary", "queue:" + own, session=1, connection=A),
        row(5, "DeleteQueue", own, session=9, connection=B),
        gone("Ended", 7, 1, due=True),
    ]
    found = read_directory(rows, {})
    assert found.refusals == {2: "name-invalid", 4: "queue-exists", 5: "temporary-foreign"}
    assert [found.use_refusal(own, at) for at in (6, 7)] == [None, "destination-unknown"]


def test_what_an_earlier_temporary_queue_of_that_name_held_does_not_count():
    """A refused creation begins nothing either."""
    own = "temporary/aa/x"
    rows = [
        opened(1, A),
        row(2, "CreateTemporary", "queue:" + own, session=1, connection=A),
        row(6, "CreateTemporary", "queue:" + own, session=1, connection=A),
        row(8, "DeleteQueue", own, session=1, connection=A, flag=False),
    ]
    contents = held([1, 2, 6, 8], (1, 1, 4), (2, 2, 1), queue=own)
    assert read_directory(rows, {}, contents).refusals == {
        6: "queue-exists",
        8: "queue-not-empty",
    }


def test_a_topic_with_durable_subscriptions_goes_only_when_purged():
    """In use it stays; purged it takes its subscriptions along."""
    durable = {"durable": True, "subscription": "s", "client_id": "c"}
    rows = [
        opened(1, A, client_id="c"),
        subscribed(2, 1, **durable),
        *(gone("Closed", 3, 1, 1), gone("Free", 3, 1, 1)),
        row(4, "DeleteTopic", "topic:t", flag=True),
        row(5, "DeleteTopic", "topic:t", flag=False),
        row(6, "DeleteTopic", "topic:t", flag=True),
        row(7, "DeleteTopic", "topic:t"),
    ]
    found = read_directory(rows, {4: Situation(in_use=1)})
    assert found.refusals == {4: "topic-in-use", 5: "topic-not-empty", 7: "topic-unknown"}
    assert ends(found) == [(2, 6, "topic deleted")]
