"""Message objects and typed properties by themselves: they need no session and no connection."""

from __future__ import annotations

import enum
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledgermq
from ledgermq.client.messages.property_access import RESERVED, check_property_names
from ledgermq.selector.grammar import KEYWORDS
from ledgermq.wire.content.content import encode_content

PLAIN = {
    ledgermq.TextMessage: "",
    ledgermq.BytesMessage: b"",
    ledgermq.MapMessage: {},
    ledgermq.StreamMessage: ledgermq.StreamBody(),
    ledgermq.ObjectMessage: ledgermq.ObjectBody(None),
    ledgermq.PlainMessage: None,
}


@pytest.mark.parametrize("kind", PLAIN)
def test_ses_33_a_message_without_content_is_empty(kind):
    """Every factory has a form without content, whose body can be sent."""
    message = kind()
    assert message.unloaded_body == PLAIN[kind]
    assert (message.correlation_id, message.reply_to, message.type) == (None, None, None)
    assert message.properties == {}
    encode_content(message.unloaded_body)


@pytest.mark.parametrize("kind", PLAIN)
def test_ses_33_a_message_takes_properties_and_header_fields(kind):
    """They can be changed after that."""
    message = kind(properties={"a": 1}, correlation_id="c", reply_to="queue:r", type="t")
    assert (message.correlation_id, message.reply_to, message.type) == ("c", "queue:r", "t")
    message.set_property("b", 2.5)
    message.type = None
    assert message.properties == {"a": 1, "b": 2.5}
    assert repr(message).startswith(kind.__name__)
    message.clear_properties()
    message.clear_body()
    assert message.properties == {}
    assert message.unloaded_body == PLAIN[kind]


@pytest.mark.parametrize(
    "make",
    [
        lambda: ledgermq.TextMessage(5),
        lambda: ledgermq.TextMessage(None),
        lambda: ledgermq.BytesMessage("text"),
        lambda: ledgermq.BytesMessage(5),
        lambda: ledgermq.MapMessage({"a": [1]}),
        lambda: ledgermq.MapMessage({"": 1}),
        lambda: ledgermq.MapMessage({5: 1}),
        lambda: ledgermq.MapMessage({"n" * 256: 1}),
        lambda: ledgermq.StreamMessage([object()]),
        lambda: ledgermq.ObjectMessage(object()),
        lambda: ledgermq.ObjectMessage(1, encoding="yaml"),
        lambda: ledgermq.PlainMessage(properties={"a b": 1}),
        lambda: ledgermq.PlainMessage(properties={"a": [1]}),
    ],
)
def test_ses_33_content_that_a_message_cannot_have_is_a_format_error(make):
    """The factories fail at once, not when the message is sent."""
    with pytest.raises(ledgermq.MessageFormatError):
        make()


# -- bytes messages --------------------------------------------------------------------------------

PRIMITIVES = [
    ("boolean", True, b"\x01"),
    ("byte", -1, b"\xff"),
    ("short", -2, b"\xff\xfe"),
    ("unsigned_short", 65535, b"\xff\xff"),
    ("char", "é", b"\x00\xe9"),
    ("int", -3, struct.pack(">i", -3)),
    ("long", 2**62, struct.pack(">q", 2**62)),
    ("float", 0.5, struct.pack(">f", 0.5)),
    ("double", 0.1, struct.pack(">d", 0.1)),
    ("utf", "Grüße", b"\x00\x07Gr\xc3\xbc\xc3\x9fe"),
]


@pytest.mark.parametrize(("kind", "value", "encoded"), PRIMITIVES)
def test_a_bytes_message_writes_and_reads_as_java_does(kind, value, encoded):
    """Big-endian, as DataOutput writes it; what is cut is an end, and moves nothing."""
    message = ledgermq.BytesMessage()
    getattr(message, f"write_{kind}")(value)
    assert message.unloaded_body == encoded
    message.reset()
    assert message.body_length == len(encoded)
    assert getattr(message, f"read_{kind}")() == value
    for end in range(len(encoded)):
        short = ledgermq.BytesMessage(encoded[:end])
        short.reset()
        with pytest.raises(ledgermq.MessageEOFError, match=f"the message has {end} bytes"):
            getattr(short, f"read_{kind}")()
        assert short.read_bytes() == encoded[:end]


