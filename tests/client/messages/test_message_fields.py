"""What a message tells of itself, by hand: header fields, kinds, what cannot be decoded."""

import copy
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from pickle import dumps, loads
from types import SimpleNamespace

import pytest

import ledgermq
from ledgermq.client.engine.callbacks import Callbacks
from ledgermq.client.messages.message import Message
from ledgermq.client.messages.message_kinds import EMPTY
from ledgermq.client.sending.receipts import ReceiptFuture, SendReceipt, settle
from ledgermq.wire.content.bodies import StreamBody
from ledgermq.wire.content.content import Content, encode_content
from ledgermq.wire.content.objects import ObjectBody
from support.brokers.hand_made import delivered, key_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def raw(body="text", *, header=None, **fields):
    """A message as the queue manager delivers it."""
    (message,) = delivered(0, 5, 1, 1).messages
    content = Content(body=body, reply_to="queue:back", client_time=1_500_000)
    message |= {
        "content": encode_content(content.body, content.reply_to, content.client_time),
        **fields,
    }
    if header is not None:
        message["header"] = header
    return message


HEADER = {
    "properties": {"a": 1},
    "correlation_id": "c",
    "type": "t",
    "expires_at": 2_000_000,
    "deliver_at": 0,
}


def test_a_message_tells_all_its_header_fields():
    """As the queue manager told them, times by the log's clock."""
    fields = {
        "sequence": 17,
        "put_position": 40,
        "put_index": 2,
        "priority": 8,
        "persistent": False,
        "backout_count": 2,
        "enqueued_at": 3_000_000,
    }
    told = raw(header=HEADER, **fields)
    message = Message(told, "queue:q", 3)
    assert {name: getattr(message, name) for name in fields if name != "enqueued_at"} == {
        name: value for name, value in fields.items() if name != "enqueued_at"
    }
    assert message.message_id == key_of(1).hex()
    assert (message.delivery_count, message.redelivered) == (3, True)
    assert message.timestamp == EPOCH + timedelta(seconds=3)
    assert message.expires_at == EPOCH + timedelta(seconds=2)
    assert message.deliver_at == EPOCH
    assert (message.correlation_id, message.type, message.reply_to) == ("c", "t", "queue:back")
    assert message.size_bytes == len(told["content"])
    assert message.sent_at == EPOCH + timedelta(seconds=1.5)
    assert repr(message) == (
        f"Message(queue:q, sequence=17, message_id='{key_of(1).hex()}', delivery_count=3)"
    )


@pytest.mark.parametrize(
    ("client_time", "year"), [(2**63 - 1, 9999), (-(2**63), 1), (1_790_000_000_000_000_000, 9999)]
)
def test_a_clock_beyond_all_years_is_told_as_the_first_or_last_moment(client_time, year):
    """Its writer may be of another make, and count nanoseconds: all else can be read."""
    content = encode_content("text", client_time=client_time)
    message = Message(raw() | {"content": content}, "queue:q")
    assert (message.sent_at.year, message.sent_at.tzinfo, message.body) == (year, UTC, "text")


def test_a_message_to_which_nothing_was_given_has_none_of_it():
    """No properties, no texts, no moments; a first delivery is none again."""
    message = Message(raw(), "queue:q")
    assert (message.correlation_id, message.type) == (None, None)
    assert (message.expires_at, message.deliver_at) == (None, None)
    assert (message.redelivered, message.delivery_count, message.delivery) == (False, 1, 0)
    assert message.properties == {}
    assert message.property_names() == []


def test_only_what_was_delivered_has_a_delivery_count_among_its_properties():
    """What was browsed was not delivered (SES-65)."""
    browsed, got = Message(raw(header=HEADER), "queue:q"), Message(raw(header=HEADER), "queue:q", 1)
    assert browsed.property_names() == ["a"]
    assert got.property_names() == ["a", "JMSXDeliveryCount"]
    assert got.get_int_property("JMSXDeliveryCount") == 1
    assert got.property_exists("JMSXDeliveryCount")
    got.clear_properties()
    got.set_property("b", 2)
    assert got.properties == {"b": 2}


