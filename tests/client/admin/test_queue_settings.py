"""Settings of queues, topics and the queue manager as programs give them."""

from datetime import timedelta

import pytest

import ledgermq
from ledgermq.client.admin.queue_settings import (
    COMMON_FIELDS,
    setting_keywords,
    settings_given,
)
from ledgermq.protocol.settings import (
    OPERATION_FIELDS,
    REDELIVERY_FIELDS,
    Settings,
    given_settings,
)
from ledgermq.testing import MemoryBroker


def test_every_setting_of_the_schema_has_a_keyword():
    """None is left out of the table, and none is there that the log does not know."""
    names = list(Settings.__dataclass_fields__)
    keywords = [
        name if name in (*names, *COMMON_FIELDS, *OPERATION_FIELDS) else f"{name}_percent"
        for name in setting_keywords()
    ]
    first = [name for name in names if name in REDELIVERY_FIELDS]
    others = [name for name in names if name not in REDELIVERY_FIELDS]
    inherits, *fields = OPERATION_FIELDS
    assert keywords == [*first, *COMMON_FIELDS, inherits, *others, *fields]


def test_settings_not_given_are_not_said():
    """An operation that changes none carries none; the others stay null."""
    assert settings_given() == {}
    given = given_settings({"expiry_destination": "queue:old"})
    assert settings_given(expiry_destination="queue:old") == {"settings": given}
    assert settings_given(deduplication_ids_max=9) == {"deduplication_ids_max": 9}


def test_durations_are_milliseconds_or_timedeltas():
    """What the log has is whole milliseconds."""
    for given in (90_000, timedelta(minutes=1.5)):
        told = settings_given(time_to_live_override_ms=given)
        assert told["settings"]["time_to_live_override_ms"] == 90_000


def test_a_duration_above_nothing_does_not_become_nothing():
    """A time to live of 0 would be for ever."""
    for given, written in ((timedelta(microseconds=400), 1), (timedelta(0), 0)):
        told = settings_given(time_to_live_override_ms=given)
        assert told["settings"]["time_to_live_override_ms"] == written


def test_settings_that_cannot_be_are_wrong_use():
    """An unknown name, a value of another kind and a destination that is none."""
    with pytest.raises(TypeError, match="expiry_destination"):
        settings_given(expiry="queue:old")
    with pytest.raises(ledgermq.ArgumentTypeError, match="milliseconds"):
        settings_given(time_to_live_override_ms="soon")
    with pytest.raises(ledgermq.ArgumentTypeError):
        settings_given(time_to_live_override_ms=True)
    with pytest.raises(ledgermq.InvalidDestinationError):
        settings_given(expiry_destination="old")


def test_settings_of_a_queue_are_created_and_altered(connection, named):
    """Its status tells every setting; what is not given stays, empty takes away."""
    admin = connection.admin
    admin.create_queue(f"{named}.old")
    old = admin.queue_status(f"{named}.old")
    admin.create_queue(named, expiry_destination=old, time_to_live_override_ms=60_000)
    defaults = given_settings({}) or {}
    told = admin.queue_status(named).settings
    assert told["expiry_destination"] == old.destination == f"queue:{named}.old"
    assert told["time_to_live_override_ms"] == 60_000
    assert told["delivery_delay_override_ms"] == -1
    assert {*defaults} <= {*told}
    admin.alter_queue(named, time_to_live_override_ms=-1)
    assert admin.queue_status(named).settings["expiry_destination"] == old.destination
    admin.alter_queue(named, expiry_destination="")
    told = admin.queue_status(named).settings
    assert (told["expiry_destination"], told["time_to_live_override_ms"]) == ("", -1)


def test_settings_of_a_topic_are_created_and_altered(connection, named):
    """They are those of its subscriptions too."""
    admin = connection.admin
    admin.create_topic(f"{named}.old")
    admin.create_topic(named, description="first", delivery_delay_override_ms=500)
    position = admin.alter_topic(
        f"topic:{named}",
        description="second",
        message_bytes_max=99,
        expiry_destination=admin.topic(f"{named}.old"),
    )
    status = admin.topic(named, not_before=position)
    assert (status.description, status.message_bytes_max) == ("second", 99)
    assert status.settings["expiry_destination"] == f"topic:{named}.old"
    assert status.settings["delivery_delay_override_ms"] == 500
    with pytest.raises(ledgermq.TopicNotFoundError):
        admin.alter_topic(f"{named}.none", description="x")


def test_destinations_of_settings_must_be_there_and_stay(connection, named):
    """An unknown one is refused; a named one is not deleted (INF-16)."""
    admin = connection.admin
    with pytest.raises(ledgermq.InvalidDestinationError) as caught:
        admin.create_queue(named, expiry_destination=f"queue:{named}.old")
    assert caught.value.code == "destination-unknown"
    admin.create_queue(f"{named}.old")
    admin.create_queue(named, expiry_destination=f"queue:{named}.old")
    with pytest.raises(ledgermq.DestinationInUseError) as caught:
        admin.delete_queue(f"{named}.old")
    assert "expiry_destination" in str(caught.value)
    assert f"queue:{named}" in str(caught.value)


def test_expired_message_is_got_from_the_expiry_destination(memory):
    """It has its id, body and properties, and does not expire again by its own time (INF-16)."""
    with memory.connect() as connection, connection.session() as session:
        connection.admin.create_queue("old")
        connection.admin.create_queue("short", expiry_destination="queue:old")
        sent = session.producer("queue:short").send("x", time_to_live=1, properties={"a": 1})
        memory.advance(2)
        status = connection.admin.queue_status("short")
        assert (status.expired, status.message_count) == (1, 0)
        memory.advance(3_600)
        message = session.consumer("queue:old").receive(timeout=5)
    assert message.message_id == sent.message_id
    assert (message.body, message.properties["a"]) == ("x", 1)


