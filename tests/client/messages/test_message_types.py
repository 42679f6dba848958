"""Message types through a queue: sent with any session, received read-only, sent again."""

from __future__ import annotations

import asyncio
import warnings
from datetime import UTC, datetime
from decimal import Decimal

import pytest

import ledgermq
from ledgermq import aio
from ledgermq.client.sending import making

OBJECT = {"orders": [{"price": Decimal("1.50"), "at": datetime(2026, 1, 1, tzinfo=UTC)}], "n": (1,)}


class Custom:
    """A type that only a pickle carries."""

    def __eq__(self, other):
        return isinstance(other, Custom)

    __hash__ = None


def sent_and_got(connection, queue, *sent, **options):
    """What comes out of a queue when this was put on it."""
    with connection.session() as session:
        producer = session.producer(queue)
        for one in sent:
            producer.send(one, **options)
        consumer = session.consumer(queue)
        return [consumer.receive(20) for _ in sent]


def all_kinds():
    """A message object of each kind, with its kind, and what `body` gives of it."""
    stream = ledgermq.StreamMessage([1, "a"])
    stream.write_bytes(b"x")
    raw = ledgermq.BytesMessage()
    raw.write_int(7)
    mapped = ledgermq.MapMessage()
    mapped.set_int("id", 1)
    return [
        (ledgermq.TextMessage("text"), "text", "text"),
        (raw, "bytes", b"\0\0\0\x07"),
        (mapped, "map", {"id": 1}),
        (stream, "stream", ledgermq.StreamBody([1, "a", b"x"])),
        (ledgermq.ObjectMessage(OBJECT), "object", OBJECT),
        (ledgermq.PlainMessage(), "plain", None),
    ]


def test_ses_33_a_message_is_sent_with_any_session(connection, queue):
    """Every kind, with a session that has not made it, and a second time with another."""
    made = all_kinds()
    for _ in range(2):
        got = sent_and_got(connection, queue, *(message for message, *_ in made))
        assert [(one.kind, one.body) for one in got] == [tuple(rest) for _, *rest in made]
        for one, (message, *_) in zip(got, made, strict=True):
            assert type(one.typed()) is type(message)


def test_ses_33_a_body_sends_what_a_message_object_sends(connection, queue):
    """The short form and the long one are the same on the log."""
    pairs = [(message, message.unloaded_body) for message, *_ in all_kinds()]
    for long, short in pairs:
        first, second = sent_and_got(connection, queue, long, short)
        assert first.unloaded_body == second.unloaded_body
        assert first.kind == second.kind


def test_ses_33_a_message_has_its_properties_and_header_fields_with_it(connection, queue):
    """What `send` is given counts before what the message has."""
    message = ledgermq.TextMessage(
        "x", properties={"a": 1}, correlation_id="c", reply_to="queue:r", type="t"
    )
    (own,) = sent_and_got(connection, queue, message)
    assert (own.correlation_id, own.reply_to, own.type) == ("c", "queue:r", "t")
    assert own.properties == {"a": 1}
    (given,) = sent_and_got(
        connection, queue, message, properties={}, correlation_id="d", reply_to="queue:s", type="u"
    )
    assert (given.correlation_id, given.reply_to, given.type) == ("d", "queue:s", "u")
    assert given.properties == {}


def test_a_sent_message_object_can_be_changed_and_sent_again(connection, queue):
    """What was sent does not change with it, in a unit of work either."""
    message = ledgermq.MapMessage({"n": 1})
    with connection.session(transacted=True) as session:
        producer = session.producer(queue)
        producer.send(message)
        message.set_int("n", 2)
        message.set_property("again", True)
        producer.send_many([message])
        message.clear_body()
        session.commit()
    got = list(connection.browser(queue))
    assert [one.body for one in got] == [{"n": 1}, {"n": 2}]
    assert [dict(one.properties) for one in got] == [{}, {"again": True}]


def test_ses_33_asyncio_sends_message_objects(place, queue):
    """The same objects, by a session of `ledgermq.aio`."""

    async def run(connection):
        async with aio.Connection(connection).session() as session:
            producer = session.producer(queue)
            for message, *_ in all_kinds():
                await producer.send(message, correlation_id="c")
            async with session.consumer(queue) as consumer:
                return [await consumer.receive(20) for _ in all_kinds()]

    with place.connect() as connection:
        got = asyncio.run(run(connection))
    assert [(one.kind, one.body) for one in got] == [tuple(rest) for _, *rest in all_kinds()]
    assert {one.correlation_id for one in got} == {"c"}


