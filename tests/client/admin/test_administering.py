"""Administration and browsing by hand: what is written and asked where nothing else was told."""

import threading

import pytest

import ledgermq
from ledgermq.client.link import route as routes
from ledgermq.client.sending.making import Sending
from ledgermq.client.settings import (
    ConnectionSettings,
    PickleWarning,
    settings_from,
)
from ledgermq.protocol import operations
from ledgermq.protocol.answers import Answer
from ledgermq.protocol.operations import Get, OpenConsumer, Put
from ledgermq.protocol.settings import OPERATION_FIELDS
from ledgermq.testing import MemoryBroker
from ledgermq.wire.framing.answers import encode_answer
from ledgermq.wire.topics.address import AddressError
from support.brokers.hand_made import delivered


def fields_of(operation, kind):
    """What an operation says beside its identity."""
    assert type(operation) is kind
    common = operations.SessionOperation.__dataclass_fields__
    names = [name for name in kind.__dataclass_fields__ if name not in common]
    return {name: getattr(operation, name) for name in names}


UNCHANGED = dict.fromkeys(
    (
        *(
            "description",
            "message_bytes_max",
            "gets_disabled",
            "unacknowledged_max",
            "group_affinity",
        ),
        "settings",
        *OPERATION_FIELDS,
    ),
    None,
)
NO_WINDOW = dict.fromkeys(OPERATION_FIELDS, 0) | {
    "inherits_redelivery": True,
    "last_value_key": "",
}
LIMITS = {
    "message_bytes_max": 0,
    "unacknowledged_max": 0,
    "group_affinity": False,
    "settings": None,
    **NO_WINDOW,
}
TOPIC_LIMITS = {
    "message_bytes_max": 0,
    "unacknowledged_max": 0,
    "moves_unrouted": False,
    "settings": None,
    **NO_WINDOW,
}
CORRECT = {"sequence": 3, "action": "REMOVE", "actor": "me", "reason": "why"}


@pytest.mark.parametrize(
    ("call", "kind", "fields", "target"),
    [
        (
            lambda admin: admin.create_queue("a"),
            operations.CreateQueue,
            {"queue": "a", "description": "", **LIMITS},
            "queue:a",
        ),
        (
            lambda admin: admin.alter_queue("queue:a", message_bytes_max=0),
            operations.AlterQueue,
            {"queue": "a", **UNCHANGED, "message_bytes_max": 0},
            "queue:a",
        ),
        (
            lambda admin: admin.suspend_queue("a"),
            operations.AlterQueue,
            {"queue": "a", **UNCHANGED, "gets_disabled": True},
            "queue:a",
        ),
        (
            lambda admin: admin.resume_queue("a"),
            operations.AlterQueue,
            {"queue": "a", **UNCHANGED, "gets_disabled": False},
            "queue:a",
        ),
        (
            lambda admin: admin.delete_queue("a"),
            operations.DeleteQueue,
            {"queue": "a", "purge": False},
            "queue:a",
        ),
        (
            lambda admin: admin.create_topic("b"),
            operations.CreateTopic,
            {"topic": "b", "description": "", **TOPIC_LIMITS},
            "topic:b",
        ),
        (
            lambda admin: admin.alter_topic("b", message_bytes_max=7),
            operations.AlterTopic,
            {"topic": "b", "description": None, **dict.fromkeys(TOPIC_LIMITS)}
            | {"message_bytes_max": 7},
            "topic:b",
        ),
        (
            lambda admin: admin.delete_topic("topic:b"),
            operations.DeleteTopic,
            {"topic": "b", "purge": False},
            "topic:b",
        ),
        (
            lambda admin: admin.bind("topic:b.*", "queue:a"),
            operations.Bind,
            {"topics": "b.*", "destination": "queue:a", "selector": ""},
            "queue:a",
        ),
        (
            lambda admin: admin.unbind("b.*", "queue:a"),
            operations.Unbind,
            {"topics": "b.*", "destination": "queue:a"},
            "queue:a",
        ),
        (
            lambda admin: admin.unsubscribe("s"),
            operations.Unsubscribe,
            {"subscription": "s"},
            None,
        ),
        (
            lambda admin: admin.alter_queue_manager(),
            operations.AlterQueueManager,
            dict.fromkeys(
                (
                    *("automatic_creation", "maximum_lifetime_ms"),
                    *("messages_max", "bytes_max", "journaling", "journal_lifetime_ms"),
                    *("messages_resume", "bytes_resume", "redelivery"),
                    *("segment_bytes", "segments_min", "segments_max"),
                    *("unit_of_work_time_limit_ms", "unit_of_work_idle_limit_ms"),
                )
            ),
            None,
        ),
        (lambda admin: admin.upgrade(2), operations.Upgrade, {"version": 2}, None),
        (
            lambda admin: admin.correct("a", **CORRECT),
            operations.Correct,
            {"queue": "a", **CORRECT},
            "queue:a",
        ),
    ],
)
def test_a_change_says_no_more_than_it_was_told(route, by_hand, call, kind, fields, target):
    """It returns the position of its outcome, and its refusal names what it was about."""
    assert call(by_hand.admin) == 2
    assert fields_of(route.log.operations[2], kind) == fields
    route.refusing[kind] = "destination-in-use"
    with pytest.raises(ledgermq.LedgerMQError) as caught:
        call(by_hand.admin)
    assert (caught.value.destination, caught.value.position) == (target, 3)


