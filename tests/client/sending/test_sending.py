"""Tests of producers: what is sent arrives, numbered and whole, or is refused with a reason."""

import enum

import pytest

import ledgermq


def test_a_confirmed_send_tells_position_and_sequence_number(connection, queue):
    """Outside a unit of work, the receipt of a send is complete."""
    with connection.session() as session:
        producer = session.producer(queue)
        receipts = [producer.send("first"), producer.send("second")]
    assert [receipt.sequence for receipt in receipts] == [0, 1]
    assert receipts[0].position < receipts[1].position
    assert receipts[0].message_id != receipts[1].message_id
    assert len(receipts[0].message_id) == 32


@pytest.mark.parametrize(
    "body",
    [
        {"id": 1, "name": "Zoë", "rate": 0.5, "ok": True, "raw": b"\x00\xff", "none": None},
        {},
        "text with ünïcödé",
        "",
        b"\x00\x01bytes",
        b"",
        None,
    ],
)
def test_a_body_arrives_as_it_was_sent(connection, queue, body):
    """Map, text, bytes and plain messages come back with the same value and type."""
    with connection.session() as session:
        session.producer(queue).send(body)
        message = session.consumer(queue).receive(20)
    assert message.body == body
    assert isinstance(message.body, type(body))


def test_all_header_fields_arrive(connection, queue):
    """What the sender sets, the receiver reads (SES-65)."""
    with connection.session() as session:
        receipt = session.producer(queue).send(
            {"id": 1},
            properties={"region": "EU", "count": 3, "share": 0.25, "urgent": False},
            correlation_id="request-7",
            reply_to="queue:replies",
            type="order",
            priority=7,
            persistent=False,
        )
        message = session.consumer(queue).receive(20)
    assert message.message_id == receipt.message_id
    assert message.sequence == receipt.sequence
    assert message.put_position == receipt.position
    assert message.properties == {"region": "EU", "count": 3, "share": 0.25, "urgent": False}
    assert (message.correlation_id, message.reply_to) == ("request-7", "queue:replies")
    assert (message.type, message.priority, message.persistent) == ("order", 7, False)
    assert (message.delivery_count, message.redelivered) == (1, False)
    assert message.destination == queue
    assert message.timestamp.utcoffset().total_seconds() == 0
    assert abs((message.timestamp - message.sent_at).total_seconds()) < 60


@pytest.mark.parametrize(
    ("body", "properties", "named"),
    [
        ({"inner": {"a": 1}}, None, "inner"),
        ({"list": [1]}, None, "list"),
        ({"big": 2**63}, None, "big"),
        ({1: "number as name"}, None, "1"),
        ("fine", {"raw": b"bytes"}, "raw"),
        ("fine", {"nested": {}}, "nested"),
        (3.5, None, "float"),
        (["list"], None, "list"),
        ("half of a pair: \ud800", None, "its body"),
    ],
)
def test_what_a_message_cannot_carry_is_refused_by_name(connection, queue, body, properties, named):
    """An unsupported value raises MessageFormatError that names it, and nothing is sent."""
    with connection.session() as session:
        producer = session.producer(queue)
        with pytest.raises(ledgermq.MessageFormatError, match=named) as caught:
            producer.send(body, properties=properties)
        assert producer.send("next").sequence == 0
    assert caught.value.code == (
        "message-invalid" if named in ("1", "its body") else "value-unsupported"
    )
    assert caught.value.destination == queue


@pytest.mark.parametrize("priority", [-1, 10, 4.5, True, "7"])
def test_a_priority_outside_0_to_9_is_refused(connection, queue, priority):
    """Only the whole numbers 0 to 9 are priorities."""
    error = ledgermq.MessageFormatError if type(priority) is int else ledgermq.ArgumentTypeError
    with connection.session() as session, pytest.raises(error, match="priority"):
        session.producer(queue).send("x", priority=priority)


class Word(str, enum.Enum):  # noqa: UP042 - its `str` is its name, unlike that of a StrEnum
    """Texts of an application."""

    EU = "eu"


class Urgency(enum.IntEnum):
    """Numbers of an application."""

    HIGH = 7