@pytest.mark.parametrize("kind", range(6))
def test_a_received_message_is_read_only_until_it_is_cleared(connection, queue, kind):
    """Body and properties, of the message and of its typed object; the queue's stays as it was."""
    message, name, body = all_kinds()[kind]
    message.set_property("a", 1)
    with connection.session(transacted=True) as session:
        session.producer(queue).send(message)
        session.commit()
        consumer = session.consumer(queue)
        got = consumer.receive(20)
        with pytest.raises(ledgermq.MessageNotWriteableError, match="call clear_body"):
            got.body = "other"
        with pytest.raises(ledgermq.MessageNotWriteableError, match="clear_properties"):
            got.properties["a"] = 2
        with pytest.raises(ledgermq.MessageNotWriteableError, match="clear_properties"):
            got.set_property("a", 2)
        assert (got.body, got.properties) == (body, {"a": 1})
        got.clear_body()
        assert got.kind == name
        assert not got.body
        got.body = "other"
        got.clear_properties()
        got.set_int_property("b", 2)
        assert (got.body, got.kind, got.properties) == ("other", "text", {"b": 2})
        session.rollback()
        again = consumer.receive(20)
        assert (again.message_id, again.body, again.properties) == (got.message_id, body, {"a": 1})
        session.commit()


def test_a_body_that_was_cleared_can_be_filled(connection, queue):
    """A map is empty and writeable then, without another body being set."""
    (got,) = sent_and_got(connection, queue, {"a": 1})
    with pytest.raises(ledgermq.MessageNotWriteableError):
        got.body["a"] = 2
    got.clear_body()
    got.body["b"] = 3
    assert got.body == {"b": 3}
    (fresh,) = sent_and_got(connection, queue, {"a": 1})
    fresh.clear_body()
    assert fresh.body == {}


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (0, lambda typed: setattr(typed, "text", "x")),
        (1, lambda typed: typed.write_int(1)),
        (2, lambda typed: typed.set_int("id", 2)),
        (3, lambda typed: typed.write_int(1)),
        (4, lambda typed: setattr(typed, "value", 1)),
    ],
)
def test_the_typed_object_of_a_received_message_is_read_only_until_cleared(
    connection, queue, kind, change
):
    """MessageNotWriteableError; after clear_body it is as a new one, and can be sent."""
    message, name, body = all_kinds()[kind]
    (got,) = sent_and_got(connection, queue, message)
    typed = got.typed()
    with pytest.raises(ledgermq.MessageNotWriteableError, match="clear_body"):
        change(typed)
    with pytest.raises(ledgermq.MessageNotWriteableError, match="clear_properties"):
        typed.set_property("a", 1)
    assert typed.get_int_property("JMSXDeliveryCount") == 1
    typed.clear_body()
    change(typed)
    typed.clear_properties()
    typed.set_property("a", 1)
    (sent,) = sent_and_got(connection, queue, typed)
    assert (sent.kind, dict(sent.properties)) == (name, {"a": 1})
    assert sent.body != body
    assert got.body == body


def test_the_typed_object_reads_with_types(connection, queue):
    """Streams are readable from the front; a map by name."""
    got = sent_and_got(connection, queue, *(message for message, *_ in all_kinds()[:5]))
    text, raw, mapped, stream, held = (one.typed() for one in got)
    assert text.text == "text"
    assert (raw.body_length, raw.read_int()) == (4, 7)
    assert (mapped.get_string("id"), mapped.get_long("id")) == ("1", 1)
    assert (stream.read_short(), stream.read_char(), stream.read_bytes()) == (1, "a", b"x")
    assert held.value == OBJECT
    with pytest.raises(ledgermq.MessageEOFError):
        stream.read_object()
    assert (got[3].body.read_int(), got[3].body.read_string()) == (1, "a")


def test_a_received_message_is_sent_again_as_a_new_one(connection, queue):
    """Body, properties and header fields are the same, the identity is another."""
    for message, *_ in all_kinds():
        message.set_property("a", 1)
        (got,) = sent_and_got(connection, queue, message, correlation_id="c", type="t", priority=9)
        (again,) = sent_and_got(connection, queue, got)
        assert again.unloaded_body == got.unloaded_body
        assert (again.kind, again.properties) == (got.kind, {"a": 1})
        assert (again.correlation_id, again.type, again.priority) == ("c", "t", 4)
        assert again.message_id != got.message_id


def test_ses_65_the_delivery_count_is_a_property_of_what_was_received(connection, queue):
    """JMSXDeliveryCount is there on receipt, not when browsing, and does not travel on."""
    with connection.session(transacted=True) as session:
        session.producer(queue).send("x", properties={"a": 1})
        session.commit()
        (seen,) = connection.browser(queue)
        assert not seen.property_exists("JMSXDeliveryCount")
        consumer = session.consumer(queue)
        assert consumer.receive(20).get_int_property("JMSXDeliveryCount") == 1
        session.rollback()
        got = consumer.receive(20)
        assert got.get_property("JMSXDeliveryCount") == 2
        assert got.property_names() == ["a", "JMSXDeliveryCount"]
        assert got.properties == {"a": 1}
        session.commit()


def test_ses_33_a_message_object_that_cannot_be_sent_is_refused_by_name(connection, queue):
    """What was wrong with it is named when it is sent at the latest, and nothing was sent."""
    wrong = ledgermq.TextMessage("x")
    wrong.correlation_id = 5
    surrogate = ledgermq.StreamMessage(["\ud800"])
    with connection.session() as session:
        producer = session.producer(queue)
        for one in (wrong, surrogate):
            with pytest.raises(ledgermq.MessageFormatError, match="was not sent") as caught:
                producer.send(one)
            assert caught.value.destination == queue
        with pytest.raises(ledgermq.MessageTooLargeError):
            producer.send(ledgermq.BytesMessage(b"x" * (8 * 1024 * 1024)))
        assert producer.send("fine").sequence == 0


