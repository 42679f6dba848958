"""Messages handled by an administrator, from Python: purged, deleted, moved, copied, sent back."""

import pytest

import ledgermq
from ledgermq.client.admin.manual import _Paging, _ranges
from ledgermq.client.admin.part import who_asks

WHY = {"reason": "tidying", "actor": "me"}


@pytest.fixture
def connection(memory):
    """A connection to it."""
    with memory.connect() as opened:
        yield opened


def put(connection, queue, *bodies, **more):
    """Puts messages."""
    with connection.session() as session:
        producer = session.producer(f"queue:{queue}")
        for body in bodies:
            producer.send(body, **more)


def bodies(connection, queue):
    """What a queue shows."""
    return [message.body for message in connection.browser(f"queue:{queue}")]


def test_purge_says_first_what_it_would_do_and_then_does_it(connection):
    """A dry run changes nothing; what is purged counts as removed by administration."""
    put(connection, "handled.a", "one", "two", properties={"color": "red"})
    put(connection, "handled.a", "three")
    told = connection.admin.purge_queue("handled.a", selector="color = 'red'", dry_run=True, **WHY)
    assert (told.affected, told.skipped, told.dry_run) == (2, 0, True)
    assert [one.body for one in told.messages] == ["one", "two"]
    assert bodies(connection, "handled.a") == ["one", "two", "three"]
    done = connection.admin.purge_queue("queue:handled.a", selector="color = 'red'", **WHY)
    assert (done.affected, done.dry_run) == (2, False)
    assert bodies(connection, "handled.a") == ["three"]
    assert connection.admin.queue_status("handled.a").removed_by_administration == 2
    assert done.position > told.position


def test_inf_19_what_is_purged_of_a_subscription_is_in_its_figures(memory):
    """Its copies add up; of the topic, a message that nobody else has counts as dropped."""
    with memory.connect(client_id="handler") as connection:
        admin = connection.admin
        with connection.session() as session:
            session.consumer("topic:handled", subscription="s", durable=True).close()
            producer = session.producer("topic:handled")
            producer.send_many(["one", "two", "three"])
            producer.send("four", time_to_live=5)
        memory.advance(6)
        named = {"subscription": "s", "client_id": "handler"}
        assert admin.purge_queue("topic:handled", limit=2, **named, **WHY).affected == 2
        [found] = admin.subscriptions("handled")
        assert (found.removed_by_administration, found.expired, found.message_count) == (2, 1, 1)
        gone = found.sent_and_committed + found.expired + found.removed_by_administration
        assert found.added == gone + found.moved + found.dropped + found.message_count == 4
        topic = admin.topic("handled")
        assert (topic.dropped, topic.expired, topic.message_count) == (2, 1, 1)


@pytest.mark.parametrize("nameless", [KeyError("uid not found: 10001"), OSError("No username")])
def test_a_user_without_a_name_is_told_by_number(connection, monkeypatch, nameless):
    """As in many containers; before Python 3.13 it is a KeyError. Nobody has to name an actor."""

    def getuser():
        raise nameless

    monkeypatch.setattr("getpass.getuser", getuser)
    monkeypatch.setattr("os.getuid", lambda: 10001)
    assert who_asks() == "user 10001"
    put(connection, "handled.n", "one")
    admin = connection.admin
    assert admin.purge_queue("handled.n", reason="tidying").affected == 1
    session = connection.session(transacted=True)
    session.producer("queue:handled.n").send("two")
    session.flush()
    assert admin.rollback_transaction(session.handle, reason="stuck") > 0
    assert admin.end_session(session.handle, reason="stuck") > 0


def test_a_limit_and_numbers_say_which_messages(connection):
    """Numbers are given one by one or as ranges, in any order."""
    put(connection, "handled.b", *"abcdef")
    admin = connection.admin
    assert admin.delete_messages("handled.b", sequences=[4, range(1, 3)], **WHY).affected == 3
    assert bodies(connection, "handled.b") == ["a", "d", "f"]
    assert admin.purge_queue("handled.b", limit=2, **WHY).affected == 2
    assert bodies(connection, "handled.b") == ["f"]


def test_nothing_is_deleted_that_is_not_named(connection):
    """No numbers at all are not all numbers; neither is a call without numbers and selector."""
    put(connection, "handled.c", "a")
    with pytest.raises(ledgermq.IllegalStateError, match="no sequence numbers"):
        connection.admin.delete_messages("handled.c", sequences=[], **WHY)
    with pytest.raises(ledgermq.RefusedError) as caught:
        connection.admin.delete_messages("handled.c", **WHY)
    assert caught.value.code == "selection-invalid"
    assert bodies(connection, "handled.c") == ["a"]


def test_messages_are_moved_copied_and_sent_back(connection):
    """A move counts as moved, a copy leaves the message, a retry goes to where each came from."""
    admin = connection.admin
    put(connection, "handled.d", "a", "b")
    admin.create_queue("handled.e")
    assert admin.move_messages("handled.d", "handled.e", sequences=[0], **WHY).affected == 1
    assert admin.copy_messages("handled.d", "queue:handled.e", **WHY).affected == 1
    assert bodies(connection, "handled.e") == ["a", "b"]
    told = admin.select_messages("handled.e", to_origin=True)
    origins = [(one.destination, one.reason, one.count) for one in told.origins]
    assert origins == [("queue:handled.d", "copied", 1), ("queue:handled.d", "moved", 1)]
    assert admin.retry_messages("handled.e", sequences=[0], **WHY).affected == 1
    assert bodies(connection, "handled.d") == ["b", "a"]
    assert admin.queue_status("handled.d").moved == 1


