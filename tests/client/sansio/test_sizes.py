"""What is too large for the log ends its own call, and the session goes on (PROTOCOL.md §1, §3)."""

import asyncio

import pytest

import ledgermq
from ledgermq import aio
from ledgermq.client.sansio.sizes import MESSAGE_BYTES_MAX, VALUE_BYTES_MAX, encoded_bytes
from ledgermq.client.sending.making import Sending, make_message
from ledgermq.errors import BrokerUnavailableError, LogError
from ledgermq.protocol.limits import CONTENT_BYTES_MAX, GROUP_SEQUENCE_MAX, HEADER_BYTES_MAX
from ledgermq.protocol.operations import Open, OpenConsumer, Put
from ledgermq.testing import MemoryBroker
from ledgermq.wire.content.content import encode_content
from ledgermq.wire.framing.codec import encode_operation
from ledgermq.wire.framing.confluent import SCHEMA_HEADER
from ledgermq.wire.framing.headers import operation_headers, with_identity
from ledgermq.wire.topics.log_topics import OPERATION_BYTES_MAX

QUEUE = "queue:q"
# What encoding takes around a body of bytes.
AROUND = len(encode_content(b"x" * CONTENT_BYTES_MAX, None, 2**50)) - CONTENT_BYTES_MAX
MODES = ["AUTO", "CLIENT", "DUPS_OK", "INDIVIDUAL", "TRANSACTED"]
OVER = {
    "content": {"body": b"x" * (CONTENT_BYTES_MAX + 1 - AROUND)},
    "content and properties": {"body": b"x" * 8_384_482, "properties": {"p": "z" * 4000}},
    "content and correlation id": {"body": b"x" * 8_384_000, "correlation_id": "z" * 5000},
    "content and type": {"body": b"x" * 8_384_000, "type": "z" * 5000},
    "correlation id": {"body": b"", "correlation_id": "z" * (HEADER_BYTES_MAX + 1)},
}


def ways(session):
    """All ways to send one message of a session."""
    producer = session.producer(QUEUE)
    return {
        "send": producer.send,
        "log": lambda body, **more: producer.send(body, confirm="log", **more),
        "async": lambda body, **more: producer.send_async(body, **more).result(20),
        "segmented": lambda body, **more: producer.send_segmented(body, max_segment=10**8, **more),
        "group": lambda body, **more: producer.group().send(body, last=True, **more),
    }


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("what", OVER)
def test_what_is_too_large_together_ends_its_call_alone(memory, mode, what):
    """Content, header and the whole operation are checked before a session number is used."""
    with memory.connect() as connection, connection.session(ack=mode) as session:
        for way, send in ways(session).items():
            number = session._engine.protocol.next_number
            with pytest.raises(ledgermq.MessageTooLargeError, match="bytes") as raised:
                send(**OVER[what])
            assert raised.value.destination == QUEUE, way
            assert session._engine.protocol.next_number == number
            assert send("small") is not None
        if mode == "TRANSACTED":
            session.commit()
        assert len(list(connection.browser(QUEUE))) == len(ways(session))


def test_a_coroutine_that_sends_too_much_ends_alone(memory):
    """The client for asyncio checks the same, before it writes anything."""

    async def main():
        async with (
            aio.Connection(memory.connect()) as connection,
            connection.session() as session,
        ):
            producer = session.producer(QUEUE)
            for fields in OVER.values():
                for send in (producer.send, producer.group().send):
                    with pytest.raises(ledgermq.MessageTooLargeError):
                        await send(**fields)
            assert (await producer.send("small")).sequence == 0

    asyncio.run(asyncio.wait_for(main(), 30))


