"""Blocks that are read many messages at a time say what the codec reads of them, whatever stands
in them (PROTOCOL.md §10).
"""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ledgermq.protocol.plain_messages import PlainMessages
from ledgermq.wire.framing.checkpoint_chunks import BLOCK, encode_block_record
from ledgermq.wire.framing.codec import UndecodableError, UnknownSchemaError, decode_as
from ledgermq.wire.framing.plain_messages import OTHERS_MAX, decode_block
from support.checks.checks import PLAIN, written_out

LONG = st.one_of(
    st.sampled_from((0, -1, 63, 64, 2**62 - 1, 2**63 - 1, -(2**63))), st.integers(0, 9)
)
INT = st.sampled_from((0, 1, -1, 2**31 - 1, -(2**31)))
MESSAGES = st.fixed_dictionaries(
    {
        "put_position": LONG,
        "put_index": INT,
        "sequence": LONG,
        "message_id": st.binary(min_size=16, max_size=16),
        "priority": INT,
        "persistent": st.booleans(),
        "size_bytes": LONG,
        "enqueued_at": LONG,
        "segment": LONG,
    },
    # Each of these makes it one that is not plain.
    optional={"backout_count": INT, "expires_at": LONG, "body_position": LONG, "body_index": INT},
)


def _block(messages: list[dict[str, object]]) -> bytes:
    told = [PLAIN | one for one in messages]
    head = {"queue": "größe", "created_position": 2**40, "block": 7}
    return encode_block_record(head | {"messages": told})[0]


def _plain(count: int) -> list[dict[str, object]]:
    names = ("put_position", "put_index", "priority", "size_bytes", "enqueued_at", "segment")
    same = {**dict.fromkeys(names, 300), "message_id": bytes(16), "persistent": True}
    return [same | {"sequence": number} for number in range(count)]


def _read_by_codec(value: bytes) -> object:
    try:
        return decode_as(BLOCK, value)
    except UndecodableError as error:
        return type(error), str(error)


def _read_together(value: bytes) -> object:
    try:
        return written_out(decode_block(value))
    except UndecodableError as error:
        return type(error), str(error)


@given(st.lists(MESSAGES, max_size=12))
def test_any_block_is_read_as_by_the_codec(messages):
    """Of the smallest and the largest numbers too, and of messages that are not plain between."""
    value = _block(messages)
    assert _read_together(value) == _read_by_codec(value) == decode_as(BLOCK, value)


@given(
    st.lists(MESSAGES, min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=3),
    st.integers(0, 20),
)
@example(_plain(1), [(21, 128), (22, 128)], 0)
def test_damaged_bytes_are_read_or_refused_as_by_the_codec(messages, changes, cut):
    """Bytes that were changed anywhere, cut off, or that follow: anybody may write a chunk."""
    value = bytearray(_block(messages))
    for at, byte in changes:
        value[at % len(value)] = byte
    for damaged in (bytes(value), bytes(value[: len(value) - cut]), bytes(value) + bytes(cut)):
        assert _read_together(damaged) == _read_by_codec(damaged)


def test_plain_messages_are_read_together():
    """A whole block of them, or those on both sides of one that came back."""
    (together,) = decode_block(_block(_plain(1024)))["messages"]
    assert isinstance(together, PlainMessages)
    assert together.sequences == list(range(1024))
    messages = _plain(9)
    messages[4]["backout_count"] = 1
    found = decode_block(_block(messages))["messages"]
    assert [type(one) for one in found] == [PlainMessages, dict, PlainMessages]


@pytest.mark.parametrize("others", [OTHERS_MAX, OTHERS_MAX + 1])
def test_a_block_in_which_many_are_not_plain_is_left_to_the_codec(others):
    """One after the other they would take longer than all at once."""
    messages = [one | {"backout_count": 1} for one in _plain(others)] + _plain(others + 1)[others:]
    value = _block(messages)
    kinds = {type(one) for one in decode_block(value)["messages"]}
    assert kinds == ({dict, PlainMessages} if others == OTHERS_MAX else {dict})
    assert _read_together(value) == decode_as(BLOCK, value)


def test_a_block_of_another_release_is_refused_as_such():
    """Its fingerprint is unknown; the worker says so and does not start from it."""
    value = bytearray(_block(_plain(3)))
    value[2] ^= 1
    with pytest.raises(UnknownSchemaError):
        decode_block(bytes(value))