BODIES = {
    "map": {"a": 1},
    "text": "x",
    "bytes": b"x",
    "stream": StreamBody([1]),
    "object": ObjectBody([1]),
    "plain": None,
}
TYPES = {
    "map": ledgermq.MapMessage,
    "text": ledgermq.TextMessage,
    "bytes": ledgermq.BytesMessage,
    "stream": ledgermq.StreamMessage,
    "object": ledgermq.ObjectMessage,
    "plain": ledgermq.PlainMessage,
}


@pytest.mark.parametrize("kind", BODIES)
def test_the_typed_object_of_a_message_has_all_that_the_message_has(kind):
    """Its kind, its texts, its properties and that it was delivered."""
    message = Message(raw(BODIES[kind], header=HEADER), "queue:q", 1)
    assert message.kind == kind
    typed = message.typed()
    assert type(typed) is TYPES[kind]
    assert (typed.correlation_id, typed.reply_to, typed.type) == ("c", "queue:back", "t")
    assert typed.property_names() == ["a", "JMSXDeliveryCount"]
    for name in ("a", "no name"):
        with pytest.raises(ledgermq.MessageNotWriteableError, match="clear_properties"):
            typed.set_property(name, 2)
    assert repr(typed).startswith(f"{TYPES[kind].__name__}(")
    assert repr(typed).endswith("properties={'a': 1})")
    if kind == "object":
        assert (typed.value, typed.allow_pickle) == ([1], False)
    if kind != "plain":
        typed.clear_body()
        assert typed.unloaded_body == EMPTY[kind]
        assert type(typed.unloaded_body) is type(BODIES[kind])


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda one: loads(dumps(one))])
@pytest.mark.parametrize("body", ["text", b"data", {"a": 1}, StreamBody([1, None]), None])
def test_a_copy_of_a_message_says_what_it_says_and_settles_nothing(copied, body):
    """Pickled it goes to another process, as a pool of processes hands it over."""
    settled = []
    message = Message(raw(body, header=HEADER), "queue:q", 3, SimpleNamespace(acknowledge=settled))
    for _ in range(2):  # before it was read, and after
        made = copied(message)
        assert repr(made) == repr(message)
        for name in ("deliveries", "body", "properties", "correlation_id", "expires_at"):
            assert getattr(made, name) == getattr(message, name)
        for settle_it in (made.acknowledge, made.reject):
            with pytest.raises(ledgermq.IllegalStateError, match="copy"):
                settle_it()
    assert message._settler is not None


def test_the_body_of_a_message_is_read_only_until_it_was_cleared():
    """Then it is empty, of the same kind, and what is set stays."""
    message = Message(raw({"a": 1}), "queue:q")
    with pytest.raises(ledgermq.MessageNotWriteableError, match="clear_body first"):
        message.body = {}
    with pytest.raises(ledgermq.MessageNotWriteableError):
        message.body["b"] = 2
    message.clear_body()
    assert message.body == {}
    message.body["b"] = 2
    assert message.body == {"b": 2}
    message.clear_body()
    assert message.body == {}
    message.body = None
    assert (message.body, message.kind) == (None, "plain")


def test_a_content_that_cannot_be_read_is_named_and_the_rest_still_is():
    """The message can go back or be acknowledged all the same."""
    message = Message(raw(header=HEADER) | {"content": b"nonsense"}, "queue:q", 1)
    for read in (lambda: message.body, lambda: message.kind, message.typed, message.clear_body):
        with pytest.raises(ledgermq.MessageUndecodableError, match="queue:q has a content") as one:
            read()
        assert one.value.destination == "queue:q"
    assert message.correlation_id == "c"
    with pytest.raises(ledgermq.IllegalStateError, match="browsed message"):
        message.acknowledge()


def test_a_pickle_is_read_only_where_that_was_allowed():
    """The body and the typed object alike."""
    pickled = raw(ObjectBody({1, 2}, encoding="pickle"))
    trusted = Message(pickled, "queue:q", allow_pickle=True)
    assert trusted.body == trusted.typed().value == {1, 2}
    other = Message(pickled, "queue:q")
    for read in (lambda: other.body, lambda: other.typed().value):
        with pytest.raises(ledgermq.MessageFormatError):
            read()