class Level(enum.IntEnum):
    """Numbers of an application."""

    HIGH = 7


def test_numbers_of_a_class_of_their_own_are_written_as_what_they_are():
    """Into bytes, entries, streams and properties."""
    message = ledgermq.BytesMessage()
    message.write_int(Level.HIGH)
    message.write_object(Level.HIGH)
    assert message.unloaded_body == struct.pack(">iq", 7, 7)
    entries = ledgermq.MapMessage({"level": Level.HIGH}, properties={"level": Level.HIGH})
    entries.set_short("short", Level.HIGH)
    entries.set_int_property("int", Level.HIGH)
    stream = ledgermq.StreamMessage()
    stream.write_double(Level.HIGH)
    assert (dict(entries.entries), stream.unloaded_body[0]) == ({"level": 7, "short": 7}, 7.0)
    held = [*entries.entries.values(), entries.properties["int"], stream.unloaded_body[0]]
    assert [type(one) for one in held] == [int, int, int, float]


@given(
    st.lists(
        st.booleans()
        | st.integers(-(2**63), 2**63 - 1)
        | st.floats(allow_nan=False)
        | st.text(st.characters(exclude_categories=("Cs",)))
    )
)
def test_a_bytes_message_reads_what_it_wrote(values):
    """In the same order, and twice after a second reset."""
    reads = {bool: "boolean", int: "long", float: "double", str: "utf"}
    message = ledgermq.BytesMessage()
    for value in values:
        message.write_object(value)
    for _ in range(2):
        message.reset()
        assert [getattr(message, f"read_{reads[type(one)]}")() for one in values] == values
        with pytest.raises(ledgermq.MessageEOFError):
            message.read_byte()


def test_bytes_are_read_in_parts():
    """Up to as many as asked for, none at the end, and all that are left without a number."""
    message = ledgermq.BytesMessage()
    message.write_object(b"abc")
    message.write_bytes(bytearray(b"de"))
    message.reset()
    assert (message.read_bytes(2), message.read_unsigned_byte()) == (b"ab", ord("c"))
    assert (message.read_bytes(9), message.read_bytes(1), message.read_bytes()) == (b"de", b"", b"")
    with pytest.raises(ledgermq.MessageFormatError, match="0 or more"):
        message.read_bytes(-1)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *[("byte", 128), ("short", 2**15), ("unsigned_short", -1), ("int", 2**31)],
        *[("long", 2**63), ("float", 1e300), ("double", 10**400), ("byte", True), ("int", 1.0)],
        *[("int", "1"), ("double", "1"), ("boolean", 1), ("char", "ab"), ("utf", b"x")],
        *[("utf", "x" * 65536), ("utf", "\ud800"), ("bytes", "x"), ("object", [1])],
    ],
)
def test_a_bytes_message_refuses_what_does_not_fit(kind, value):
    """MessageFormatError, and nothing was written."""
    message = ledgermq.BytesMessage(b"before")
    with pytest.raises(ledgermq.MessageFormatError):
        getattr(message, f"write_{kind}")(value)
    assert message.unloaded_body == b"before"


def test_text_that_is_no_utf_8_moves_nothing():
    """The bytes can be read otherwise."""
    message = ledgermq.BytesMessage(b"\x00\x01\xff")
    message.reset()
    with pytest.raises(ledgermq.MessageFormatError, match="no UTF-8"):
        message.read_utf()
    assert message.read_bytes() == b"\x00\x01\xff"


READS = ["boolean", "byte", "short", "char", "int", "long", "float", "double", "bytes"]