def test_db_18_maximum_lifetime_is_thirty_days_and_can_be_changed(memory):
    """What is there expires by the new one too (DB-18); 0 is for ever."""
    with memory.connect() as connection, connection.session() as session:
        admin = connection.admin
        assert admin.queue_manager_status().maximum_lifetime_ms == 30 * 24 * 3600 * 1000
        session.producer("queue:kept").send("x")
        admin.alter_queue_manager(maximum_lifetime_ms=0)
        memory.advance(31 * 24 * 3600)
        assert admin.queue_status("kept").current == 1
        admin.alter_queue_manager(maximum_lifetime_ms=1_000)
        memory.advance(1)
        assert admin.queue_status("kept").expired == 1
        assert admin.queue_manager_status().maximum_lifetime_ms == 1_000


def test_queues_take_the_redelivery_of_the_queue_manager(memory):
    """What they do not say themselves; its error destination takes nothing (INF-12, INF-16)."""
    with memory.connect() as connection, connection.session(ack="CLIENT") as session:
        admin = connection.admin
        admin.create_queue("dead")
        admin.create_queue("own", redelivery_limit=3, redelivery_steps="1:100")
        admin.create_queue("alone", inherits_redelivery=False)
        admin.alter_queue_manager(redelivery="1:move(queue:dead)")
        rule = admin.queue_manager_status().redelivery
        assert (rule["redelivery_limit"], rule["error_destination"]) == (1, "queue:dead")
        session.producer("queue:new").send("x")
        taken = {name: admin.queue_status(name).inherited for name in ("new", "own", "alone")}
        dead = {"error_destination": "queue:dead"}
        whole = dead | {"redelivery_limit": 1, "redelivery_delay_override_ms": 0}
        assert taken == {"new": whole, "own": dead, "alone": {}}
        assert admin.queue_status("dead").inherited == {}
        assert admin.queue_status("new").settings["redelivery_limit"] == -1
        consumer = session.consumer("queue:new")
        for _ in range(2):
            assert consumer.receive(timeout=5).body == "x"
            session.recover()
        assert admin.queue_status("dead").current == 1
        with pytest.raises(ledgermq.DestinationInUseError, match="of the queue manager"):
            admin.delete_queue("dead", purge=True)
        admin.alter_queue_manager(error_destination="")
        admin.delete_queue("dead", purge=True)


def test_the_queue_manager_takes_settings_of_redelivery_alone(memory):
    """Another setting is named with those that there are; a destination must be there."""
    with memory.connect() as connection:
        admin = connection.admin
        with pytest.raises(TypeError, match="fifo_mode; there are: redelivery_delay"):
            admin.alter_queue_manager(fifo_mode="PROTECTED")
        with pytest.raises(ledgermq.InvalidDestinationError, match="does not exist"):
            admin.alter_queue_manager(error_destination="queue:none")
        with pytest.raises(ledgermq.RefusedError, match="redelivery_limit is -2"):
            admin.alter_queue_manager(redelivery_limit=-2)


@pytest.mark.parametrize("factor", [1.005, 1.999999, 2.3456])
def test_a_factor_that_is_not_kept_as_it_is_given_is_refused(factor):
    """A redelivery delay that should grow by half a percent stayed as it was: 1.005 became 1."""
    with MemoryBroker().connect() as connection:
        with pytest.raises(ledgermq.IllegalStateError, match=r"two digits after the point"):
            connection.admin.create_queue("q", redelivery_delay_multiplier=factor)
        for kept in (1, 1.1, 1.15, 2.55, 99.99, 100.0):
            connection.admin.create_queue(f"q{kept}", redelivery_delay_multiplier=kept)
            settings = connection.admin.queue_status(f"q{kept}").settings
            assert settings["redelivery_delay_multiplier_percent"] == round(kept * 100)


@pytest.mark.parametrize(
    "settings",
    [
        {"bytes_max": 2**70},
        {"redelivery_limit": 2**40},
        {"redelivery_delay_multiplier": float("nan")},
        {"redelivery_delay_multiplier": float("inf")},
        {"redelivery_delay_multiplier": 1e30},
        {"redelivery_delay_multiplier": 1e308},
        {"redelivery_delay_multiplier": 10**400},
        {"bytes_max": 10**5000},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_a_number_that_no_record_can_hold_is_named_and_changes_nothing(settings):
    """What was asked for is not written; the next change works."""
    with MemoryBroker().connect() as connection:
        with pytest.raises(ledgermq.IllegalStateError, match=next(iter(settings))):
            connection.admin.create_queue("q", **settings)
        connection.admin.create_queue("q", bytes_max=2**40)
        assert connection.admin.queue_status("q").settings["bytes_max"] == 2**40


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"redelivery_limit": 2**31}, "redelivery_limit is 2147483648, more than a record"),
        ({"redelivery_delay_max_ms": 2**63}, "redelivery_delay_max_ms is 9223372036854775808"),
        ({"redelivery_steps": [(2**31, 5)]}, "retries is 2147483648, more than a record"),
    ],
)
def test_a_number_of_the_queue_manager_that_no_record_can_hold_is_named(settings, named):
    """Also in a record within the record, where it was said to be some value of the operation."""
    refused = pytest.raises(ledgermq.IllegalStateError, match=named)
    with MemoryBroker().connect() as connection, refused:
        connection.admin.alter_queue_manager(**settings)
