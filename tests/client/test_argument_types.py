"""Wrong types of arguments, over the whole public API: an error of ours that names the argument."""

import asyncio
import inspect

import pytest

import ledgermq
from ledgermq import aio
from ledgermq.client.admin.changes import Changes
from ledgermq.client.admin.manual import ManualOperations
from ledgermq.client.admin.queue_settings import setting_keywords
from ledgermq.client.admin.relocation import Relocation
from ledgermq.client.admin.statuses import Statuses
from ledgermq.client.sending.group_sender import GroupSender
from ledgermq.testing import MemoryBroker

CLASSES = [
    *(ledgermq.Session, ledgermq.Producer, ledgermq.Consumer, ledgermq.Browser),
    *(Changes, ManualOperations, Relocation, Statuses),
    *(ledgermq.Connection, ledgermq.Message, ledgermq.Requestor, GroupSender),
    *(aio.Session, aio.Producer, aio.Consumer, aio.Browser, aio.Connection, aio.Message),
]
# What the call itself judges: bodies and values, which may be of many types, and what is not ours.
JUDGED_BY_THE_CALL = {
    *("body", "bodies", "value", "default", "numbers", "sequences", "confirm", "messages"),
    *("settings", "fields", "target", "details"),
}


class Odd:
    """What no argument may be."""


def calls():
    """Every public method of the classes and each argument of it whose type is checked."""
    for one in CLASSES:
        for name, method in inspect.getmembers(one, inspect.isfunction):
            if name.startswith("_") or name.endswith("_locked") or "propert" in name:
                # Accessors of properties raise the errors of Jakarta Messaging, by name too.
                continue
            for argument in list(inspect.signature(method).parameters.values())[1:]:
                if argument.kind is argument.VAR_KEYWORD or argument.name in JUDGED_BY_THE_CALL:
                    continue
                place = f"{one.__module__}.{one.__name__}.{name}-{argument.name}"
                yield pytest.param(one, method, argument.name, id=place)


@pytest.mark.parametrize(("one", "method", "argument"), list(calls()))
def test_a_value_of_the_wrong_type_is_refused_by_name(one, method, argument):
    """Decision 29: a LedgerMQ error that is a TypeError, raised before anything else is done."""
    with pytest.raises(
        ledgermq.ArgumentTypeError, match=rf"^{argument} is .* it must be"
    ) as caught:
        method(object.__new__(one), **{argument: Odd()})
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, ledgermq.LedgerMQError)


@pytest.mark.parametrize(("one", "method", "argument"), list(calls()))
def test_what_an_argument_is_without_being_given_is_of_its_type(one, method, argument):
    """Help said that a consumer's priority is False unless it is given."""
    shown = inspect.signature(method).parameters[argument]
    if isinstance(shown.default, bool):
        assert "bool" in shown.annotation


@pytest.mark.parametrize("one", CLASSES)
def test_an_option_that_there_is_not_is_refused_by_the_name_of_the_call(one):
    """In an event loop too, where calls are made of the steps of other classes'."""
    for name, method in inspect.getmembers(one, inspect.isfunction):
        kinds = {one.kind for one in inspect.signature(method).parameters.values()}
        if name.startswith("_") or inspect.Parameter.VAR_KEYWORD in kinds or len(kinds) == 1:
            continue
        owner = next(kind for kind in one.__mro__ if name in vars(kind)).__name__
        with pytest.raises(TypeError, match=rf"^{owner}\.{name}\(\) got an unexpected keyword"):
            method(object.__new__(one), nonsense=1)


WRONG = {
    "unsubscribe": lambda session: session.unsubscribe(None),
    "subscription": lambda session: session.consumer("topic:t", subscription=7, shared=True),
    "selector": lambda session: session.consumer("queue:q", selector=7),
    "browser": lambda session: session.browser("queue:q", selector=b"a = 1"),
    "priority": lambda session: session.producer("queue:q").send("x", priority="x"),
    "flag": lambda session: session.producer("queue:q").send("x", priority=True),
    "properties": lambda session: session.producer("queue:q").send("x", properties=[]),
    "destination": lambda session: session.producer(7),
    "durable": lambda session: session.consumer("queue:q", durable="no"),
    "prefetch": lambda session: session.consumer("queue:q", prefetch=1.5),
    "match": lambda session: session.consumer("queue:q", match={"sequence": 1}),
    "producer": lambda session: session.producer("queue:q", persistent=1),
    "time": lambda session: session.producer("queue:q").send("x", time_to_live="1"),
}


