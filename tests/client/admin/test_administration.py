"""Tests of administration and browsing: what is changed shows, what is asked is answered."""

from datetime import datetime

import pytest

import ledgermq


def test_a_queue_is_created_altered_and_deleted(connection, queue):
    """Its status shows each change at the position of the change or later."""
    name = queue.removeprefix("queue:")
    admin = connection.admin
    position = admin.create_queue(name, description="first", message_bytes_max=1_000)
    status = admin.queue_status(name, not_before=position)
    assert (status.created_position, status.position >= position) == (position, True)
    assert (status.description, status.message_bytes_max) == ("first", 1_000)
    assert (status.first_enqueued_at, status.last_enqueued_at) == (None, None)
    admin.alter_queue(name, description="second")
    status = admin.queue_status(queue)
    assert (status.description, status.message_bytes_max) == ("second", 1_000)
    admin.delete_queue(name)
    with pytest.raises(ledgermq.QueueNotFoundError):
        admin.queue_status(name)


def test_a_queue_that_exists_is_not_created_again(connection, queue):
    """The error has the reason code of the protocol."""
    connection.admin.create_queue(queue)
    with pytest.raises(ledgermq.DestinationExistsError) as caught:
        connection.admin.create_queue(queue)
    assert caught.value.code == "queue-exists"


@pytest.mark.parametrize("name", ["", "a b", "x" * 129, "topic:prices", "ä"])
def test_a_name_that_is_not_allowed_is_refused(connection, name):
    """Before anything is written to the log."""
    with pytest.raises(ledgermq.InvalidDestinationError):
        connection.admin.create_queue(name)


def test_a_queue_in_use_or_with_messages_is_not_deleted(connection, queue):
    """Consumers stand in the way always, messages unless they are purged."""
    admin = connection.admin
    with connection.session() as session:
        session.producer(queue).send("x")
        with session.consumer(queue), pytest.raises(ledgermq.DestinationInUseError) as caught:
            admin.delete_queue(queue, purge=True)
        assert caught.value.code == "queue-in-use"
        with pytest.raises(ledgermq.DestinationInUseError) as caught:
            admin.delete_queue(queue)
        assert caught.value.code == "queue-not-empty"
        # What can be typed, whole.
        typed = f"`ledgermq queue delete {queue.removeprefix('queue:')} --purge`"
        assert typed in caught.value.__notes__[0]
        admin.delete_queue(queue, purge=True)
    assert queue.removeprefix("queue:") not in [one.name for one in admin.list_queues()]


def test_a_status_counts_what_is_where(connection, queue):
    """Receivers, uncommitted puts and gets, unacknowledged and available messages."""
    with (
        connection.session() as plain,
        connection.session(ack="CLIENT") as client,
        connection.session(transacted=True) as transacted,
    ):
        plain.producer(queue).send_many(["a", "b", "c", "d"])
        client.consumer(queue, prefetch=1).receive(20)
        transacted.consumer(queue, prefetch=1).receive(20)
        transacted.producer(queue).send("e")
        transacted.producer(queue).flush()
        status = connection.admin.queue_status(queue)
        assert (status.receivers, status.message_count) == (2, 4)
        assert (status.unacknowledged, status.uncommitted_gets, status.uncommitted_puts) == (
            1,
            1,
            1,
        )
        assert (status.current, status.pending) == (2, 3)
        assert (status.min_sequence, status.max_sequence, status.next_sequence) == (0, 3, 4)
        assert isinstance(status.first_enqueued_at, datetime)
        assert status.first_enqueued_at <= status.last_enqueued_at
        modes = {one.session: one for one in connection.admin.sessions()}
        assert modes[client.handle].in_flight == 1
        assert modes[transacted.handle].open_puts == 1
        assert modes[transacted.handle].acknowledge_mode == "TRANSACTED"
        assert modes[plain.handle].connection == connection.identity


def test_the_queue_manager_tells_of_itself(connection):
    """Name, version, position and log time."""
    status = connection.admin.queue_manager_status()
    assert (status.name, status.version, status.automatic_creation) == ("QM1", 1, True)
    assert status.position > 0
    assert status.connections >= 1
    assert status.time.utcoffset().total_seconds() == 0


def test_browsing_shows_every_available_message_and_gets_none(connection, queue):
    """Over several pages, in delivery order, with properties and bodies, again from the front."""
    with connection.session() as session:
        producer = session.producer(queue)
        futures = [
            producer.send_async(str(number), priority=number % 3, properties={"n": number})
            for number in range(1_500)
        ]
        producer.flush()
        browser = session.browser(queue)
        found = list(browser)
        assert len(list(browser)) == 1_500
        assert browser.position >= max(future.result(0).position for future in futures)
    places = [(-one.priority, one.sequence) for one in found]
    assert places == sorted(places)
    assert sorted(int(one.body) for one in found) == list(range(1_500))
    assert all(one.properties["n"] == int(one.body) for one in found)
    assert connection.admin.queue_status(queue).current == 1_500


def test_a_closed_browser_says_so(connection, queue):
    """Closing twice does nothing."""
    connection.admin.create_queue(queue)
    with connection.browser(queue) as browser:
        assert list(browser) == []
    browser.close()
    with pytest.raises(ledgermq.IllegalStateError, match="closed"):
        list(browser)


def test_an_ordered_checkpoint_is_durable_and_has_a_digest(installation, queue):
    """The live state at a position, named by its digest."""
    with installation.connect() as connection:
        with connection.session() as session:
            position = session.producer(queue).send("x").position
        checkpoint = connection.admin.checkpoint(not_before=position)
    assert checkpoint.position >= position
    assert len(checkpoint.digest) == 64
    assert checkpoint.manifest


def test_a_setting_out_of_range_is_refused_with_its_reason(connection, queue):
    """The queue manager's words reach the caller."""
    with pytest.raises(ledgermq.RefusedError) as caught:
        connection.admin.create_queue(queue, message_bytes_max=-1)
    assert caught.value.code == "setting-invalid"
    assert caught.value.destination == queue
    with pytest.raises(ledgermq.RefusedError) as caught:
        connection.admin.upgrade(1)
    assert caught.value.code == "version-invalid"