@pytest.mark.parametrize(
    ("kind", "reads"),
    [
        (ledgermq.BytesMessage, [*READS, "unsigned_byte", "unsigned_short", "utf"]),
        (ledgermq.StreamMessage, [*READS, "string", "object"]),
    ],
)
def test_a_stream_is_written_or_read_but_not_both(kind, reads):
    """Before reset MessageNotReadableError, after it MessageNotWriteableError, until cleared."""
    message = kind()
    for read in reads:
        with pytest.raises(ledgermq.MessageNotReadableError, match="call reset"):
            getattr(message, f"read_{read}")()
    if kind is ledgermq.BytesMessage:
        with pytest.raises(ledgermq.MessageNotReadableError):
            _ = message.body_length
    message.write_int(1)
    message.reset()
    for write in set(reads) - {"unsigned_byte"}:
        with pytest.raises(ledgermq.MessageNotWriteableError, match="call clear_body"):
            getattr(message, f"write_{write}")(1)
    assert message.read_int() == 1
    message.clear_body()
    message.write_int(2)
    message.reset()
    assert message.read_int() == 2


# -- stream and map messages -----------------------------------------------------------------------

TYPED = [
    *[("boolean", True), ("byte", 1), ("short", 300), ("char", "c"), ("int", 70000)],
    *[("long", 2**40), ("float", 0.5), ("double", 0.1), ("string", "text"), ("bytes", b"raw")],
    ("object", None),
]


def test_a_stream_message_reads_what_it_wrote():
    """Each value as the type that it was written as; a failed read moves nothing."""
    message = ledgermq.StreamMessage([0])
    for kind, value in TYPED:
        getattr(message, f"write_{kind}")(value)
    message.reset()
    assert message.read_object() == 0
    for kind, value in TYPED:
        if kind in ("short", "int", "long", "string"):
            with pytest.raises(ledgermq.MessageFormatError):
                message.read_byte()
        assert getattr(message, f"read_{kind}")() == value
    with pytest.raises(ledgermq.MessageEOFError):
        message.read_object()
    assert list(message.unloaded_body) == [0, *(value for _, value in TYPED)]


def test_a_map_message_reads_what_it_holds():
    """Each entry as the type that it was written as, and as null where there is none."""
    message = ledgermq.MapMessage({"first": 1})
    for kind, value in TYPED:
        getattr(message, f"set_{kind}")(kind, value)
    for kind, value in TYPED:
        assert getattr(message, f"get_{kind}")(kind) == value
        assert message.item_exists(kind)
    assert message.map_names() == ["first", *(kind for kind, _ in TYPED)]
    assert message.unloaded_body == message.entries == {"first": 1, **dict(TYPED)}
    assert not message.item_exists("none")
    assert (message.get_string("none"), message.get_boolean("none")) == (None, False)
    for kind in ("byte", "short", "char", "int", "long", "float", "double"):
        with pytest.raises(ledgermq.MessageFormatError, match=r"map entry 'none' .* it is null"):
            getattr(message, f"get_{kind}")("none")


@pytest.mark.parametrize("write", ["set_int", "write_int"])
def test_a_refused_write_leaves_the_message_as_it_was(write):
    """Nothing is written of a value of another type."""
    message = ledgermq.MapMessage() if write == "set_int" else ledgermq.StreamMessage()
    with pytest.raises(ledgermq.MessageFormatError, match="cannot be written as int: it is str"):
        getattr(message, write)(*(["a"] if write == "set_int" else []), "1")
    assert len(message.unloaded_body) == 0


def test_entries_of_a_map_message_are_changed_by_its_methods_only():
    """What `entries` gives is read-only."""
    message = ledgermq.MapMessage({"a": 1})
    with pytest.raises(ledgermq.MessageNotWriteableError):
        message.entries["a"] = 2
    message.unloaded_body["a"] = 3
    assert message.get_int("a") == 1


def test_an_object_message_holds_a_snapshot():
    """A change of the object comes in when it is set again."""
    value = [1]
    message = ledgermq.ObjectMessage(value)
    value.append(2)
    assert message.value == [1]
    message.value = value
    assert message.value == [1, 2]