@pytest.mark.parametrize("fields", [{}, {"properties": {"p": "z" * 4000}}, {"type": "t" * 60_000}])
def test_the_largest_message_is_sent_and_one_byte_more_is_not(connection, queue, fields):
    """At the limit, one below and one above: on Kafka, the broker takes what the client sends."""
    empty = make_message(queue, b"", Sending(**fields))
    along = encoded_bytes(empty) - len(empty["content"])
    largest = min(CONTENT_BYTES_MAX, MESSAGE_BYTES_MAX - along) - AROUND
    with connection.session() as session:
        producer = session.producer(queue)
        with pytest.raises(ledgermq.MessageTooLargeError):
            producer.send(b"x" * (largest + 1), **fields)
        for sequence, size in enumerate((largest, largest - 1)):
            assert producer.send(b"x" * size, timeout=20, **fields).sequence == sequence
        with session.consumer(queue, prefetch=1) as consumer:
            assert len(consumer.receive(20).body) == largest


def test_a_segment_has_room_for_what_goes_along_with_it(connection, queue):
    """A body in segments with properties: the size of a segment counts them; it ends (GRP-38)."""
    properties = {"p": "y" * 5000, "q": "z" * 50_000}
    body = b"0123456789" * 1_000_000
    with connection.session() as session:
        producer = session.producer(queue)
        receipt = producer.send(
            body, segmentation_allowed=True, properties=properties, reply_to=queue, timeout=20
        )
        assert receipt.group.is_segment
        with session.consumer(queue, complete_message=True) as consumer:
            message = consumer.receive(20)
        assert (message.body, message.properties) == (body, properties)
        with pytest.raises(ledgermq.MessageTooLargeError):
            producer.send(body, segmentation_allowed=True, properties={"p": "y" * 70_000})


def test_properties_that_leave_no_room_for_data_are_an_error(memory):
    """A queue whose limit is smaller than what stands around a body: no endless cutting."""
    with memory.connect() as connection, connection.session() as session:
        connection.admin.create_queue("q", message_bytes_max=40)
        producer = session.producer(QUEUE)
        with pytest.raises(ledgermq.MessageTooLargeError, match="no room"):
            producer.send("text", segmentation_allowed=True, reply_to="queue:" + "r" * 30)
        assert producer.send("text", segmentation_allowed=True, properties={"p": "y" * 99})


def test_the_bound_of_a_record_leaves_room_for_key_and_headers():
    """With all names and numbers as long as they may be, a record stays within its topic."""
    name, number = "m" * 128, 2**63 - 1
    shared = operation_headers(name, b"\xff" * 16, 2**31 - 1, number, "o" * 60)
    headers = with_identity(shared, number, number)
    # In Confluent framing the value is five bytes shorter.
    headers.append((SCHEMA_HEADER, b"f" * 16))
    # Of a batch of one record: 61 bytes, then at most 36 of its own, and lengths.
    beside = 61 + 36 + len(name) + sum(10 + len(key) + len(value) for key, value in headers)
    assert VALUE_BYTES_MAX + beside <= OPERATION_BYTES_MAX


@pytest.mark.parametrize("value", [True, 2**63 - 1, 0.5, "", "text"])
def test_the_bound_of_a_message_covers_its_encoding(value):
    """Whatever it carries: many small properties, its group, times; beside others without any."""
    group = {
        "group_id": b"g" * 24,
        "group_sequence": GROUP_SEQUENCE_MAX,
        "offset": 2**53,
        "length": 2**53,
        **dict.fromkeys(("in_group", "last_in_group", "segment", "last_segment"), True),
        "logical_order": True,
    }
    properties = {f"p{number}": value for number in range(2000)}
    sending = Sending(properties, "c", None, "t", 9, True, 10**9, 10**9, 2**31 - 1)
    messages = [make_message(QUEUE, b"x", sending, group)]
    messages += [make_message(QUEUE, b"", Sending()) for _ in "1234"]
    messages[0]["header"]["age_ms"] = 10**12
    put = Put(
        session=2**63 - 1,
        session_sequence=2**63 - 1,
        answered_through=2**63 - 1,
        handed_through=2**63 - 1,
        destination="topic:" + "n" * 128,
        messages=messages,
        blocking_ms=10**12,
    )
    room = VALUE_BYTES_MAX - MESSAGE_BYTES_MAX
    assert len(encode_operation(put)) <= room + sum(map(encoded_bytes, messages))