@pytest.mark.parametrize(
    ("body", "properties", "raised", "code"),
    [
        ("x", {"a b": 1}, ledgermq.PropertyNameError, "property-name-invalid"),
        ("x", {"LIKE": 1}, ledgermq.PropertyNameError, "property-name-invalid"),
        ("x", {"n" * 256: 1}, ledgermq.NameTooLongError, "name-too-long"),
        ({"n" * 256: 1}, {}, ledgermq.NameTooLongError, "name-too-long"),
        ("x", {"a": b"x"}, ledgermq.UnsupportedValueError, "value-unsupported"),
        ("x", {"a": 2**63}, ledgermq.UnsupportedValueError, "value-unsupported"),
        ({"a": [1]}, {}, ledgermq.UnsupportedValueError, "value-unsupported"),
        ([1], {}, ledgermq.UnsupportedValueError, "value-unsupported"),
        ({"": 1}, {}, ledgermq.MessageFormatError, "message-invalid"),
        ("\ud800", {}, ledgermq.MessageFormatError, "message-invalid"),
    ],
)
def test_each_bad_input_has_an_error_of_its_own(connection, queue, body, properties, raised, code):
    """Nothing is sent, in a unit of work nothing joins it, and the next message is as ever."""
    with connection.session(transacted=True) as session:
        producer = session.producer(queue)
        producer.send("before")
        with pytest.raises(raised, match="was not sent") as caught:
            producer.send(body, properties=properties)
        producer.send("after")
        session.commit()
    assert (type(caught.value), caught.value.code) == (raised, code)
    assert caught.value.destination == queue
    assert [one.body for one in connection.browser(queue)] == ["before", "after"]


def test_a_body_that_does_not_decode_is_named_and_not_lost(connection, queue, monkeypatch):
    """Its header can be read; it goes back, and is acknowledged, like any other."""
    with connection.session(transacted=True) as session:
        with monkeypatch.context() as patched:
            patched.setattr(making, "encode_content", lambda *_: b"nonsense")
            session.producer(queue).send("x", properties={"a": 1})
        broken = ledgermq.ObjectBody.encoded("json", b"[")
        session.producer(queue).send(broken)
        session.commit()
        consumer = session.consumer(queue)
        for _ in range(2):
            first, second = consumer.receive(20), consumer.receive(20)
            for read in (lambda one: one.body, lambda one: one.typed().value):
                with pytest.raises(ledgermq.MessageUndecodableError) as caught:
                    read(first)
                assert caught.value.code == "message-undecodable"
                with pytest.raises(ledgermq.MessageUndecodableError, match="cannot be decoded"):
                    read(second)
            with pytest.raises(ledgermq.MessageUndecodableError):
                session.producer(queue).send(first)
            assert (first.properties, second.unloaded_body) == ({"a": 1}, broken)
            session.rollback()
        assert [consumer.receive(20).delivery_count for _ in range(2)] == [3, 3]
        session.commit()
    assert list(connection.browser(queue)) == []


def test_a_pickle_is_refused_without_permission_and_nothing_is_lost(place, queue):
    """The error says what to do; the message goes back, and a connection with permission has it."""
    body = ledgermq.ObjectBody(Custom(), encoding="pickle")
    with place.connect() as connection, connection.session(transacted=True) as session:
        session.producer(queue).send(body)
        session.commit()
        got = session.consumer(queue).receive(20)
        for read in (lambda: got.body, lambda: got.typed().value):
            with pytest.raises(ledgermq.MessageFormatError, match="allow_pickle=True"):
                read()
        assert (got.kind, got.unloaded_body) == ("object", body)
        session.rollback()
    with pytest.warns(ledgermq.PickleWarning, match="runs code") as warned:
        trusting = place.connect(allow_pickle=True)
    assert len(warned) == 1
    with trusting, trusting.session(transacted=True) as session, warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [one.body for one in trusting.browser(queue)] == [Custom()]
        got = session.consumer(queue).receive(20)
        assert got.body == got.typed().value == Custom()
        session.commit()
        assert list(trusting.browser(queue)) == []


def test_a_pickle_that_nobody_can_read_is_acknowledged_like_any_other(connection, queue):
    """It does not stand in the way of the messages behind it."""
    with connection.session(ack="CLIENT") as session:
        producer = session.producer(queue)
        producer.send(ledgermq.ObjectBody(Custom(), encoding="pickle"))
        producer.send("behind")
        consumer = session.consumer(queue)
        with pytest.raises(ledgermq.MessageFormatError):
            _ = consumer.receive(20).body
        assert consumer.receive(20).body == "behind"
        session.acknowledge()
    assert list(connection.browser(queue)) == []
