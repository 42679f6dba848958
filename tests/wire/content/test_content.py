"""The content of a message: what comes back, and the errors that name what cannot be carried."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgermq.protocol.operations import Tick
from ledgermq.wire.content.content import Content, ContentError, decode_content, encode_content
from ledgermq.wire.framing.codec import UndecodableError, encode_operation

longs = st.integers(-(2**63), 2**63 - 1)
floats = st.floats(allow_nan=False)
texts = st.text(st.characters(exclude_categories=("Cs",)))
keys = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=255)
maps = st.dictionaries(
    keys, st.none() | st.booleans() | longs | floats | texts | st.binary(), max_size=5
)
optional = st.none() | texts
contents = st.builds(
    Content,
    body=st.none() | texts | st.binary() | maps,
    reply_to=optional,
    client_time=longs,
)


def exact(content: Content) -> object:
    """A content with the type of each value, because True == 1 == 1.0."""
    body = content.body
    entries = body if isinstance(body, dict) else {"": body}
    return content, [(name, type(one)) for name, one in entries.items()]


@given(contents)
def test_content_comes_back_as_it_was_sent(content):
    """Body and fields keep their values and their types."""
    assert exact(
        decode_content(encode_content(content.body, content.reply_to, content.client_time))
    ) == exact(content)


def test_not_a_number_is_carried():
    """NaN and the infinities are floats like others."""
    body = {"nan": math.nan, "inf": math.inf}
    read = decode_content(encode_content(body)).body
    assert isinstance(read, dict)
    assert math.isnan(read["nan"])
    assert read["inf"] == math.inf


@pytest.mark.parametrize("body", [bytearray(b"ab"), memoryview(b"ab")])
def test_bytes_of_other_kinds_become_bytes(body):
    """Whatever holds bytes is sent as bytes."""
    assert decode_content(encode_content(body)).body == b"ab"


def test_subclasses_of_text_become_text():
    """A text of a subclass is sent as text."""

    class Name(str):
        __slots__ = ()

    assert decode_content(encode_content(Name("n"))).body == "n"


@pytest.mark.parametrize("body", [1, 1.5, True, [1], (1,), {1, 2}, object()])
def test_unsupported_body_is_named(body):
    """A body of another type: ContentError with its type and what to do."""
    with pytest.raises(ContentError, match=f"not {type(body).__name__}; encode it yourself"):
        encode_content(body)


@pytest.mark.parametrize("value", [[1], (1,), {"a": 1}])
def test_nested_values_are_refused_by_name(value):
    """Nested values in a map: ContentError names the entry and says why."""
    with pytest.raises(ContentError, match=r"map entry 'inner' is .*nested values are not carried"):
        encode_content({"inner": value})


def test_a_type_that_only_has_the_name_of_one_of_python_is_named_with_its_module():
    """As numpy.bool: "is bool: it must be bool" would help nobody."""
    kind = type("bool", (), {"__module__": "numpy"})
    with pytest.raises(ContentError, match=r"map entry 'e' is numpy\.bool: it must be bool"):
        encode_content({"e": kind()})


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_whole_numbers_beyond_64_bits_are_refused_by_name(value):
    """Numbers that would be cut are refused."""
    with pytest.raises(ContentError, match=f"map entry 'e' is {value}: whole numbers have 64 bits"):
        encode_content({"e": value})


@pytest.mark.parametrize("name", ["", "n" * 256, 5, None])
def test_names_have_1_to_255_characters(name):
    """Map names outside the limits are refused."""
    with pytest.raises(ContentError, match="1 to 255 characters"):
        encode_content({name: 1})


def test_names_of_255_characters_are_carried():
    """The longest name is within the limit."""
    content = Content(body={"n" * 255: 1})
    assert (
        decode_content(encode_content(content.body, content.reply_to, content.client_time))
        == content
    )


@pytest.mark.parametrize("header", ["reply_to", "client_time"])
def test_header_of_a_wrong_type_is_a_content_error(header):
    """No other error than ContentError leaves the encoder."""
    with pytest.raises(ContentError, match="header"):
        encode_content(**{"body": None, header: object()})


def test_text_that_is_no_unicode_is_a_content_error():
    """A lone surrogate cannot be written."""
    with pytest.raises(ContentError):
        encode_content("\ud800")


def test_other_records_are_no_content():
    """Bytes of another record raise UndecodableError with both names."""
    with pytest.raises(
        UndecodableError, match=r"message\.Content, found ledgermq\.operation\.Tick"
    ):
        decode_content(encode_operation(Tick(worker="w")))
    with pytest.raises(UndecodableError):
        decode_content(b"")