def test_an_object_message_reads_the_pickle_that_it_made():
    """Whoever made it need not be asked."""
    message = ledgermq.ObjectMessage({1, 2}, encoding="pickle")
    assert message.value == {1, 2}
    assert message.unloaded_body.encoding == "pickle"


# -- properties ------------------------------------------------------------------------------------

PROPERTIES = [
    *[("boolean", True), ("byte", 1), ("short", 300), ("int", 70000), ("long", 2**40)],
    *[("float", 0.5), ("double", 0.1), ("string", "text")],
]


def test_properties_are_read_as_they_were_written():
    """Each type, by name; a property that is not there is a null."""
    message = ledgermq.PlainMessage()
    for kind, value in PROPERTIES:
        getattr(message, f"set_{kind}_property")(kind, value)
    for kind, value in PROPERTIES:
        assert getattr(message, f"get_{kind}_property")(kind) == value
        assert message.get_property(kind) == value
        assert message.property_exists(kind)
    assert message.property_names() == [kind for kind, _ in PROPERTIES]
    assert not message.property_exists("none")
    assert message.get_property("none") is message.get_string_property("none") is None
    assert message.get_boolean_property("none") is False
    for kind in ("byte", "short", "int", "long", "float", "double"):
        with pytest.raises(ledgermq.MessageFormatError, match=r"property 'none' .* it is null"):
            getattr(message, f"get_{kind}_property")("none")
    with pytest.raises(ledgermq.MessageFormatError, match="property 'long' cannot be read as int"):
        message.get_int_property("long")


@pytest.mark.parametrize("value", [None, b"x", bytearray(b"x"), [1], {}, 2**63, 1j])
def test_a_property_of_another_type_is_not_set(value):
    """There are bool, int of 64 bits, float and str."""
    message = ledgermq.PlainMessage()
    with pytest.raises(ledgermq.MessageFormatError, match="property 'a' cannot be"):
        message.set_property("a", value)
    for kind in ("boolean", "byte", "long", "string"):
        with pytest.raises(ledgermq.MessageFormatError, match="property 'a' cannot be"):
            getattr(message, f"set_{kind}_property")("a", value)
    assert message.properties == {}


@pytest.mark.parametrize(
    "name", ["a", "_", "$", "a1", "A_$9", "JMSXGroupID", "JMSXGroupSeq", "jms", "null_", "n" * 255]
)
def test_names_that_a_property_can_have(name):
    """Identifiers of selectors."""
    check_property_names({name: 1})


@pytest.mark.parametrize(
    ("name", "said"),
    [
        *[(name, "is an identifier") for name in ("", "1a", "a b", "a-b", "a.b", "é", "a\n")],
        *[(name, "selectors reserve the word") for name in sorted(RESERVED)],
        *[("null", "selectors reserve the word"), ("Escape", "selectors reserve the word")],
        *[(name, "begin with JMS are reserved") for name in ("JMSType", "JMSXUserID", "JMS_x")],
        *[(5, "is a str"), (None, "is a str")],
    ],
)
def test_names_that_a_property_cannot_have_are_refused(name, said):
    """Each with the reason, when it is set and when it is sent."""
    with pytest.raises(ledgermq.PropertyNameError, match=said):
        check_property_names({"fine": 1, name: 1})
    with pytest.raises(ledgermq.PropertyNameError, match=said):
        ledgermq.PlainMessage().set_property(name, 1)
    with pytest.raises(ledgermq.PropertyNameError, match=said):
        ledgermq.TextMessage("x", properties={name: 1})


def test_names_over_255_characters_are_refused():
    """Of properties and of map entries; the error shows the beginning only."""
    name = "n" * 256
    with pytest.raises(ledgermq.NameTooLongError, match=r"property 'n{32}'…: the name has 256"):
        ledgermq.PlainMessage().set_property(name, 1)
    with pytest.raises(ledgermq.NameTooLongError, match="1 to 255 characters"):
        ledgermq.MapMessage().set_int(name, 1)


def test_reserved_words_are_those_of_the_selector_language():
    """What a property can be called, a selector can name."""
    assert frozenset(KEYWORDS) == RESERVED