@pytest.mark.parametrize("call", WRONG)
def test_wrong_types_end_their_own_call_and_nothing_else(in_memory, call):
    """Decision 29: the session goes on, and nothing was written."""
    in_memory.admin.create_queue("q")
    with in_memory.session() as session:
        with pytest.raises(ledgermq.ArgumentTypeError):
            WRONG[call](session)
        assert session.producer("queue:q").send("fine").sequence == 0


# Python writes no whole number out that has so many digits.
HUGE = 10**5000
HUGE_NUMBERS = {
    "connect": lambda _: ledgermq.connect("kafka://127.0.0.1:1", timeout=HUGE),
    "service": lambda _: aio.Service(stop_timeout_seconds=HUGE),
    "concurrency": lambda _: aio.Service().consumer("queue:q", concurrency=HUGE),
    "receive": lambda session: session.consumer("queue:q").receive(HUGE),
    "receive_many": lambda session: session.consumer("queue:q").receive_many(-HUGE),
    "prefetch": lambda session: session.consumer("queue:q", prefetch=HUGE),
    "consumer_priority": lambda session: session.consumer("queue:q", consumer_priority=HUGE),
    "match": lambda session: session.consumer("queue:q", match=ledgermq.GetMatch(sequence=HUGE)),
    "match below": lambda session: session.browser(
        "queue:q", match=ledgermq.GetMatch(offset=-HUGE)
    ),
    "redelivery_limit": lambda session: session.producer("queue:q", redelivery_limit=HUGE),
    "priority": lambda session: session.producer("queue:q").send("x", priority=HUGE),
    "time_to_live": lambda session: session.producer("queue:q").send("x", time_to_live=HUGE),
    "group": lambda session: session.producer("queue:q").send(
        "x", group=ledgermq.GroupPlace(offset=HUGE)
    ),
    "logical order": lambda session: session.producer("queue:q").send(
        "x", group=ledgermq.GroupPlace(offset=HUGE), logical_order=True
    ),
    "after": lambda session: session.producer("queue:q").group(b"g" * 24, after=HUGE),
    "max_segment": lambda session: session.producer("queue:q").send_segmented(
        "x", max_segment=-HUGE
    ),
    "units": lambda session: ledgermq.get_group(
        session, "queue:q", print, status="queue:s", messages_per_unit_of_work=-HUGE
    ),
    "body": lambda session: session.producer("queue:q").send({"a": HUGE}),
    "property": lambda session: session.producer("queue:q").send("x", properties={"a": HUGE}),
    "bytes": lambda _: ledgermq.BytesMessage().write_int(HUGE),
    "read": lambda _: ledgermq.BytesMessage(b"x").read_bytes(-HUGE),
}


@pytest.mark.parametrize("call", HUGE_NUMBERS)
def test_a_number_that_cannot_be_written_out_is_refused_all_the_same(in_memory, call):
    """The text of the error does without it."""
    in_memory.admin.create_queue("q")
    session = in_memory.session(transacted=call == "units")
    with pytest.raises(ledgermq.LedgerMQError):
        HUGE_NUMBERS[call](session)


def test_what_is_text_and_no_destination_is_an_invalid_destination(in_memory):
    """Decision 29: a reply_to, and a subscription of a queue, of each kind (SES-34, SES-35)."""
    with in_memory.session() as session:
        with pytest.raises(ledgermq.InvalidDestinationError, match="nowhere"):
            session.producer("queue:q").send("x", reply_to="nowhere")
        with pytest.raises(ledgermq.InvalidDestinationError, match="nowhere"):
            session.producer("queue:q").send(ledgermq.TextMessage("x", reply_to="nowhere"))
        for kind in ({"shared": True}, {"durable": True}, {"shared": True, "durable": True}):
            with pytest.raises(ledgermq.InvalidDestinationError, match="no subscriptions"):
                session.consumer("queue:q", subscription="s", **kind)


