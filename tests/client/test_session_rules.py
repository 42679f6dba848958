"""Rules of Jakarta Messaging's Session that no other test of the client shows (SES)."""

import threading
import time

import pytest

import ledgermq
from ledgermq import AckMode
from support.messages.bodies import left


def test_ses_03_a_session_serves_many_producers_and_consumers(connection, queue):
    """Each goes to its own destination, and one commit covers them all."""
    names = [f"{queue}.{number}" for number in range(5)]
    with connection.session(transacted=True) as session:
        producers = [session.producer(name) for name in names for _ in range(2)]
        consumers = [session.consumer(name, prefetch=1) for name in names for _ in range(2)]
        for number, producer in enumerate(producers):
            producer.send(str(number))
        session.commit()
        found = [(one.destination, one.receive(20).body) for one in consumers]
        assert session.commit().consumed == 10
    assert found == [(names[number // 2], str(number)) for number in range(10)]


@pytest.mark.parametrize(
    "arguments",
    [{"transacted": True}, {"ack": "TRANSACTED"}, {"transacted": True, "ack": AckMode.CLIENT}],
    ids=["transacted", "mode", "both"],
)
def test_ses_09_a_transacted_session_says_so_however_it_was_opened(connection, arguments):
    """With both, the acknowledge mode given beside is ignored, as by createSession."""
    with connection.session(**arguments) as session:
        assert session.ack_mode is AckMode.TRANSACTED
        assert session.transacted
        session.commit()


def test_ses_10_acknowledge_modes_are_names(connection):
    """Not the numbers 0 to 3 of Jakarta Messaging, which are refused."""
    assert [str(mode) for mode in AckMode] == [
        *("AUTO", "DUPS_OK", "CLIENT", "INDIVIDUAL", "TRANSACTED")
    ]
    for name in AckMode:
        with connection.session(ack=str(name)) as session:
            assert session.ack_mode is name
    for number in range(4):
        with pytest.raises(ledgermq.ArgumentTypeError, match=r"^ack is \d"):
            connection.session(ack=number)
    with pytest.raises(ledgermq.IllegalStateError, match="AUTO, DUPS_OK"):
        connection.session(ack="3")


@pytest.mark.parametrize("transacted", [False, True])
def test_ses_10_what_is_no_acknowledge_mode_is_refused(connection, run, transacted):
    """Also beside `transacted`, which leaves out of account only a mode that there is (SES-09)."""

    async def work(other):
        await other.session(ack="nonsense", transacted=transacted)

    with pytest.raises(ledgermq.IllegalStateError, match="'nonsense' is no acknowledge mode"):
        connection.session(ack="nonsense", transacted=transacted)
    with pytest.raises(ledgermq.IllegalStateError, match="'nonsense' is no acknowledge mode"):
        run(work)


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_ses_14_the_next_transaction_begins_with_the_end_of_the_last(connection, queue, end):
    """No call begins it, and what is done in it is undone by itself."""
    with connection.session(transacted=True) as session, connection.session() as other:
        producer, consumer = session.producer(queue), session.consumer(queue)
        producer.send("first")
        getattr(session, end)()
        other.producer(queue).send("given")
        producer.send("second")
        before = consumer.receive(20).body
        session.rollback()
        assert consumer.receive(20).body == before
        session.commit()
    assert before == ("first" if end == "commit" else "given")
    assert left(connection, queue) == ([("given", 1)] if end == "commit" else [])


def test_ses_15_a_transaction_is_what_was_done_since_the_last_one(connection, queue):
    """A rollback leaves alone what was committed, and a commit what was rolled back."""
    with connection.session() as session:
        session.producer(queue).send_many(["a", "b"])
    with connection.session(transacted=True) as session:
        producer, consumer = session.producer(queue + ".out"), session.consumer(queue)
        assert consumer.receive(20).body == "a"
        producer.send("kept")
        session.commit()
        assert consumer.receive(20).body == "b"
        producer.send("undone")
        session.rollback()
        producer.send("kept too")
        receipt = session.commit()
    assert (receipt.consumed, [one.count for one in receipt.enqueued]) == (0, [1])
    assert left(connection, queue) == [("b", 2)]
    assert left(connection, queue + ".out") == [("kept", 1), ("kept too", 1)]


def test_ses_16_units_of_work_are_the_sessions_own(connection, queue):
    """There is no JTA: nothing but its session ends a unit of work, and none spans two."""
    with connection.session(transacted=True) as one, connection.session(transacted=True) as other:
        mine, others = one.producer(queue), other.producer(queue)
        for producer in (mine, others):
            producer.send("one" if producer is mine else "other")
            producer.flush()
        one.rollback()
        assert [run.count for run in other.commit().enqueued] == [1]
        mine.send("again")
        mine.flush()
        other.rollback()
        one.commit()
    assert left(connection, queue) == [("other", 1), ("again", 1)]


@pytest.mark.parametrize("call", ["commit", "rollback", "close"])
def test_ses_18_ends_wait_for_the_callbacks_of_what_is_under_way(connection, queue, call):
    """Of asynchronous commits: when the call returns, all have their outcome and were called."""
    called = []

    def callback(future):
        time.sleep(0.02)
        called.append(future.exception(0))

    session = connection.session(transacted=True)
    for number in range(5):
        session.producer(queue).send(str(number))
        session.commit_async().add_done_callback(callback)
    getattr(session, call)()
    assert called == [None] * 5
    session.close()
    assert [body for body, _ in left(connection, queue)] == ["0", "1", "2", "3", "4"]


def test_ses_18_close_waits_for_the_callbacks_of_asynchronous_sends(connection, queue):
    """They complete as ever, with their numbers."""
    called = []

    def callback(future):
        time.sleep(0.01)
        called.append(future.result(0).sequence)

    with connection.session() as session:
        producer = session.producer(queue)
        for _ in range(20):
            producer.send_async("x").add_done_callback(callback)
    assert called == list(range(20))


def test_ses_20_a_commit_that_was_undone_says_so(connection, queue):
    """Its own class, with the cause; what it got is there again and what it sent is not."""
    connection.admin.create_queue(queue + ".small", message_bytes_max=10)
    with connection.session(transacted=True) as session:
        session.producer(queue).send("in")
        session.commit()
        assert session.consumer(queue).receive(20).body == "in"
        session.producer(queue).send("never")
        session.producer(queue + ".small").send("x" * 100)
        with pytest.raises(ledgermq.TransactionRolledBackError) as caught:
            session.commit()
    assert isinstance(caught.value.__cause__, ledgermq.MessageTooLargeError)
    assert left(connection, queue) == [("in", 2)]


def test_ses_23_no_close_waits_for_an_exception_listener(place, client_id, caplog, eventually):
    """The log tells at once that a session was lost, its next call raises it, close just ends."""
    with place.connect(client_id=client_id, takeover="t") as first:
        session = first.session(ack=AckMode.CLIENT)
        assert first.exception_listener is None
        with place.connect(client_id=client_id, takeover="t"):
            eventually(lambda: session.is_closed)
            eventually(lambda: f"@{session.handle} was ended" in caplog.text)
            with pytest.raises(ledgermq.SessionLostError, match="took over its client id"):
                session.producer("queue:x")
            session.close()


def test_ses_25_no_other_method_works_on_a_closed_session(connection, queue):
    """Each raises IllegalStateError, settings too; the list is complete (decision 27)."""
    with connection.session(ack=AckMode.CLIENT) as session:
        session.producer(queue).send("x", reply_to=queue)
        message = session.consumer(queue).receive(20)
    calls = {
        "commit": session.commit,
        "commit_async": session.commit_async,
        "rollback": session.rollback,
        "transaction": lambda: session.transaction().__enter__(),
        "acknowledge": session.acknowledge,
        "recover": session.recover,
        "flush": session.flush,
        "producer": lambda: session.producer(queue),
        "consumer": lambda: session.consumer(queue),
        "browser": lambda: session.browser(queue),
        "unsubscribe": lambda: session.unsubscribe("s"),
        "temporary_queue": session.temporary_queue,
        "temporary_topic": session.temporary_topic,
        "delete_temporary": lambda: session.delete_temporary("queue:temporary/0/1"),
        "requestor": lambda: session.requestor(queue),
        "reply": lambda: session.reply(message, "y"),
        "ack_mode": lambda: session.ack_mode,
        "transacted": lambda: session.transacted,
        "handle": lambda: session.handle,
        "message.acknowledge": message.acknowledge,
    }
    methods = {name for name in dir(session) if not name.startswith("_")}
    methods -= {"is_closed", "close"}
    assert methods == {name for name in calls if "." not in name}
    for call in calls.values():
        with pytest.raises(ledgermq.IllegalStateError, match="closed"):
            call()
    assert session.is_closed


def test_ses_27_what_a_closed_session_made_is_closed_with_it(connection, queue):
    """Its consumers count as receivers no longer, and closing them too does nothing."""
    session = connection.session()
    producer, consumers = session.producer(queue), [session.consumer(queue) for _ in range(2)]
    assert connection.admin.queue_status(queue).receivers == 2
    session.close()
    assert connection.admin.queue_status(queue).receivers == 0
    assert all(one.is_closed for one in consumers)
    for one in (producer, *consumers):
        one.close()


def test_ses_32_listeners_belong_to_consumers_and_exclude_other_receipt(connection, queue):
    """A session has none of its own; while one is set, nothing is received, but the rest works."""
    done = threading.Event()
    with connection.session() as session, connection.session() as other:
        assert not hasattr(session, "message_listener")
        listened, plain = session.consumer(queue), session.consumer(queue + ".plain")
        producer = session.producer(queue + ".out")
        refused = []

        def listener(_):
            try:
                plain.receive(0)
            except ledgermq.IllegalStateError as error:
                refused.append(str(error))
            producer.send("sent by the listener")
            done.set()

        listened.set_message_listener(listener)
        other.producer(queue).send("x")
        assert done.wait(20)
    assert "listeners" in refused[0]
    assert left(connection, queue + ".out") == [("sent by the listener", 1)]


@pytest.mark.parametrize(
    "message",
    [
        ledgermq.BytesMessage(b"raw"),
        ledgermq.MapMessage({"a": 1}),
        ledgermq.PlainMessage(),
        ledgermq.ObjectMessage({"nested": [1]}),
        ledgermq.ObjectMessage(),
        ledgermq.StreamMessage([1, "a"]),
        ledgermq.TextMessage("told"),
        ledgermq.TextMessage(),
    ],
    ids=["bytes", "map", "plain", "object", "object-none", "stream", "text", "text-none"],
)
def test_ses_33_a_message_belongs_to_no_session(place, queue, message):
    """Of each kind, made without a session and sent by two of two connections."""
    with place.connect() as one, place.connect() as other:
        for connection in (one, other):
            with connection.session(transacted=connection is other) as session:
                session.producer(queue).send(message)
                if session.transacted:
                    session.commit()
        with one.session() as session:
            consumer = session.consumer(queue)
            found = [consumer.receive(20) for _ in range(2)]
    assert {type(received.typed()) for received in found} == {type(message)}
    assert found[0].body == found[1].body
    assert found[0].message_id != found[1].message_id


def test_ses_38_naming_a_destination_makes_nothing(connection, queue, topic):
    """A producer names it only, and a browser makes none; the first message or consumer does."""
    with connection.session() as session:
        session.producer(queue)
        with pytest.raises(ledgermq.QueueNotFoundError):
            session.browser(queue)
        session.producer(topic)
        with pytest.raises(ledgermq.QueueNotFoundError):
            connection.admin.queue_status(queue)
        with pytest.raises(ledgermq.TopicNotFoundError):
            connection.admin.topic(topic)
        session.producer(queue).send("x")
        session.consumer(topic)
        assert connection.admin.queue_status(queue).message_count == 1
        assert connection.admin.topic(topic).subscriptions == 1


def test_ses_54_a_durable_subscription_told_nothing_selects_nothing_and_hears_its_own(
    place, topic, client_id
):
    """Told so in words it is the same one, and keeps what it held."""
    with place.connect(client_id=client_id) as connection, connection.session() as session:
        session.consumer(topic, subscription="d", durable=True).close()
        (status,) = connection.admin.subscriptions(topic)
        assert (status.selector, status.no_local, status.durable) == ("", False, True)
        session.producer(topic).send("own", properties={"n": 1})
        told = {"selector": "", "no_local": False}
        consumer = session.consumer(topic, subscription="d", durable=True, **told)
        assert consumer.receive(20).body == "own"


def test_ses_65_the_delivery_count_rises_with_each_delivery(connection, queue):
    """From 1; a message is redelivered if and only if it is 2 or more."""
    with connection.session() as session:
        session.producer(queue).send("x")
    found = []
    for _ in range(2):
        with connection.session(transacted=True) as session:
            consumer = session.consumer(queue)
            for _ in range(2):
                message = consumer.receive(20)
                assert message.get_int_property("JMSXDeliveryCount") == message.delivery_count
                found.append((message.delivery_count, message.redelivered))
                session.rollback()
    assert found == [(1, False), (2, True), (3, True), (4, True)]
    assert left(connection, queue) == [("x", 5)]


def test_ses_68_what_a_session_sends_to_a_destination_arrives_in_that_order(connection, queue):
    """Whichever way it is sent, by whichever producer; a higher priority alone goes before."""
    with connection.session() as session:
        producer, other, free = (session.producer(one) for one in (queue, queue, None))
        for number in range(0, 100, 10):
            bodies = [str(number + place) for place in range(10)]
            for body in bodies[:6]:
                producer.send_async(body)
            other.send(bodies[6])
            free.send_async(bodies[7], destination=queue)
            producer.send(bodies[8], confirm="log")
            other.send_many(bodies[9:])
        producer.send("urgent", priority=9)
    with connection.session(transacted=True) as session:
        for number in range(100, 120):
            session.producer(queue).send(str(number))
            if number % 3 == 0:
                session.commit()
        session.commit()
        consumer = session.consumer(queue)
        found = [consumer.receive(20).body for _ in range(121)]
    assert found == ["urgent", *(str(number) for number in range(120))]


@pytest.mark.parametrize("mode", ["AUTO", "CLIENT", "TRANSACTED"])
def test_ses_69_what_is_acknowledged_never_comes_again(connection, queue, mode):
    """Not after a recover or rollback, and to no other session."""
    with connection.session() as session:
        session.producer(queue).send_many(str(number) for number in range(20))
    settle = {"AUTO": "recover", "CLIENT": "acknowledge", "TRANSACTED": "commit"}[mode]
    undo = {"TRANSACTED": "rollback"}.get(mode, "recover")
    with connection.session(ack=mode) as session:
        consumer = session.consumer(queue)
        settled = [consumer.receive(20).body for _ in range(7)]
        getattr(session, settle)()
        unsettled = [consumer.receive(20).body for _ in range(5)]
        getattr(session, undo)()
        getattr(session, undo)()
    with connection.session() as session:
        rest = [one.body for one in session.consumer(queue).until_idle(0.5)]
    if mode == "AUTO":
        settled, unsettled = settled + unsettled, []
    assert settled == [str(number) for number in range(len(settled))]
    assert rest == [str(number) for number in range(len(settled), 20)]
    assert rest[: len(unsettled)] == unsettled
