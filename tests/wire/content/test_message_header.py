"""The header of a message: what comes back, and the errors that name what cannot be carried."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgermq.protocol.header_size import header_bytes
from ledgermq.protocol.operations import NO_HEADER, Put
from ledgermq.protocol.outcomes import EMPTY_HEADER
from ledgermq.wire.content.content import ContentError
from ledgermq.wire.content.message_header import header_of, make_header
from ledgermq.wire.framing.codec import decode_operation, encode_operation, encode_record

texts = st.text(st.characters(exclude_categories=("Cs",)))
keys = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=255)
values = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | texts
properties = st.dictionaries(keys, values, max_size=5)
optional = st.none() | texts


def put_of(*headers):
    """A Put with a message for each header."""
    messages = [
        {"message_id": bytes(16), "priority": 4, "persistent": True, "content": b"c"}
        | ({} if header is None else {"header": header})
        for header in headers
    ]
    return Put(
        session=0,
        session_sequence=1,
        answered_through=0,
        destination="queue:q",
        messages=messages,
    )


@given(properties, optional, optional, st.integers(0, 2**40))
def test_header_crosses_the_log_with_values_and_their_types(
    given_properties, correlation, kind, life_ms
):
    """Names, values and the types of values are the same to every reader, beside those without."""
    header = make_header(given_properties, correlation, kind, time_to_live_ms=life_ms)
    put = put_of(None, header, None)
    read = decode_operation(encode_operation(put))
    assert read == put
    if header is not None:
        told = read.messages[1]["header"]["properties"].items()
        assert [(name, type(value)) for name, value in told] == [
            (name, type(value)) for name, value in given_properties.items()
        ]


def test_nothing_given_takes_no_room():
    """A message without properties, correlation id, type and times has no header at all."""
    assert make_header(None, None, None) is None
    assert make_header({}, None, None) is None
    assert header_of(put_of(None).messages[0]) is EMPTY_HEADER
    assert header_bytes(None) == 0
    plain = len(encode_operation(put_of(None)))
    assert len(encode_operation(put_of(make_header(None, "", None)))) > plain


def test_headers_that_do_not_go_with_the_messages_are_unreadable():
    """One for each message, or none: anything else is refused as a whole."""
    torn = encode_record(
        "ledgermq.operation.Put",
        {
            "session": 0,
            "session_sequence": 1,
            "answered_through": 0,
            "destination": "queue:q",
            "messages": put_of(None, None).messages,
            "headers": [NO_HEADER],
            "source": None,
            "deduplication_id": None,
        },
    )
    found = decode_operation(torn)
    assert found.reason == "record-unreadable"
    assert "1 headers for 2 messages" in found.detail


def test_size_counts_texts_in_utf_8_and_eight_bytes_for_the_rest():
    """Every fold and every reader comes to the same size (PROTOCOL.md section 3)."""
    assert header_bytes(make_header({"é": "ü", "n": 1, "d": 1.5, "b": True}, "cc", "t")) == (
        2 + 2 + 3 * (1 + 8) + 2 + 1
    )


@pytest.mark.parametrize("value", [None, b"x", object(), 1j])
def test_property_of_another_type_is_refused_by_name(value):
    """Properties are bool, int, float or str; bytes and None are for map bodies only."""
    with pytest.raises(
        ContentError, match=r"property 'p' is \w+: it must be bool, int, float, str"
    ):
        make_header({"p": value}, None, None)


@pytest.mark.parametrize("value", [[1], (1,), {"a": 1}])
def test_nested_property_is_refused_by_name(value):
    """Nested values in a property: ContentError names it and says why."""
    with pytest.raises(ContentError, match=r"property 'inner' is .*nested values are not carried"):
        make_header({"inner": value}, None, None)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_property_beyond_64_bits_is_refused_by_name(value):
    """Numbers that would be cut are refused."""
    with pytest.raises(ContentError, match=f"property 'p' is {value}: whole numbers have 64 bits"):
        make_header({"p": value}, None, None)


@pytest.mark.parametrize("name", ["", "n" * 256, 5, None])
def test_property_names_have_1_to_255_characters(name):
    """Names outside the limits are refused."""
    with pytest.raises(ContentError, match="1 to 255 characters"):
        make_header({name: 1}, None, None)


@pytest.mark.parametrize(
    "arguments",
    [({"p": "\ud800"}, None, None), ({"\ud800": 1}, None, None), (None, "\ud800", None)],
)
def test_text_that_is_no_unicode_is_refused(arguments):
    """A lone surrogate cannot be written."""
    with pytest.raises(ContentError, match="no text that can be written"):
        make_header(*arguments)


@pytest.mark.parametrize(
    ("arguments", "name"), [((None, 5, None), "correlation_id"), ((None, None, b"t"), "type")]
)
def test_header_field_of_a_wrong_type_is_named(arguments, name):
    """Correlation id and type are text."""
    with pytest.raises(ContentError, match=f"{name} is .*: it must be str or None"):
        make_header(*arguments)


def test_group_alone_makes_a_header():
    """What is in a group says so in its header, though nothing else is given (GRP-39)."""
    group = {
        "group_id": bytes(range(24)),
        "group_sequence": 2,
        "offset": 3,
        "length": 4,
        "in_group": True,
        "last_in_group": False,
        "segment": True,
        "last_segment": False,
        "logical_order": True,
    }
    header = make_header(None, None, None, group=group)
    assert header["group"] == group
    found = decode_operation(encode_operation(put_of(header)))
    assert found.messages[0]["header"]["group"] == group
    assert make_header({"p": 1}, None, None)["group"] is None