@pytest.mark.parametrize("name", setting_keywords())
def test_settings_of_the_wrong_type_are_refused_by_name(in_memory, name):
    """Decision 29: each setting of a queue and of a topic."""
    for create in (in_memory.admin.create_queue, in_memory.admin.create_topic):
        with pytest.raises(
            (ledgermq.ArgumentTypeError, ledgermq.InvalidDestinationError)
        ) as caught:
            create("q", **{name: Odd()})
        assert name in str(caught.value) or "destination" in name
    with pytest.raises(ledgermq.ArgumentTypeError, match="no setting"):
        in_memory.admin.create_queue("q", nonsense=1)


@pytest.mark.parametrize("name", list(inspect.signature(ledgermq.connect).parameters))
def test_connect_names_what_is_of_the_wrong_type(name):
    """Decision 29: before anything is connected."""
    with pytest.raises(ledgermq.ArgumentTypeError, match=rf"^{name} is"):
        ledgermq.connect(**{name: Odd()})


@pytest.mark.parametrize("connect", [ledgermq.connect, aio.connect], ids=["blocking", "asyncio"])
def test_connect_shows_its_settings_and_names_the_one_that_was_meant(connect):
    """In `help()`, and where one is mistyped; before anything is connected, and awaited."""
    assert "send_timeout_seconds" in inspect.signature(connect).parameters
    with pytest.raises(TypeError, match=r"argument 'timeot'; did you mean timeout\?$"):
        connect(timeot=5)
    with pytest.raises(TypeError, match=r"argument 'amqp'$"):
        connect(amqp=5)


def test_what_is_not_awaited_says_that_it_must_be(in_memory):
    """A name is looked for in what is only being opened."""

    async def work():
        opening = aio.Connection(in_memory).session()
        with pytest.raises(AttributeError, match="has no producer yet: `await` it, or enter it"):
            opening.producer("queue:q")
        await (await opening).close()

    asyncio.run(work())


def test_a_module_that_is_not_imported_is_told_how_it_is(monkeypatch):
    """`import ledgermq` alone brings neither."""
    monkeypatch.delattr(ledgermq, "testing")
    with pytest.raises(AttributeError, match="before it is imported: `from ledgermq import testi"):
        _ = ledgermq.testing
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$"):
        _ = ledgermq.nonsense


def test_a_coroutine_refuses_wrong_types_too(in_memory):
    """Decision 29: where it is awaited, with the session as it was."""

    async def work():
        async with aio.Connection(in_memory).session() as session:
            producer = session.producer("queue:q")
            with pytest.raises(ledgermq.ArgumentTypeError, match=r"^subscription is None"):
                await session.unsubscribe(None)
            with pytest.raises(ledgermq.ArgumentTypeError, match=r"^selector is 7"):
                async with session.consumer("queue:q", selector=7):
                    pass
            with pytest.raises(ledgermq.InvalidDestinationError):
                await producer.send("x", reply_to="nowhere")
            return (await producer.send("x")).sequence

    assert asyncio.run(work()) == 0


def test_an_error_shows_no_more_than_a_line_of_what_was_given():
    """Three million characters in a log file help nobody."""
    long = "\x01" * 3_000_000
    with MemoryBroker().connect() as connection, connection.session() as session:
        for call in (
            lambda: session.producer(f"queue:{long}"),
            lambda: session.consumer("topic:t", subscription=long, durable=True, shared=True),
            lambda: session.consumer("queue:q", prefetch=long),
            lambda: connection.session(ack=long),
            lambda: ledgermq.connect(f"kafka://127.0.0.1:1/{long}"),
            lambda: ledgermq.connect("kafka://127.0.0.1:1/QM1", client_id=long),
        ):
            with pytest.raises(ledgermq.LedgerMQError) as caught:
                call()
            assert len(str(caught.value)) < 1_000