TEXTS = {
    "selector": lambda c, s, text: s.consumer(QUEUE, selector=text),
    "subscription": lambda c, s, text: s.consumer(
        "topic:t", subscription=text, durable=True, shared=True
    ),
    "subscription ended": lambda c, s, text: s.unsubscribe(text),
    "description": lambda c, s, text: c.admin.create_queue("new", description=text),
    "reason": lambda c, s, text: c.admin.purge_queue("q", reason=text, actor="a"),
    "actor": lambda c, s, text: c.admin.purge_queue("q", reason="r", actor=text),
    "browser's selector": lambda c, s, text: list(c.browser(QUEUE, selector=text)),
    "match": lambda c, s, text: s.consumer(
        QUEUE, prefetch=0, match=ledgermq.GetMatch(correlation_id=text)
    ).receive(1),
}


@pytest.mark.parametrize("what", TEXTS)
def test_a_text_that_no_record_holds_is_refused_by_name(memory, what):
    """Nothing is written: no number of the session is used, and the session goes on."""
    with memory.connect() as connection, connection.session() as session:
        session.producer(QUEUE).send("x")
        written = memory._state.position
        with pytest.raises(ledgermq.LedgerMQError) as raised:
            TEXTS[what](connection, session, "x" * 9_000_000)
        named = what.split()[-1] if "browser" in what or "ended" not in what else "subscription"
        named = "correlation id" if what == "match" else named
        assert named in str(raised.value)
        assert memory._state.position <= written + (what == "match") * 2
        assert session.producer(QUEUE).send("y").sequence == 1
        assert connection.admin.create_queue("other") > written


def test_the_text_of_an_application_is_bounded():
    """What an Open says of its client: it would be in the state for as long as the session."""
    with pytest.raises(ledgermq.AddressError, match="application"):
        MemoryBroker().connect(application="x" * 1001)
    with MemoryBroker().connect(application="x" * 1000) as connection:
        assert len(connection.admin.sessions()) == 1
    with pytest.raises(ledgermq.LedgerMQError, match="client id"):
        MemoryBroker().connect(client_id="x" * 129)
    secret = {"client_id": "me", "takeover": "s" * 7_000_000}
    with MemoryBroker().connect(**secret) as connection:
        assert not connection.is_closed


# -- what Kafka's producer refuses itself ------------------------------------------------------


class Choosy:
    """A way to the log that refuses what the test says, as librdkafka would."""

    def __init__(self, log):
        self.log = log
        self.refusing = None
        self.error = LogError("not taken")

    def __getattr__(self, name):
        return getattr(self.log, name)

    def write(self, value, headers, receipt=None):
        """Refuses, or lets it pass."""
        if self.refusing is not None and dict(headers)["ce_type"].endswith(self.refusing):
            raise self.error
        self.log.write(value, headers, receipt)


@pytest.fixture
def choosy(memory):
    """A connection whose producer refuses what it is told to."""
    made = []

    def route(settings, deadline):
        found = memory._route(settings, deadline)
        made.append(Choosy(found.log))
        return found._replace(log=made[0])

    with memory.connect() as plain:
        settings = plain._running.settings
    from ledgermq.client.connection import Connection

    with Connection(settings, route=route) as connection:
        yield connection, made[0]


REFUSALS = [LogError("not taken"), BrokerUnavailableError("queue full")]


@pytest.mark.parametrize("error", REFUSALS, ids=lambda one: one.code)
@pytest.mark.parametrize("mode", MODES)
def test_a_put_that_the_producer_refuses_leaves_the_session_as_it_was(choosy, mode, error):
    """In every mode and way to send: the call raises, the number is used by the next one."""
    connection, log = choosy
    log.error = error
    with connection.session(ack=mode) as session:
        for way in ways(session):
            if mode != "TRANSACTED":
                log.refusing = b"Put"
                with pytest.raises(type(error)):
                    ways(session)[way]("refused")
                log.refusing = None
            ways(session)[way](way)
        if mode == "TRANSACTED":
            session.commit()
        expected = list(ways(session))
    assert [one.body for one in connection.browser(QUEUE)] == expected


