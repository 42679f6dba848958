"""Stories and random logs of every kind: what is counted of each is what happened."""

from collections import defaultdict
from itertools import pairwise

import pytest

from ledgermq.protocol.outcomes import Delivered, Refused
from ledgermq_spark.audit.conservation import summary_of
from ledgermq_spark.tables.totals import totals_of
from support.brokers.log_writer import Script
from support.planted.group_planting import clashes
from support.stories import endings, topics, waiting
from support.stories.written_again import Relocated

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1_200)]


@pytest.fixture(scope="module")
def totals(facts):
    """Return what was counted in each log, by kind of store."""
    found = defaultdict(list)
    for one in totals_of(facts):
        found[one["queue_manager"], one["kind"]].append(one)
    return found


@pytest.fixture(scope="module")
def messages(facts):
    """Return each stay of a message somewhere, by its log, in the order of the log."""
    found = defaultdict(list)
    for row in facts.rows("SELECT * FROM {message_stays} ORDER BY come_position, put_index"):
        found[row["queue_manager"]].append(row)
    return found


def of(totals, *names, destination=None):
    """Return some counts of each store, or of those with a destination."""
    rows = [one for one in totals if destination in (None, one["destination"])]
    return [tuple(one[name] for name in names) for one in rows]


def named(one):
    """Return the name of a story, for the name of its test."""
    return one.__name__ if callable(one) else ""


def test_every_put_is_in_exactly_one_place(totals, scripts):
    """Of every queue, topic and subscription of every log (INF-19)."""
    told = [one for (name, _), rows in totals.items() if name in scripts for one in rows]
    assert [one for one in told if not one["balances"]] == []
    assert summary_of(told)["holds"]


def test_random_logs_are_worth_their_name(scripts, totals):
    """Messages end in every way, move, and are delivered in doubt; modes refuse."""
    ended = totals["random 11 topics ends", "queue"] + totals["random 11 topics ends", "topic"]
    for end in ("expired", "purged", "removed"):
        assert sum(one[end] for one in ended) > 1, end
    for kind in ("queue", "topic"):
        assert sum(one["expired"] for one in totals["random lifetimes", kind]) > 5
    moved = totals["random 2 topics ends moves", "queue"]
    assert sum(one["came"] for one in moved) > 20
    assert len(totals["random 27 topics", "subscription"]) > 5
    assert sum(doubts_of(scripts["random doubts"])) > 30
    assert sum(count > 1 for count in doubts_of(scripts["random segments in doubt"])) > 8
    sourced = list(refusals_of(scripts["random sources"]).values())
    for reason in ("source-taken", "source-gap", "source-invalid"):
        assert sourced.count(reason) > 10, reason
    for name, script in scripts.items():
        if " modes " in name:
            wanted = {"out-of-turn", "unit-of-work-ended", "target-unknown", "reason-invalid"}
            assert wanted <= set(refusals_of(script).values()), name
        if " active " in name:
            given = consumers_of("queue:a", script)
            assert sum(one != other for one, other in pairwise(given)) > 3, name


def consumers_of(destination, script):
    """Return to whom messages were delivered, one after the other."""
    told = [one.outcome for found in script.outcomes for one in found]
    delivered = [one for one in told if isinstance(one, Delivered)]
    return [(one.session, one.consumer) for one in delivered if one.destination == destination]


def doubts_of(script):
    """Return how many messages each outcome brought that says that they are in doubt."""
    told = [one.outcome for found in script.outcomes for one in found]
    return [len(one.messages) for one in told if isinstance(one, Delivered) and one.in_doubt]


def refusals_of(script):
    """Return the reasons of refusals by position."""
    told = [one.outcome for found in script.outcomes for one in found]
    return {one.position: one.reason for one in told if isinstance(one, Refused)}


ENDINGS_REFUSED = endings.told()[1]


@pytest.mark.parametrize(("story", "ends", "refused"), endings.QUEUES, ids=named)
def test_a_message_of_a_queue_goes_by_what_befell_it_first(totals, story, ends, refused):
    """Expired, purged or removed, queue by queue of that name."""
    names = ("expired", "purged", "removed", "consumed", "resident")
    place = f"queue:{story.__name__}"
    assert of(totals["endings", "queue"], *names, destination=place) == ends
    assert ENDINGS_REFUSED[story.__name__] == refused


@pytest.mark.parametrize(("story", "ends", "copies"), endings.TOPICS, ids=named)
def test_a_topic_message_goes_as_its_last_copy(totals, story, ends, copies):
    """Expired, consumed, or dropped as nobody has it; its subscriptions count by themselves."""
    place = f"topic:{story.__name__}"
    names = ("expired", "dropped", "consumed")
    assert of(totals["endings", "topic"], *names, destination=place) == [ends]
    held = of(totals["endings", "subscription"], "expired", "dropped", "purged", destination=place)
    assert [(expired, dropped + purged) for expired, dropped, purged in held] == copies
    assert ENDINGS_REFUSED[story.__name__] == []


def test_shared_subscriptions_that_end_while_deliveries_are_in_flight(totals):
    """Settled, given back, still held, and one of the name that came later (decision 25)."""
    names = ("put", "consumed", "dropped", "purged", "resident")
    told = of(totals["ended in flight", "subscription"], *names)
    assert told == [(3, 1, 1, 1, 0), (3, 1, 1, 0, 1), (3, 0, 1, 0, 2), (1, 0, 0, 0, 1)]


