"""Tests of the pass that tells where messages were, without Spark and without the fold."""

import json

import pytest

from ledgermq_spark.derivation.directory import (
    Correction,
    Directory,
    Lifetime,
    Reception,
    Subscription,
)
from ledgermq_spark.derivation.settings import DEFAULTS, Settings, settings_refusal
from ledgermq_spark.derivation.stay import WalkEvent
from ledgermq_spark.derivation.walk import Walk
from ledgermq_spark.log.headers import without_group

SECOND_US = 1_000_000
MONTH_US = 30 * 24 * 3600 * SECOND_US


def to(destination, **more):
    """Settings with an expiry destination."""
    return Settings(expiry_destination=destination, **more)


def standing(*names, **settings):
    """A directory of queues and topics made one after the other, with settings by name."""
    lifetimes = [Lifetime(name, at) for at, name in enumerate(names)]
    found = Directory(lifetimes=lifetimes)
    for at, name in enumerate(names):
        told = settings.get(name.replace("topic:", "topic_"))
        if told is not None:
            found.settings.append((name, at, at, to(told)))
    return found


class Log:
    """Feeds a pass entry by entry, one second apart, and keeps what it tells."""

    def __init__(self, directory):
        self.walk = Walk(directory)
        self.position = -1
        self.found = []
        self.delivery = 0
        for _ in range(10):
            self.entry(0)

    def take(self, **event):
        """One event."""
        self.found.extend(self.walk.take(WalkEvent(**event)))

    def entry(self, seconds=1.0, time=None):
        """The next entry, so long after the one before; returns its position."""
        self.position += 1
        self.time = (
            (getattr(self, "time", 0) + round(seconds * SECOND_US)) if time is None else time
        )
        none = {"phase": -1, "index": 0, "offset": 0}
        self.take(position=self.position, what="entry", time=self.time, **none)
        return self.position

    def put(self, queue, lives=0.0, count=1, **more):
        """An entry that numbers messages, which live so many seconds; 0: for ever."""
        position = self.entry()
        moment = self.time + round(lives * SECOND_US) if lives else -1
        for index in range(count):
            place = {"position": position, "phase": 1, "index": 1, "offset": index}
            identity = {"put_position": position, "put_index": index, "moment": moment}
            self.take(what="numbered", queue=queue, **place, **identity, **more)
        return position

    def deliver(self, queue, put, sequence, consumer=1, session=1):
        """A delivery by the entry that stands; returns its number."""
        self.delivery += 1
        place = {"position": self.position, "phase": 2, "index": 1, "offset": self.delivery}
        identity = {"put_position": put, "put_index": 0, "sequence": sequence}
        held = {"session": session, "delivery": self.delivery, "consumer": consumer}
        self.take(what="delivered", queue=queue, **place, **identity, **held)
        return self.delivery

    def settle(self, delivery, how, seen=True, session=1):
        """An entry that settles a delivery."""
        place = {"position": self.entry(), "phase": 1, "index": 0, "offset": delivery}
        self.take(what="settled", session=session, delivery=delivery, flag=seen, text=how, **place)

    def told(self):
        """What the pass told: (what, queue, number, position) with where messages went."""
        self.found.extend(self.walk.finish())
        return [(one.what, one.queue, one.sequence, one.to, one.to_sequence) for one in self.found]


def moved(log):
    """The numbered stays that a move began, as (queue, number, stay, origin)."""
    return [
        (one.queue, one.sequence, one.stay, json.loads(one.origin))
        for one in log.found
        if one.what == "numbered" and one.stay
    ]


def test_what_expires_is_numbered_among_the_puts_of_its_destination():
    """Before the entry that found it due, behind what was there."""
    log = Log(standing("q", "old", q="queue:old"))
    log.put("old")
    log.put("q", lives=1)
    log.put("old", count=2)
    assert [one for one in log.told() if one[0] == "expired" or one[1] == "old"] == [
        ("numbered", "old", 0, None, None),
        ("expired", "q", 0, "queue:old", 1),
        ("numbered", "old", 1, None, None),
        ("numbered", "old", 2, None, None),
        ("numbered", "old", 3, None, None),
    ]
    ((_, _, stay, origin),) = moved(log)
    assert stay == 1
    assert origin["destination"] == "queue:q"
    assert (origin["sequence"], origin["reason"], origin["backout_count"]) == (0, "expired", 0)


def test_own_times_go_first_by_moment_then_lifetimes_by_creation():
    """The order in which what is due at one entry gets its numbers."""
    directory = standing("q", "r", "old", q="queue:old", r="queue:old")
    directory.maximum_lifetimes.append((5, 8_000))
    log = Log(directory)
    log.put("r")
    log.put("q")
    log.put("q", lives=20)
    log.put("r", lives=15)
    log.entry(30)
    log.told()
    assert [(one[3]["destination"], one[3]["sequence"]) for one in moved(log)] == [
        ("queue:r", 1),
        ("queue:q", 1),
        ("queue:q", 0),
        ("queue:r", 0),
    ]


def test_a_message_may_go_round_a_cycle_and_come_back():
    """Its own time is over for good; each lifetime begins anew."""
    directory = standing("a", "b", a="queue:b", b="queue:a")
    directory.maximum_lifetimes.append((5, 10_000))
    log = Log(directory)
    put = log.put("a", lives=1)
    for seconds in (2, 12, 12, 12):
        log.entry(seconds)
    log.told()
    assert [one[:3] for one in moved(log)] == [("b", 0, 1), ("a", 1, 2), ("b", 1, 3), ("a", 2, 4)]
    assert {one.put_position for one in log.found} == {put}


