"""Tests of messages that their application will not have: sent away, or put back alone (§5)."""

import pytest

import ledgermq
from ledgermq import AckMode, Order, aio
from ledgermq.errors import AlreadySettledError, DeliveryUnknownError, IllegalStateError
from support.messages.bodies import left

SETTLED_BY_HAND = ("CLIENT", "INDIVIDUAL", "TRANSACTED")


@pytest.fixture
def dead(connection, queue, dead):
    """The error destination of the queue of the test, which has three messages."""
    with connection.session() as session:
        session.producer(queue).send_many("abc")
    return dead


@pytest.mark.parametrize("mode", SETTLED_BY_HAND)
def test_a_rejected_message_goes_to_the_error_destination_at_once(connection, queue, dead, mode):
    """Whatever its limit, and whatever becomes of the others (INF-12)."""
    with connection.session(ack=mode, redelivery_delay_ms=60_000) as session:
        consumer = session.consumer(queue)
        consumer.receive(20)
        consumer.receive(20).reject("no such customer")
        (rejected,) = connection.browser(dead)
        assert (rejected.body, rejected.delivery_count) == ("b", 1)
        origin = rejected.origin
        assert (origin.destination, origin.sequence) == (queue, 1)
        assert (origin.reason, origin.backout_count) == ("rejected", 1)
        assert connection.admin.queue_status(queue.partition(":")[2]).moved == 1


def test_no_rollback_brings_back_what_was_rejected(connection, queue, dead):
    """The rest of the unit of work comes back, and what it has put vanishes (INF-08)."""
    with connection.session(transacted=True) as session:
        consumer = session.consumer(queue, prefetch=2)
        session.producer(queue).send("d")
        consumer.receive(20).reject()
        consumer.receive(20)
        session.rollback()
    assert left(connection, queue) == [("b", 2), ("c", 1)]
    assert left(connection, dead) == [("a", 1)]


def test_a_commit_is_of_what_was_not_rejected(connection, queue, dead):
    """What was sent for the rejected message, such as an answer, is committed with the rest."""
    with connection.session(transacted=True) as session:
        consumer = session.consumer(queue)
        for message in consumer.receive_many(3, 20):
            if message.body == "b":
                message.reject()
        session.producer(queue).send("d")
        assert session.commit().consumed == 2
    assert left(connection, queue) == [("d", 1)]
    assert left(connection, dead) == [("b", 1)]


@pytest.mark.parametrize("mode", SETTLED_BY_HAND)
def test_a_message_that_is_put_back_comes_again_alone(connection, queue, dead, mode):
    """In its place and counted, while the others stay with the session (INF-08, INF-09)."""
    with connection.session(ack=mode) as session:
        consumer = session.consumer(queue, prefetch=1)
        first, second = consumer.receive(20), consumer.receive(20)
        first.reject(requeue=True)
        again = consumer.receive(20)
        assert (again.body, again.delivery_count) == ("a", 2)
        assert second.body == "b"
        assert left(connection, dead) == []
        (session.commit if mode == "TRANSACTED" else session.acknowledge)()
    assert left(connection, queue) == [("c", 1)]


def test_a_message_is_put_back_for_a_while(connection, queue, dead, named):
    """As long as it is told, be it not at all, whatever the session says (INF-10)."""
    with connection.session(ack="CLIENT", redelivery_delay_ms=60_000) as session:
        consumer = session.consumer(queue)
        consumer.receive(20).reject("busy", requeue=True, delay=0)
        assert [one.body for one in consumer.receive_many(3, 20)] == ["b", "c", "a"]
        session.acknowledge()
    with connection.session(ack="CLIENT") as session:
        session.producer(queue).send("d")
        session.consumer(queue).receive(20).reject(requeue=True, delay=3_600)
    assert connection.admin.queue_status(named).delayed == 1


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"delay": 5}, "a delay is for a message that is put back"),
        ({"requeue": True, "delay": -1}, "delay is -1, must be 0 to"),
        ({"requeue": True, "delay": float("nan")}, "delay is nan"),
        ({"requeue": True, "delay": 4e9}, "must be 0 to"),
    ],
)
def test_a_delay_that_is_none_is_refused(connection, queue, dead, told, said):
    """And the message stays with its session; so does one that a service would reject so."""
    with connection.session(ack="CLIENT") as session:
        message = session.consumer(queue).receive(20)
        with pytest.raises(IllegalStateError, match=said):
            message.reject(**told)
        with pytest.raises(IllegalStateError, match=said):
            aio.MessageRejectedError("busy", **told)
        message.acknowledge()
    assert left(connection, queue) == [("b", 1), ("c", 1)]


def test_without_an_error_destination_it_is_dropped(connection, queue, named):
    """And counted as dropped, as what comes back too often is (INF-11)."""
    with connection.session(ack="CLIENT") as session:
        session.producer(queue).send("a")
        session.consumer(queue).receive(20).reject()
    assert connection.admin.queue_status(named).message_count == 0
    assert connection.admin.queue_status(named).dropped == 1