ASKING = {
    "queue_status": ("QUEUE", "a"),
    "list_queues": ("QUEUES", ""),
    "topic": ("TOPIC", "a"),
    "topics": ("TOPICS", ""),
    "subscriptions": ("SUBSCRIPTIONS", ""),
    "bindings": ("BINDINGS", ""),
    "queue_manager_status": ("QUEUE_MANAGER", ""),
    "sessions": ("SESSIONS", ""),
    "checkpoint": ("CHECKPOINT", ""),
}


@pytest.mark.parametrize("what", ASKING)
def test_a_status_is_true_at_any_position_or_not_before_the_one_told(route, by_hand, what):
    """The worker waits for that as long as the connection does."""

    def refuse(ask):
        refusal = Answer(reason="kind-unknown", detail="too old")
        route.lane.put(encode_answer(ask["question"], 0, 0, refusal))

    route.log.on_ask = refuse
    kind, name = ASKING[what]
    arguments = ["a"] if name else []
    for more in ({}, {"not_before": 0}):
        with pytest.raises(ledgermq.RefusedError, match="too old"):
            getattr(by_hand.admin, what)(*arguments, **more)
    told = [(ask["kind"], ask["queue"], ask["not_before"]) for ask in route.log.asks]
    assert told == [(kind, name, -1), (kind, name, 0)]
    assert [ask["wait_ms"] for ask in route.log.asks] == [0, 20_000]


@pytest.mark.parametrize("what", ["queue_status", "list_queues", "queue_manager_status"])
def test_a_status_of_an_older_worker_that_lacks_something_is_told_in_words(route, by_hand, what):
    """It was a KeyError of what a later release tells besides."""

    def answer(ask):
        document = [{"name": "a"}] if what == "list_queues" else {"name": "a"}
        route.lane.put(encode_answer(ask["question"], 0, 0, Answer(document=document)))

    route.log.on_ask = answer
    arguments = ["a"] if what == "queue_status" else []
    with pytest.raises(ledgermq.errors.UnexpectedReplyError, match="upgrade workers before clie"):
        getattr(by_hand.admin, what)(*arguments)


def test_a_consumer_asks_for_200_messages_unless_told_otherwise(route, by_hand):
    """And again once half of them were taken."""
    session = by_hand.session()
    consumer = session.consumer("queue:a")
    assert consumer.receive(0) is None
    route.tell(delivered(0, session.handle, 1, 200))
    for _ in range(100):
        consumer.receive(20)
    assert [one.credit for one in route.written(Get)] == [200]
    consumer.receive(20)
    assert [one.credit for one in route.written(Get)] == [200, 100]
    assert (consumer.prefetch, consumer._shared.buffer.destination) == (200, "queue:a")
    assert fields_of(route.written(OpenConsumer)[0], OpenConsumer) == {
        "consumer": 1,
        "destination": "queue:a",
        "selector": "",
        "no_local": False,
        "subscription": "",
        "durable": False,
        "shared": False,
        "redelivery_delay_ms": -1,
        "consumer_priority": 0,
    }


def test_a_message_is_sent_as_jakarta_messaging_has_it_by_default(route, by_hand):
    """Priority 4, persistent (DB-03), without a header where nothing was given."""
    session = by_hand.session()
    producer = session.producer("queue:a")
    producer.send_async("x")
    producer.send_async("y", type="t")
    plain, typed = (one.messages[0] for one in route.written(Put))
    assert (plain["priority"], plain["persistent"]) == (4, True)
    assert plain.get("header") is None
    assert (typed["header"]["type"], typed["header"]["time_to_live_ms"]) == ("t", 0)


# -- settings ----------------------------------------------------------------------------------