def test_a_move_to_what_is_not_there_is_refused(connection):
    """It creates nothing, and moves nothing."""
    put(connection, "handled.f", "a")
    with pytest.raises(ledgermq.QueueNotFoundError):
        connection.admin.move_messages("handled.f", "handled.nowhere", **WHY)
    with pytest.raises(ledgermq.InvalidDestinationError):
        connection.admin.move_messages("handled.f", "handled.f", **WHY)
    with pytest.raises(ledgermq.RefusedError) as caught:
        connection.admin.purge_queue("handled.f", reason="")
    assert caught.value.code == "reason-invalid"
    assert bodies(connection, "handled.f") == ["a"]


def test_more_messages_than_one_operation_touches_are_purged_by_one_call(connection):
    """The call writes as many operations as it takes."""
    with connection.session() as session:
        session.producer("queue:handled.g").send_many(["x"] * 10_001)
    told = connection.admin.purge_queue("handled.g", dry_run=True, **WHY)
    assert (told.affected, len(told.messages)) == (10_001, 20)
    assert connection.admin.purge_queue("handled.g", **WHY).affected == 10_001
    assert connection.admin.queue_status("handled.g").message_count == 0


def test_a_subscription_is_purged_by_its_name(memory):
    """Its topic is the source; the client id says whose it is."""
    with memory.connect(client_id="shop") as connection, connection.session() as session:
        session.consumer("topic:handled.t", subscription="s", durable=True).close()
        session.producer("topic:handled.t").send("x")
        with pytest.raises(ledgermq.SubscriptionNotFoundError):
            connection.admin.purge_queue("topic:handled.t", subscription="r", **WHY)
        done = connection.admin.purge_queue(
            "topic:handled.t", subscription="s", client_id="shop", **WHY
        )
        (status,) = connection.admin.subscriptions("handled.t")
    assert (done.affected, status.message_count) == (1, 0)


def test_puts_are_refused_while_they_are_disabled(connection):
    """The error has the reason as its code; gets go on."""
    put(connection, "handled.h", "a")
    connection.admin.alter_queue("handled.h", puts_disabled=True)
    with pytest.raises(ledgermq.PutsDisabledError) as caught:
        put(connection, "handled.h", "b")
    assert caught.value.code == "puts-disabled"
    with connection.session() as session:
        assert session.consumer("queue:handled.h").receive(timeout=5).body == "a"
    connection.admin.alter_queue("handled.h", puts_disabled=False)
    put(connection, "handled.h", "b")


def test_what_is_put_while_a_call_goes_on_is_not_meant():
    """From the second operation on, the numbers end where the first one found their end."""
    everything = {"source": "queue:q", "sequences": [], "limit": 0}
    paging = _Paging(everything)
    assert paging.page()["sequences"] == []
    paging.went(10_000, True, 9_999, 15_000)
    assert paging.page()["sequences"] == [{"first": 0, "last": 14_999}]
    assert paging.page()["after_sequence"] == 9_999
    paging.went(5_000, False, 14_999, 16_000)
    assert paging.page() is None


def test_many_numbers_are_written_in_several_operations():
    """One operation names 1,000 ranges at most; a limit is for all of them."""
    named = {"source": "queue:q", "sequences": _ranges(range(0, 3_000, 2)), "limit": 7}
    paging = _Paging(named)
    assert (len(paging.page()["sequences"]), paging.page()["limit"]) == (1_000, 7)
    paging.went(3, False, 1_998, 5_000)
    assert (len(paging.page()["sequences"]), paging.page()["limit"]) == (500, 4)
    paging.went(4, True, 2_100, 5_000)
    assert paging.page() is None


def test_numbers_and_ranges_become_ranges_that_rise():
    """What touches is one range; an empty range is none."""
    told = _ranges([9, range(2, 5), 1, range(3, 3), range(4, 6)])
    assert told == [{"first": 1, "last": 5}, {"first": 9, "last": 9}]


@pytest.mark.parametrize(
    ("sequences", "taken"),
    [
        ([range(0, 5, 2)], [0, 2, 4]),
        ([range(4, 1, -1)], [2, 3, 4]),
        ([range(5, 0, -2), 0], [0, 1, 3, 5]),
        (range(1, 3), [1, 2]),
        (iter([5, range(5, 5)]), [5]),
    ],
)
def test_ranges_mean_the_numbers_that_python_lists_of_them(connection, queue, sequences, taken):
    """A step was passed over, and what lies between was deleted too."""
    with connection.session() as session:
        session.producer(queue).send_many([str(number) for number in range(6)])
    name = queue.partition(":")[2]
    handled = connection.admin.delete_messages(name, sequences=sequences, **WHY)
    assert handled.affected == len(taken)
    left = [int(one.body) for one in connection.browser(queue)]
    assert left == [number for number in range(6) if number not in taken]


@pytest.mark.parametrize("bad", [[2**70], [range(1, 2**64)], [0, -(2**70)]])
def test_a_sequence_number_that_no_record_can_hold_is_refused_by_name(connection, queue, bad):
    """With those that there may be; nothing is written."""
    connection.admin.create_queue(queue.partition(":")[2])
    with pytest.raises(ledgermq.IllegalStateError, match=r"^sequences has .* 0 to 9223372036854"):
        connection.admin.delete_messages(queue, sequences=bad, **WHY)


@pytest.mark.parametrize("bad", [1, True, 1.5, "12", b"12", [True], [None], [[1, 2]], ["1"], {"a"}])
def test_what_is_no_sequence_number_is_refused_by_name(connection, queue, bad):
    """Decision 29: each call that takes numbers; nothing is written."""
    connection.admin.create_queue(queue.partition(":")[2])
    with pytest.raises(ledgermq.ArgumentTypeError, match=r"^sequences is"):
        connection.admin.delete_messages(queue, sequences=bad, **WHY)