def test_members_of_enumerations_are_the_values_that_they_are(connection, queue):
    """As body, destination, property, entry and option: `str` of such a text is its name."""
    named = enum.Enum("Named", {"QUEUE": queue}, type=str).QUEUE
    properties = {"region": Word.EU, "level": Urgency.HIGH}
    with connection.session() as session:
        producer = session.producer(named, redelivery_limit=Urgency.HIGH)
        consumer = session.consumer(
            named, consumer_priority=Urgency.HIGH, redelivery_delay_ms=Urgency.HIGH
        )
        assert type(producer.redelivery_limit) is int
        assert (producer.destination, type(producer.destination)) == (queue, str)
        producer.send(Word.EU, properties=properties, priority=Urgency.HIGH)
        producer.send({"region": Word.EU, "data": bytearray(b"x")})
        producer.send(ledgermq.StreamBody([Word.EU, Urgency.HIGH]))
        first, *others = (consumer.receive(timeout=20) for _ in range(3))
    assert (first.body, first.priority) == ("eu", 7)
    assert dict(first.properties) == {"region": "eu", "level": 7}
    assert [one.body for one in others] == [
        {"region": "eu", "data": b"x"},
        ledgermq.StreamBody(["eu", 7]),
    ]


def test_a_message_over_the_size_limit_is_refused_before_it_is_sent(connection, queue):
    """The error names the limit and points to segmentation; the session goes on."""
    with connection.session() as session:
        producer = session.producer(queue)
        with pytest.raises(ledgermq.MessageTooLargeError, match="segmentation"):
            producer.send(b"x" * (8 * 1024 * 1024))
        assert producer.send("next").sequence == 0


def test_the_largest_message_goes_through(connection, queue):
    """A message just under the limit is put, delivered whole and acknowledged."""
    body = b"x" * (8 * 1024 * 1024 - 4096 - 200)
    with connection.session(ack=ledgermq.AckMode.CLIENT) as session:
        session.producer(queue).send(body)
        message = session.consumer(queue, prefetch=1).receive(20)
        message.acknowledge()
    assert message.body == body


def test_asynchronous_sends_keep_their_order_across_destinations(connection, queue):
    """Messages sent in turn to two queues get positions in the order of sending."""
    with connection.session() as session:
        one, other = session.producer(queue), session.producer(queue + ".other")
        futures = []
        for number in range(300):
            producer = one if number % 7 < 4 else other
            futures.append(producer.send_async(str(number)))
        one.flush()
        receipts = [future.result(20) for future in futures]
        places = [(receipt.position, receipt.sequence) for receipt in receipts]
        assert places == sorted(places, key=lambda place: place[0])
        bodies = [message.body for message in session.consumer(queue).until_idle(1.0)]
    assert bodies == [str(number) for number in range(300) if number % 7 < 4]


def test_asynchronous_sends_are_gathered_and_every_future_has_its_number(connection, queue):
    """Thousands of sends become fewer operations; each receipt has the number of its message."""
    with connection.session() as session:
        producer = session.producer(queue)
        called = []
        futures = [producer.send_async(f"body {number}") for number in range(5_000)]
        futures[-1].add_done_callback(called.append)
        producer.flush()
        receipts = [future.result(0) for future in futures]
    assert [receipt.sequence for receipt in receipts] == list(range(5_000))
    # A hundred, as a rule; a machine that is busy with other work sends what has gathered sooner.
    assert len({receipt.position for receipt in receipts}) < 2_500
    assert called == [futures[-1]]
    assert all(future.done() and future.exception(0) is None for future in futures)


def test_send_many_returns_one_receipt_for_each(connection, queue):
    """Bodies from any iterable are sent in order."""
    with connection.session() as session:
        receipts = session.producer(queue).send_many(str(number) for number in range(1_000))
    assert [receipt.sequence for receipt in receipts] == list(range(1_000))


def failing_after_three():
    """Bodies of an application whose source breaks."""
    yield from "abc"
    raise RuntimeError("the source broke")


@pytest.mark.parametrize(
    ("bodies", "error"),
    [
        (lambda: ["a", "b", "c", object(), "d"], ledgermq.UnsupportedValueError),
        (failing_after_three, RuntimeError),
    ],
    ids=["body", "source"],
)
@pytest.mark.parametrize("transacted", [False, True])
def test_send_many_says_how_many_were_sent_before_it_failed(
    connection, run, queue, bodies, error, transacted
):
    """The bodies before are sent, none after; so the application knows where to go on."""

    async def work(other):
        async with other.session(transacted=transacted) as session:
            with pytest.raises(error) as caught:
                await session.producer(queue).send_many(bodies())
            if transacted:
                await session.commit()
            return caught.value

    with connection.session(transacted=transacted) as session:
        with pytest.raises(error) as caught:
            session.producer(queue).send_many(bodies())
        if transacted:
            session.commit()
    where = "in the unit of work" if transacted else "sent all the same"
    for raised in (caught.value, run(work)):
        assert raised.__notes__ == [f"send_many: bodies before this that are {where}: 3"]
    with connection.session() as session:
        found = [one.body for one in session.consumer(queue).until_idle(1.0)]
    assert found == list("abcabc")