GIVEN = {
    "client_id": None,
    "timeout": 1.0,
    "suspect_timeout_seconds": 15.0,
    "topic_prefix": None,
}


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("a:1", r"must begin with kafka://, as in kafka://HOST:PORT\[,HOST:PORT\.\.\.\]/QUEUE-"),
        ("kafka:///Q", r"names no host, as in kafka://HOST:PORT\["),
        ("kafka://a/b c", "is no queue manager name"),
        ("kafka://a:65536", "'a:65536' .* is no HOST:PORT"),
        ("kafka://a:0", "is no HOST:PORT"),
        ("kafka://a:x", "is no HOST:PORT"),
        ("kafka://a:1;b:2", "is no HOST:PORT"),
        ("kafka://a:1 b:2", "is no HOST:PORT"),
        ("kafka://['a:1']", "is no HOST:PORT"),
        ("kafka://::1", "is no HOST:PORT"),
        ("kafka://[::1", "is no HOST:PORT"),
        ("kafka://:9092", "is no HOST:PORT"),
        # As of a variable of the environment that is not set; `history.read` gets it as it is.
        (None, "address None is no text: it must be as in kafka://HOST:PORT"),
    ],
    ids=range(13),
)
def test_an_address_that_cannot_be_used_is_told_with_the_form_that_can(address, said):
    """What is wrong, and what it should look like."""
    with pytest.raises(AddressError, match=said) as caught:
        settings_from(address, **GIVEN)
    assert caught.value.code == "setting-invalid"


def test_settings_that_were_not_given_are_those_of_the_documentation():
    """Also where they are made directly."""
    found = settings_from("kafka://h:65535", **GIVEN)
    assert (found.bootstrap, found.queue_manager) == ("h:65535", "QM1")
    assert (found.client_id, found.takeover, found.application) == ("", b"", "")
    assert (found.allow_pickle, found.timeout_seconds) == (False, 1.0)
    assert settings_from("kafka://h:1", **GIVEN).bootstrap == "h:1"
    bare = ConnectionSettings(bootstrap="h:1", queue_manager="Q")
    assert (bare.timeout_seconds, bare.suspect_timeout_ms) == (30.0, 15_000)
    assert (bare.client_id, bare.takeover, bare.application) == ("", b"", "")
    assert bare.allow_pickle is False
    assert len(bare.identity) == 16
    assert bare.identity != ConnectionSettings(bootstrap="h:1", queue_manager="Q").identity


@pytest.mark.parametrize(
    ("told", "error"),
    [
        ({"timeout": 0}, AddressError),
        ({"takeover": "t"}, AddressError),
        ({"client_id": "a b"}, ledgermq.InvalidClientIDError),
        ({"put_messages_max": 0}, AddressError),
    ],
)
def test_settings_that_cannot_be_used_are_refused(told, error):
    """Before anything is connected."""
    with pytest.raises(error) as caught:
        settings_from("kafka://h:1", **(GIVEN | told))
    assert (caught.value.code, caught.value.retryable) == ("setting-invalid", False)


def test_the_warning_about_pickles_points_at_whoever_connects():
    """So that it says which line of the application asked for them, and nobody else's."""
    with pytest.warns(PickleWarning, match="runs code that its sender chose") as caught:
        connection = MemoryBroker().connect(allow_pickle=True)
    connection.close()
    assert [one.filename for one in caught] == [__file__]
    with (
        pytest.warns(PickleWarning) as caught,
        pytest.raises(ledgermq.LedgerMQError),
    ):
        ledgermq.connect("kafka://127.0.0.1:1/QM1", allow_pickle=True, timeout=0.1)
    assert [one.filename for one in caught] == [__file__]


# -- the route over Kafka ----------------------------------------------------------------------


@pytest.mark.parametrize("fails", [False, True])
def test_a_route_looks_for_the_queue_manager_while_it_checks_the_broker(monkeypatch, fails):
    """It connects its producer meanwhile, and leaves both if there is no queue manager."""
    told = []
    asked = threading.Event()

    class Part:
        def __init__(self, *given):
            told.append(("made", len(given)))

        def check_broker(self, seconds):
            assert asked.wait(20)
            told.append(("check_broker", seconds))

        def __getattr__(self, name):
            return lambda *given: told.append((name, *given))

    def find(settings, seconds):
        assert seconds >= 1.0
        asked.set()
        if fails:
            raise ledgermq.QueueManagerNotFoundError("there is none")
        return "claim"

    monkeypatch.setattr(routes, "LaneReader", Part)
    monkeypatch.setattr(routes, "Transport", Part)
    monkeypatch.setattr(routes, "find_claim", find)
    settings = settings_from("kafka://h:1", **GIVEN)
    start = [("made", 2), ("made", 3), ("check_broker", 1.0), ("warm_up", 1.0)]
    if fails:
        with pytest.raises(ledgermq.QueueManagerNotFoundError):
            routes.kafka_route(settings, 0.0)
        assert told == [*start, ("close", 0.0), ("close",)]
    else:
        lane, log = routes.kafka_route(settings, 0.0)
        assert told == [*start, ("write_for", "claim"), ("start", "claim", 1.0)]
        assert isinstance(lane, Part)
        assert isinstance(log, Part)


def test_what_is_not_told_of_a_message_is_nothing():
    """It is as Jakarta Messaging has it by default."""
    assert Sending() == (None, None, None, None, 4, True, 0, 0, -1)