def nested(levels):
    """A dict of dicts, which Python cannot show."""
    found = {}
    for _ in range(levels):
        found = {"a": found}
    return found


def test_what_cannot_be_shown_is_refused_all_the_same(in_memory):
    """Its representation raises; the error names its type in place of that."""
    with in_memory.session() as session, pytest.raises(ledgermq.ArgumentTypeError, match="<dict>"):
        session.producer("queue:q").group(nested(100_000))


SURROGATE = "queue:\ud800"
# Python makes no text of a whole number this long.
BEYOND_SHOWING = 10**5_000


@pytest.mark.parametrize(
    "call",
    [
        lambda c, s: s.producer("queue:q").send("x", destination=SURROGATE),
        lambda c, s: s.delete_temporary(SURROGATE),
        lambda c, s: s.unsubscribe(SURROGATE),
        lambda c, s: s.consumer("queue:q", selector=SURROGATE),
        lambda c, s: s.browser("queue:q", selector=SURROGATE),
        lambda c, s: c.browser("queue:q", selector=SURROGATE),
        lambda c, s: c.admin.queue_status(SURROGATE),
        lambda c, s: s.producer("queue:q" * 1_000).send("x"),
        lambda c, s: s.producer("queue:q").send("x", destination="queue:r" * 1_000),
        lambda c, s: s.delete_temporary("x" * 100_000),
        lambda c, s: s.unsubscribe("x" * 100_000),
        lambda c, s: s.producer("queue:q").send("x", properties={"x y" * 10_000: 1}),
        lambda c, s: ledgermq.TextMessage("x").set_int_property("x y" * 10_000, 1),
        lambda c, s: ledgermq.TextMessage("x").get_int_property("x y" * 10_000),
        lambda c, s: s.producer("queue:q").send({"x" * 10_000: 1}),
        lambda c, s: s.producer("queue:q").send({"x": BEYOND_SHOWING}),
        lambda c, s: s.producer("queue:q").send("x", properties={"x": BEYOND_SHOWING}),
        lambda c, s: ledgermq.TextMessage("x").set_property("x", BEYOND_SHOWING),
        lambda c, s: ledgermq.MapMessage({"x" * 10_000: 1}),
        lambda c, s: ledgermq.MapMessage().get_int("x" * 10_000),
        lambda c, s: ledgermq.StreamBody([BEYOND_SHOWING]),
        lambda c, s: c.admin.alter_queue("q", redelivery="x" * 10_000),
    ],
)
def test_texts_that_cannot_be_written_or_are_too_long_are_refused_in_a_line(in_memory, call):
    """The error itself can be printed, whatever was given, and the session goes on."""
    in_memory.admin.create_queue("q")
    with in_memory.session() as session:
        with pytest.raises(ledgermq.LedgerMQError) as caught:
            call(in_memory, session)
        assert len(str(caught.value).encode()) < 1_000
        assert session.producer("queue:q").send("fine").sequence == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda: ledgermq.MapMessage([1]),
        lambda: ledgermq.MapMessage(None),
        lambda: ledgermq.StreamMessage(5),
        lambda: ledgermq.StreamMessage("abc"),
        lambda: ledgermq.StreamBody(None),
        lambda: ledgermq.StreamBody(b"abc"),
    ],
)
def test_a_message_is_not_made_of_what_can_be_no_body_of_its_kind(call):
    """By name, as a text of something else than str is."""
    with pytest.raises(ledgermq.UnsupportedValueError, match=r"the body of a .* message is "):
        call()


@pytest.mark.parametrize("size", ["1", 1.5, True])
def test_a_size_to_read_that_is_no_whole_number_is_refused_by_name(size):
    """With the place in the message as it was."""
    message = ledgermq.BytesMessage(b"abc")
    message.reset()
    with pytest.raises(ledgermq.ArgumentTypeError, match=r"^size is"):
        message.read_bytes(size)
    assert message.read_bytes() == b"abc"


