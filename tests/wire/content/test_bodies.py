"""Bodies of stream messages, mappings that cannot be changed, and bodies inside a content."""

from __future__ import annotations

import copy
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgermq.errors import MessageEOFError, MessageFormatError, MessageNotWriteableError
from ledgermq.wire.content.bodies import ReadOnlyDict, StreamBody
from ledgermq.wire.content.content import decode_content, encode_content
from ledgermq.wire.content.objects import ObjectBody
from ledgermq.wire.framing.codec import UndecodableError, encode_record

values = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=("Cs",)))
    | st.binary()
)


def carried(body):
    """A body as it comes out of a content."""
    return decode_content(encode_content(body)).body


@given(st.lists(values, max_size=8))
def test_a_stream_comes_back_as_it_was_sent(found):
    """Values keep their order, value and type."""
    body = carried(StreamBody(found))
    assert isinstance(body, StreamBody)
    assert [(one, type(one)) for one in body] == [(one, type(one)) for one in found]


@given(st.lists(values, max_size=8))
def test_a_stream_is_read_as_a_sequence_or_from_front_to_back(found):
    """Both ways see the same, and reading moves only the reads."""
    body = StreamBody(found)
    read = [body.read_object() for _ in found]
    assert read == list(body) == found
    assert len(body) == len(found)
    assert body[:1] == tuple(found[:1])
    with pytest.raises(MessageEOFError, match="the stream has ended") as caught:
        body.read_object()
    assert isinstance(caught.value, EOFError)
    body.reset()
    assert [body.read_object() for _ in found] == found


def test_a_stream_is_read_with_types():
    """Each read takes the next value as its type."""
    body = StreamBody([True, 1, 2, "c", 3, 4, 0.5, 0.1, "text", b"raw", None])
    assert body.read_boolean() is True
    assert (body.read_byte(), body.read_short(), body.read_char()) == (1, 2, "c")
    assert (body.read_int(), body.read_long()) == (3, 4)
    assert (body.read_float(), body.read_double()) == (0.5, 0.1)
    assert (body.read_string(), body.read_bytes(), body.read_object()) == ("text", b"raw", None)


def test_a_failed_read_of_a_stream_moves_nothing():
    """The same value can be read as another type after that."""
    body = StreamBody([300, "x"])
    with pytest.raises(
        MessageFormatError, match="stream value 0 cannot be read as byte: it is int"
    ):
        body.read_byte()
    assert body.read_short() == 300
    with pytest.raises(MessageFormatError, match="stream value 1 cannot be read as int: it is str"):
        body.read_int()
    assert body.read_string() == "x"


@pytest.mark.parametrize("value", [[1], {}, object(), 2**63, 1j])
def test_a_stream_names_the_value_that_it_cannot_hold(value):
    """Nothing nested, nothing over 64 bits."""
    with pytest.raises(MessageFormatError, match="stream value 1 cannot be written"):
        StreamBody([0, value])


def test_streams_are_compared_by_their_values():
    """Where they are being read does not count."""
    first, second = StreamBody([1, "a"]), StreamBody([1, "a"])
    first.read_int()
    assert first == second
    assert hash(first) == hash(second)
    assert first != StreamBody([1])
    assert first != [1, "a"]
    assert repr(first) == "StreamBody([1, 'a'])"


def test_text_that_is_no_unicode_is_refused_in_a_stream():
    """A lone surrogate cannot be written."""
    with pytest.raises(ValueError, match="surrogates"):
        encode_content(StreamBody(["\ud800"]))


@pytest.mark.parametrize("encoding", ["json", "pickle"])
def test_an_object_body_comes_back_as_it_was_sent(encoding):
    """Encoding and data, not loaded."""
    body = ObjectBody({"a": [1, 2]}, encoding=encoding)
    assert carried(body) == body
    assert carried(body).encoding == encoding


def test_a_body_that_is_cut_does_not_decode():
    """Bytes that end within a body raise UndecodableError."""
    whole = encode_content(StreamBody(["some text"]))
    for end in range(len(whole)):
        with pytest.raises(UndecodableError):
            decode_content(whole[:end])


def test_an_encoding_of_a_later_version_is_read_and_not_loaded():
    """The content decodes, so that header and outcome are there; only the object is not."""
    datum = {"body": ("ledgermq.message.ObjectBody", {"encoding": "cbor", "data": b"\xa0"})}
    value = encode_record("ledgermq.message.Content", {**datum, "reply_to": None, "client_time": 0})
    body = decode_content(value).body
    assert isinstance(body, ObjectBody)
    with pytest.raises(MessageFormatError, match="'cbor', which this version does not know"):
        body.load(allow_pickle=True)


CHANGES = [
    lambda found: found.__setitem__("a", 2),
    lambda found: found.__delitem__("a"),
    lambda found: found.clear(),
    lambda found: found.pop("a"),
    lambda found: found.popitem(),
    lambda found: found.setdefault("b", 1),
    lambda found: found.update(a=2),
    lambda found: found.__ior__({"a": 2}),
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_read_only_dict_refuses_every_change(change):
    """MessageNotWriteableError, which is a TypeError, and nothing has changed."""
    found = ReadOnlyDict(a=1)
    with pytest.raises(MessageNotWriteableError, match="read-only: take a copy") as caught:
        change(found)
    assert isinstance(caught.value, TypeError)
    assert found == {"a": 1}


def test_a_read_only_dict_is_a_dict_otherwise():
    """It is equal to one, is JSON, and its copies can be changed."""
    found = ReadOnlyDict(a=1)
    assert json.dumps(found) == '{"a": 1}'
    copies = [dict(found), found.copy(), copy.copy(found), copy.deepcopy(found), found | {}]
    copies.append(pickle.loads(pickle.dumps(found)))
    for one in copies:
        assert type(one) is dict
        one["b"] = 2
    assert found == {"a": 1}