@pytest.mark.parametrize(
    ("kind", "bits"), [("byte", 8), ("short", 16), ("int", 32), ("long", 64), ("float", 32)]
)
def test_a_number_that_is_too_large_is_refused_with_the_bits_there_are(kind, bits):
    """So that whoever reads it knows which type to take."""
    value = 1e300 if kind == "float" else 2**64
    with pytest.raises(ledgermq.UnsupportedValueError, match=f"does not fit into {bits} bits"):
        getattr(ledgermq.BytesMessage(), f"write_{kind}")(value)


def test_reading_no_bytes_is_reading():
    """0 is a number of bytes; the error at the end says how many there were and are left."""
    message = ledgermq.BytesMessage(b"abc")
    with pytest.raises(ledgermq.MessageNotReadableError):
        message.read_bytes(-1)
    message.reset()
    assert message.body_length == 3
    assert (message.read_bytes(0), message.read_bytes(1)) == (b"", b"a")
    with pytest.raises(ledgermq.MessageEOFError, match=r"3 bytes, 2 of them .* 4 are needed"):
        message.read_int()
    assert message.read_bytes() == b"bc"
    with pytest.raises(ledgermq.MessageEOFError, match=r"3 bytes, 0 of them .* 2 are needed"):
        message.read_utf()


def test_a_text_of_65535_bytes_can_be_written_and_no_longer_one():
    """Its length stands in two bytes."""
    message = ledgermq.BytesMessage()
    message.write_utf("x" * 65535)
    assert len(message.unloaded_body) == 65537
    with pytest.raises(ledgermq.UnsupportedValueError, match="65,536 bytes, write_utf takes 65,5"):
        message.write_utf("x" * 65536)


# -- receipts ----------------------------------------------------------------------------------


def test_a_receipt_shows_what_is_known():
    """Position and sequence number come later."""
    receipt = SendReceipt(b"\x01" * 16, "queue:q")
    start = f"SendReceipt(message_id='{'01' * 16}', destination='queue:q', "
    assert repr(receipt) == start + "position=None, sequence=None)"
    receipt.position, receipt.sequence = 4, 0
    assert repr(receipt) == start + "position=4, sequence=0)"


def test_a_future_without_an_outcome_can_be_asked_again():
    """It is not done, and says that nothing is to be sent again."""
    outcome = Future()
    future = ReceiptFuture(outcome, lambda: "receipt", Callbacks())
    assert not future.done()
    with pytest.raises(ledgermq.TimeoutExceededError, match=r"within 0 s yet"):
        future.result(0)
    settle(outcome)
    assert future.done()
    assert (future.result(), future.exception()) == ("receipt", None)


def test_callbacks_of_a_future_are_called_once_each_whatever_one_of_them_does(caplog):
    """Those that come late at once; a failure is logged; what would wait for them is refused."""
    outcome, error = Future(), ledgermq.OutcomeUnknownError("lost")
    callbacks = Callbacks()
    future = ReceiptFuture(outcome, lambda: "receipt", callbacks)
    calls = []

    def waits(one):
        Callbacks().refuse("another's")
        try:
            callbacks.refuse("it")
        except ledgermq.IllegalStateError as refused:
            calls.append(str(refused)[:19])

    future.add_done_callback(lambda _: 1 / 0)
    future.add_done_callback(calls.append)
    future.add_done_callback(waits)
    settle(outcome, error)
    callbacks.wait(20)
    assert calls == [future, "it cannot be called"]
    assert caplog.text.count("a callback of the application failed") == 1
    future.add_done_callback(calls.append)
    assert calls[2:] == [future]
    future.add_done_callback(waits)
    assert calls[3:] == ["it cannot be called"]
    callbacks.refuse("outside of a callback all is allowed")
    with pytest.raises(ledgermq.OutcomeUnknownError):
        future.result()