def test_subscriptions_come_and_go_as_the_protocol_says(totals, messages):
    """Made, made anew, unsubscribed, retired; each with what it had."""
    names = ("subscription", "put", "consumed", "purged")
    told = of(totals["made anew", "subscription"], *names)
    assert told == [("s", 1, 0, 1), ("s", 2, 1, 1), ("1/3", 1, 0, 1)]
    fates = [row["fate"] for row in messages["made anew"] if row["kind"] == "topic"]
    assert fates == ["dropped", "dropped", "consumed", "dropped"]


def test_what_ends_with_a_connection_is_gone(totals, scripts):
    """An open put to a temporary queue vanishes; a takeover returns what the older one held."""
    script, temporary = topics.ended_with_a_connection()
    reasons = sorted(refusals_of(script).values())
    assert reasons == ["client-id-in-use", "puts-mismatch", "session-unknown"]
    queues = totals["ended with a connection", "queue"]
    assert of(queues, "purged", destination=f"queue:{temporary}") == [(1,)]
    assert of(queues, "resident", destination="queue:q") == [(1,)]
    (copies,) = totals["ended with a connection", "subscription"]
    assert (copies["consumed"], copies["backouts"], copies["deliveries"]) == (1, 1, 2)


def test_what_waits_for_a_quota_is_where_it_was_let_in(messages, facts):
    """What waited in vain left no trace but that it waited (INF-05, INF-20)."""
    told = waiting.held_up()[1]
    came = {row["put_position"]: row["numbered_position"] for row in messages["held up"]}
    assert came[told.let_in] == told.acknowledged
    assert came[told.in_unit] > told.commit
    assert came[told.held_by_all] > told.held_by_all
    assert told.in_vain not in came
    assert told.at_the_end not in came
    waited = facts.rows(
        "SELECT * FROM {events} WHERE queue_manager = 'held up' AND event = 'blocked'"
    )
    positions = {row["put_position"] for row in waited}
    assert positions >= {told.let_in, told.held_by_all, told.in_vain, told.at_the_end}


def test_a_message_is_put_where_it_comes(totals):
    """What expires elsewhere, and what is moved or copied by hand, is put there (INF-19)."""
    names = ("destination", "put", "came", "moved", "expired", "removed")
    assert of(totals["wandering", "queue"], *names) == [
        ("queue:late", 4, 3, 0, 1, 0),
        ("queue:old", 6, 1, 1, 3, 1),
        ("queue:q", 3, 2, 0, 1, 0),
    ]
    assert of(totals["wandering", "topic"], *names) == [("topic:over", 3, 3, 0, 3, 0)]
    assert of(totals["wandering", "subscription"], "put", "expired") == [(3, 3)]


def test_the_moves_know_which_backouts_count(messages):
    """The one that was handed over is blamed for a loss, its neighbour for none (H20, GRP-38)."""
    told = [(one["backouts"], one["uncounted_backouts"]) for one in messages["two losses"]]
    assert told == [(2, 1), (2, 2)]
    told = [(one["backouts"], one["uncounted_backouts"]) for one in messages["segments in doubt"]]
    assert told == [(3, 1), (3, 2), (2, 1)]


def test_segments_in_doubt_are_told_together_or_one_by_one(scripts):
    """Who is inside a message in doubt gets the rest segment by segment (H20, GRP-38)."""
    assert doubts_of(scripts["segments in doubt"]) == [3, 1, 1]


def test_what_follows_a_parked_message_goes_after_it(totals):
    """What is of its group goes to the error destination, wherever it was (INF-12)."""
    told = {
        one["destination"]: one["moved"]
        for kind in ("queue", "subscription")
        for one in totals["parked", kind]
    }
    assert told == {"queue:dead": 6, "queue:q": 4, "topic:t": 4}


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("delayed True True", [[0], [2], [0, 1, 3]]),
        ("delayed True False", [[0], [2], [0, 1, 3]]),
        ("delayed False True", [[0], [1, 2, 3], [0]]),
    ],
)
def test_a_group_waits_for_its_delayed_message_as_the_setting_says(scripts, log, expected):
    """What is of no group, or of another one, passes it."""
    given = [
        [one["put_index"] for one in found.outcome.messages]
        for outcomes in scripts[log].outcomes
        for found in outcomes
        if isinstance(found.outcome, Delivered) and found.outcome.consumer == 7
    ]
    assert given == expected


def test_refusals_for_the_sake_of_groups_are_what_the_story_says(scripts):
    """Clashes, and what a unit of work or a Get may not ask (GRP-44)."""
    assert refusals_of(scripts["group clashes"]) == clashes(Script())


def test_copies_that_are_not_what_was_put_are_refused_as_a_whole(scripts):
    """What is gone is skipped, whatever is said of it (H24)."""
    assert refusals_of(scripts["written again"]) == Relocated().refused


def test_what_is_got_complete_is_five_deliveries(totals):
    """Three messages and two segments of one for four of five credits (GRP-38)."""
    (queue,) = totals["groups", "queue"]
    assert (queue["deliveries"], queue["consumed"], queue["resident"]) == (5, 3, 9)