@pytest.mark.parametrize("body", [{"id": 1}, ledgermq.StreamBody(["a"])], ids=["map", "stream"])
def test_one_body_in_place_of_several_is_refused(connection, run, queue, body):
    """Of a map, the names would be sent, and the values be lost."""

    async def work(other):
        async with other.session() as session:
            await session.producer(queue).send_many(body)

    said = r"bodies is .* it must be several bodies, in a list even if there is one"
    with connection.session() as session:
        with pytest.raises(ledgermq.ArgumentTypeError, match=said):
            session.producer(queue).send_many(body)
        with pytest.raises(ledgermq.ArgumentTypeError, match=said):
            run(work)
        session.producer(queue).send_many([body])
        assert [one.body for one in session.consumer(queue).until_idle(1.0)] == [body]


def test_a_synchronous_send_follows_what_was_sent_asynchronously(connection, queue):
    """Mixing the two kinds keeps the order."""
    with connection.session() as session:
        producer = session.producer(queue)
        futures = [producer.send_async("before") for _ in range(10)]
        receipt = producer.send("after")
        assert [future.result(20).sequence for future in futures] == list(range(10))
    assert receipt.sequence == 10


def test_closing_a_session_lets_asynchronous_sends_arrive(connection, queue):
    """What was sent and not flushed is on the queue after the session has closed (SES-18)."""
    with connection.session() as session:
        producer = session.producer(queue)
        futures = [producer.send_async("x") for _ in range(500)]
    assert [future.result(0).sequence for future in futures] == list(range(500))


def test_confirmation_by_the_log_tells_the_position(connection, queue):
    """`confirm="log"` returns when the operation is durable; its number comes later."""
    with connection.session() as session:
        producer = session.producer(queue)
        receipt = producer.send("x", confirm="log")
        message = session.consumer(queue).receive(20)
    assert receipt.sequence is None
    assert message.put_position == receipt.position
    assert message.message_id == receipt.message_id


def test_a_refusal_after_confirmation_by_the_log_is_raised_by_the_next_call(
    connection, queue, eventually
):
    """Nobody waits for that outcome, but it does not pass silently."""
    connection.admin.create_queue(queue, message_bytes_max=100)
    with connection.session() as session:
        producer = session.producer(queue)
        producer.send(b"x" * 500, confirm="log")
        eventually(lambda: not session._engine.protocol.pending)
        with pytest.raises(ledgermq.MessageTooLargeError):
            producer.send(b"small")
        assert producer.send(b"small").sequence == 0


def test_a_queue_with_a_limit_of_its_own_refuses_larger_messages(connection, queue):
    """The refusal names the position and the destination."""
    connection.admin.create_queue(queue, message_bytes_max=100)
    with connection.session() as session:
        producer = session.producer(queue)
        with pytest.raises(ledgermq.MessageTooLargeError) as caught:
            producer.send(b"x" * 500)
        future = producer.send_async(b"x" * 500)
        producer.flush()
        assert isinstance(future.exception(20), ledgermq.MessageTooLargeError)
    assert caught.value.code == "message-too-large"
    assert caught.value.destination == queue
    assert caught.value.position is not None


def test_ses_34_a_producer_without_a_destination_is_told_with_each_message(connection, queue):
    """Synchronously, asynchronously, by the batch and in a unit of work."""
    with connection.session() as session, connection.session(transacted=True) as transacted:
        producer = session.producer(None)
        assert producer.destination is None
        producer.send("a", destination=queue)
        producer.send("b", destination=queue, confirm="log")
        producer.send_async("c", destination=queue + ".other").result(20)
        producer.send_many(["d", "e"], destination=queue)
        transacted.producer(None).send("f", destination=queue)
        transacted.commit()
    assert [one.body for one in connection.browser(queue)] == ["a", "b", "d", "e", "f"]
    assert [one.body for one in connection.browser(queue + ".other")] == ["c"]


def test_ses_34_a_destination_is_named_once(connection, queue):
    """Neither not at all nor twice; a text that is none is refused as ever."""
    with connection.session() as session:
        with pytest.raises(ledgermq.IllegalStateError, match="has no destination"):
            session.producer(None).send("a")
        with pytest.raises(ledgermq.IllegalStateError, match="not to 'queue:elsewhere'"):
            session.producer(queue).send("a", destination="queue:elsewhere")
        with pytest.raises(ledgermq.InvalidDestinationError):
            session.producer(None).send("a", destination="nowhere")
        assert session.producer(queue).send("a", destination=queue).sequence == 0