def test_what_is_held_expires_when_it_comes_back_and_says_how_often_it_had():
    """In the order of what comes back, with its backouts."""
    log = Log(standing("q", "old", q="queue:old"))
    put = log.put("q", lives=5)
    first = log.deliver("q", put, 0)
    log.settle(first, "returned")
    second = log.deliver("q", put, 0)
    log.entry(10)
    assert moved(log) == []
    log.settle(second, "returned", seen=False)
    log.told()
    ((queue, sequence, _, origin),) = moved(log)
    assert (queue, sequence, origin["backout_count"]) == ("old", 0, 1)
    (gone,) = [one for one in log.found if one.what == "expired"]
    assert gone.on_return


def test_what_was_consumed_or_removed_goes_nowhere():
    """Neither does what went with its queue."""
    directory = standing("q", "r", "old", q="queue:old", r="queue:old")
    directory.corrections.append(Correction(11, "q", 0, 1, "REMOVE", "", "", -1, -1))
    directory.lifetimes[1] = directory.lifetimes[1]._replace(deleted=14)
    log = Log(directory)
    put = log.put("q", lives=60, count=2)
    delivery = log.deliver("q", put, 0)
    log.settle(delivery, "acknowledged")
    log.put("r", lives=60)
    log.entry()
    log.entry()
    log.entry(100)
    assert all(one[0] == "numbered" for one in log.told())


def test_each_copy_of_a_topic_message_goes_for_itself():
    """To the topic's destination, in order of the subscriptions."""
    directory = standing("topic:t", "old", topic_t="queue:old")
    directory.subscriptions += [
        Subscription(4, "topic:t", 0, "durable", "s", "", True, "", False),
        Subscription(5, "topic:t", 0, "durable", "u", "", True, "JMSPriority = 9", False),
        Subscription(6, "topic:t", 0, "consumer", "1/1", "me", False, "", True),
    ]
    directory.receptions.append(Reception(6, 1, 1, "aa", 6))
    log = Log(directory)
    log.put("topic:t", lives=1, connection="aa", client_id="you")
    log.put("topic:t", lives=1, connection="bb", priority=9)
    log.entry(5)
    log.told()
    origins = [(one.holder, one.sequence) for one in log.found if one.what == "expired"]
    assert origins == [(4, 0), (4, 1), (5, 1), (6, 1)]
    assert [one[1] for one in moved(log)] == [0, 1, 2, 3]
    assert {one[3]["destination"] for one in moved(log)} == {"topic:t"}


def test_what_goes_to_a_topic_reaches_whoever_stands_there_and_nobody_sent_it():
    """What noLocal asks leaves nothing out; the place in a group is gone."""
    directory = standing("q", "topic:late", "old", q="topic:late", topic_late="queue:old")
    directory.subscriptions.append(
        Subscription(4, "topic:late", 1, "consumer", "1/1", "", False, "JMSXGroupSeq = 1", True)
    )
    directory.receptions.append(Reception(4, 1, 1, "aa", 4))
    directory.maximum_lifetimes.append((5, 5_000))
    log = Log(directory)
    header = '{"p":{},"c":null,"t":null,"g":{"i":"ff","n":1,"o":0,"l":0,"f":"g"},"k":true}'
    log.put("q", lives=1, connection="aa", header=header)
    log.entry(2)
    log.entry(20)
    assert ("numbered", "topic:late", 0, None, None) in log.told()
    assert len(moved(log)) == 1
    assert json.loads(without_group(header)) == {"p": {}, "c": None, "t": None}


def test_lifetime_is_thirty_days_and_a_change_holds_at_once_for_what_is_there():
    """Behind the entry that changes it (DB-18); what comes back is judged by the one in force."""
    directory = standing("q")
    directory.maximum_lifetimes += [(13, 0), (15, 1_000), (17, 0)]
    log = Log(directory)
    log.put("q")
    log.entry(time=log.time + MONTH_US)
    put = log.put("q", count=2)
    held = log.deliver("q", put, 1)
    log.entry()
    log.entry(time=log.time + 2 * MONTH_US)
    log.entry()
    log.entry()
    log.entry()
    log.settle(held, "returned")
    told = log.told()
    assert [one[2] for one in told if one[0] == "expired"] == [0, 2]
    places = [(one.position, one.phase) for one in log.found if one.what == "expired"]
    assert places == [(11, 0), (15, 1)]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, None),
        ({"expiry_destination": "queue:old"}, None),
        ({"expiry_destination": ""}, None),
        ({"expiry_destination": "queue:q"}, "setting-invalid"),
        ({"expiry_destination": "old"}, "destination-invalid"),
        ({"expiry_destination": "q"}, "destination-invalid"),
        ({"expiry_destination": "topic:temporary/x"}, "setting-invalid"),
        ({"expiry_destination": "topic:q"}, "destination-unknown"),
        ({"time_to_live_override_ms": -2, "expiry_destination": "q"}, "setting-invalid"),
        ({"delivery_delay_override_ms": 100 * 366 * 86_400_000 + 1}, "setting-invalid"),
    ],
)
def test_settings_are_refused_in_the_order_of_the_protocol(given, reason):
    """Ranges, then each destination that is named (INF-16)."""
    settings = DEFAULTS.changed(json.dumps(given))
    assert settings_refusal(settings, "q", {"q", "old"}.__contains__) == reason


def test_settings_that_nothing_asks_for_are_kept():
    """They are told as they were given, and a null leaves one as it is."""
    settings = DEFAULTS.changed('{"later":5,"expiry_destination":"queue:old"}').changed(None)
    assert settings.as_dict()["later"] == 5
    assert settings.destinations == ["queue:old"]