def test_a_message_that_was_got_complete_is_rejected_whole(connection, queue, dead):
    """With all its segments."""
    with connection.session(transacted=True) as session:
        session.producer(queue).send_segmented(b"0123456789", max_segment=4)
        session.commit()
        consumer = session.consumer(queue, prefetch=0, complete_message=True)
        *_, whole = (consumer.receive(20) for _ in range(4))
        assert whole.body == b"0123456789"
        whole.reject()
    assert [body for body, _ in left(connection, dead)] == [b"0123", b"4567", b"89"]


@pytest.mark.parametrize("prefetch", [0, 200])
@pytest.mark.parametrize("rejected", [0, 2])
def test_whoever_rejects_a_message_of_a_group_goes_on_behind_it(
    connection, queue, rejected, prefetch
):
    """Be it the last one: what comes next is the next group, also after a rollback (GRP-03)."""
    with connection.session(transacted=True) as session:
        for _ in range(2):
            with session.producer(f"{queue}.groups").group() as group:
                for at in range(3):
                    group.send(str(at), last=at == 2)
        session.commit()
        whole = {"order": Order.LOGICAL, "all_messages_available": True, "prefetch": prefetch}
        consumer = session.consumer(f"{queue}.groups", **whole)
        consumer.receive_group(20)[rejected].reject("not of this group")
        assert session.commit().consumed == 2
        assert len(consumer.receive_group(20)) == 3
        session.rollback()
        assert [one.body for one in consumer.receive_group(20)] == ["0", "1", "2"]


def test_a_listener_may_reject(connection, queue, dead, eventually):
    """In a mode in which it settles by itself."""
    with connection.session(ack="INDIVIDUAL") as session:
        session.consumer(queue).set_message_listener(lambda message: message.reject("not mine"))
        eventually(lambda: len(left(connection, dead)) == 3)


@pytest.mark.parametrize("mode", ["AUTO", "DUPS_OK"])
def test_where_the_library_acknowledges_nothing_can_be_rejected(connection, queue, dead, mode):
    """It may be acknowledged already; a listener raises to put its message back."""
    with connection.session(ack=AckMode[mode]) as session:
        message = session.consumer(queue).receive(20)
        with pytest.raises(IllegalStateError, match=f"an {mode} session acknowledges|a {mode}"):
            message.reject()


def test_what_is_settled_or_was_never_got_is_not_rejected(connection, queue, dead):
    """Each says why, and nothing happens."""
    (browsed,) = [one for one in connection.browser(queue) if one.body == "a"]
    with pytest.raises(IllegalStateError, match="browsed"):
        browsed.reject()
    with connection.session(ack="INDIVIDUAL") as session:
        consumer = session.consumer(queue)
        settled, twice, late = (consumer.receive(20) for _ in range(3))
        settled.acknowledge()
        with pytest.raises(AlreadySettledError, match="delivery 1 was acknowledged or rejected"):
            settled.reject()
        twice.reject()
        with pytest.raises(AlreadySettledError):
            twice.reject(requeue=True)
        with pytest.raises(AlreadySettledError):
            twice.acknowledge()
    with pytest.raises(IllegalStateError, match="closed"):
        late.reject()
    assert left(connection, queue) == [("c", 2)]


def test_a_reason_is_text_of_a_limited_length(connection, queue, dead):
    """The longest is taken; with one more the message stays with its session."""
    with connection.session(ack="CLIENT") as session:
        message = session.consumer(queue).receive(20)
        with pytest.raises(ledgermq.ArgumentTypeError, match="reason"):
            message.reject(7)
        with pytest.raises(IllegalStateError, match="1,025 characters, at most 1,024"):
            message.reject("x" * 1_025)
        message.reject("\U0001f600" * 1_024)
    assert left(connection, dead) == [("a", 1)]


def test_a_reason_that_is_no_text_is_named(connection, queue, dead):
    """As names of files may be none; the message stays with its session, which may say another."""
    with connection.session(ack="CLIENT") as session:
        message = session.consumer(queue).receive(20)
        with pytest.raises(IllegalStateError, match=r"reason is .*udce9.*, which is no text"):
            message.reject("caf\udce9.txt")
        message.reject("a file")
    assert left(connection, dead) == [("a", 1)]


def test_what_administration_took_away_is_not_rejected(connection, queue, named, dead):
    """The error says that the message is not in flight, and the others can still be settled."""
    with connection.session(ack="CLIENT") as session:
        consumer = session.consumer(queue)
        first, second = consumer.receive(20), consumer.receive(20)
        who = {"actor": "op", "reason": "test"}
        connection.admin.correct(named, sequence=0, action="REMOVE", **who)
        with pytest.raises(DeliveryUnknownError):
            first.reject()
        second.reject()
    assert left(connection, dead) == [("b", 1)]


def test_a_coroutine_rejects_likewise(run, connection, queue, dead):
    """And waits for it."""

    async def main(connection):
        async with connection.session(transacted=True) as session:
            consumer = await session.consumer(queue, prefetch=1)
            await (await consumer.receive(20)).reject("unreadable")
            await (await consumer.receive(20)).reject(requeue=True)
            again = await consumer.receive(20)
            await session.commit()
        return again.body, again.delivery_count

    assert run(main) == ("b", 2)
    assert left(connection, dead) == [("a", 1)]