@pytest.mark.parametrize(
    "wrong", [{"redelivery": 5}, {"redelivery_delay_multiplier": True}, {"redelivery": b"1:1"}]
)
def test_a_setting_of_redelivery_of_the_wrong_type_is_refused_by_name(in_memory, wrong):
    """True is no number."""
    in_memory.admin.create_queue("q")
    with pytest.raises(ledgermq.ArgumentTypeError, match=f"^{next(iter(wrong))}"):
        in_memory.admin.alter_queue("q", **wrong)


def test_an_action_that_corrects_nothing_is_refused_by_name(in_memory):
    """With those that there are."""
    in_memory.admin.create_queue("q")
    with pytest.raises(ledgermq.IllegalStateError, match=r"action is 'DROP', .*REMOVE or RELEASE"):
        in_memory.admin.correct("q", sequence=0, action="DROP", actor="a", reason="r")


@pytest.mark.parametrize(
    "name", ["client_id", "takeover", "application", "topic_prefix", "schema_registry", "kafka"]
)
@pytest.mark.parametrize("text", ["\ud800", "a\0b"])
def test_connect_refuses_what_is_no_text_for_kafka(name, text):
    """Kafka's library ended the process, or raised what is no error of ours."""
    options = {name: {text: "x"} if name == "kafka" else text}
    if name == "takeover":
        options["client_id"] = "billing"
    with pytest.raises((ledgermq.AddressError, ledgermq.InvalidClientIDError)):
        ledgermq.connect("kafka://127.0.0.1:1/QM1", timeout=0.1, **options)
    with pytest.raises(ledgermq.AddressError):
        ledgermq.connect("kafka://127.0.0.1:1/QM1", timeout=0.1, kafka={"client.id": text})
    for host in (text, f"{text}:9092", "x" * 64, "a..b"):
        with pytest.raises(ledgermq.AddressError, match=r"HOST:PORT"):
            ledgermq.connect(f"kafka://{host}", timeout=0.1)


@pytest.mark.parametrize("letter", ["é", "語", "😀"])
def test_the_name_of_an_application_is_cut_between_its_letters(letter):
    """Kafka's library cut it within one, and what it then said of the broker was no text."""
    for before in ("", "x", "xx", "xxx"):
        with pytest.raises(ledgermq.BrokerUnavailableError, match="no Kafka broker answers"):
            ledgermq.connect(
                "kafka://127.0.0.1:1/QM1", timeout=0.1, application=before + 250 * letter
            )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("message_id", 5), ("message_id", bytearray(16)), ("correlation_id", b"x")),
        *(("group_id", "x" * 24), ("group_sequence", 1.0), ("group_sequence", True)),
        *(("offset", "0"), ("sequence", 0.5)),
    ],
)
@pytest.mark.parametrize("what", ["consumer", "browser"])
def test_a_value_to_match_of_the_wrong_type_is_refused_by_name(what, name, value):
    """Where the consumer or browser is made, not with its first message."""
    with MemoryBroker().connect() as connection, connection.session() as session:
        session.producer("queue:q").send("x")
        with pytest.raises(ledgermq.ArgumentTypeError, match=rf"match\.{name} is "):
            getattr(session, what)("queue:q", match=ledgermq.GetMatch(**{name: value}))


def test_a_number_to_match_that_no_record_can_hold_is_refused():
    """By name too."""
    with (
        MemoryBroker().connect() as connection,
        connection.session() as session,
        pytest.raises(ledgermq.GetOptionsError, match="sequence 9223372036854775808 is"),
    ):
        session.consumer("queue:q", match=ledgermq.GetMatch(sequence=2**63))


@pytest.mark.parametrize("name", ["in_group", "last_in_group", "segment", "last_segment"])
def test_a_flag_of_a_place_in_a_group_is_true_or_false(name):
    """A text such as "no" would count as true."""
    with MemoryBroker().connect() as connection, connection.session() as session:
        producer = session.producer("queue:q")
        with pytest.raises(ledgermq.ArgumentTypeError, match=rf"group\.{name} is 'no'"):
            producer.send("x", group=ledgermq.GroupPlace(**{name: "no"}))