@pytest.mark.parametrize("mode", ["AUTO", "TRANSACTED"])
def test_gathered_puts_that_are_refused_can_be_sent_later(choosy, mode):
    """Those gathered before the refusal stay; the one whose call raised is not among them."""
    connection, log = choosy
    log.error = BrokerUnavailableError("queue full")
    with connection.session(ack=mode) as session:
        producer = session.producer(QUEUE)
        session._work.sends._under_way = 9
        producer.send_async("a")
        log.refusing = b"Put"
        with pytest.raises(BrokerUnavailableError):
            producer.send_many(["b"] * 300)
        log.refusing = None
        session._work.sends._under_way = 0
        producer.send_async("c").result(20)
        if mode == "TRANSACTED":
            session.commit()
    bodies = [one.body for one in connection.browser(QUEUE)]
    assert (bodies[0], bodies[-1], len(bodies)) == ("a", "c", 250 if mode == "AUTO" else 251)


def test_a_put_refused_with_its_commit_is_rolled_back_and_named(choosy):
    """It was numbered before the commit: an Alive has its number, the session goes on."""
    connection, log = choosy
    with connection.session(transacted=True) as session:
        session.producer(QUEUE).send("never")
        log.refusing = b"Put"
        with pytest.raises(ledgermq.TransactionRolledBackError, match="not taken"):
            session.commit()
        log.refusing = None
        session.producer(QUEUE).send("again")
        assert session.commit().enqueued[0].count == 1
    assert [one.body for one in connection.browser(QUEUE)] == ["again"]


@pytest.mark.parametrize("kind", [b"Commit", b"Put"])
def test_a_commit_held_up_by_a_full_queue_is_done_when_asked_again(choosy, kind):
    """Nothing of the unit of work is lost: its puts, and what it received."""
    connection, log = choosy
    log.error = BrokerUnavailableError("queue full")
    with connection.session() as other:
        other.producer("queue:in").send("in")
    with connection.session(transacted=True) as session:
        consumer = session.consumer("queue:in")
        assert consumer.receive(20).body == "in"
        session.producer(QUEUE).send("out")
        log.refusing = kind
        if kind == b"Commit":
            with pytest.raises(BrokerUnavailableError):
                session.commit()
            log.refusing = None
            receipt = session.commit()
        else:
            future = session.commit_async()
            log.refusing = None
            receipt = future.result(20)
        assert (receipt.consumed, receipt.enqueued[0].count) == (1, 1)


@pytest.mark.parametrize("kind", [b"Acknowledge", b"Get", b"OpenConsumer", b"Recover"])
def test_other_operations_that_the_producer_refuses_can_be_asked_again(choosy, kind):
    """What a session has handed over, and what it may ask for, is as it was before."""
    connection, log = choosy
    with connection.session(ack="CLIENT") as session:
        session.producer(QUEUE).send_many(["a", "b"])
        log.refusing = kind
        if kind == b"OpenConsumer":
            with pytest.raises(LogError):
                session.consumer(QUEUE)
            log.refusing = None
        consumer = session.consumer(QUEUE)
        if kind == b"Get":
            with pytest.raises(LogError):
                consumer.receive(20)
            log.refusing = None
        assert consumer.receive(20).body == "a"
        if kind in (b"Acknowledge", b"Recover"):
            with pytest.raises(LogError):
                session.acknowledge() if kind == b"Acknowledge" else session.recover()
            log.refusing = None
        if kind == b"Recover":
            session.recover()
            message = consumer.receive(20)
            assert (message.body, message.delivery_count) == ("a", 2)
        assert consumer.receive(20).body == "b"
        session.acknowledge()
    assert list(connection.browser(QUEUE)) == []


def test_the_kinds_named_here_are_operations():
    """The tests refuse by the end of the type's name."""
    assert {one.__name__ for one in (Put, Open, OpenConsumer)} == {"Put", "Open", "OpenConsumer"}
