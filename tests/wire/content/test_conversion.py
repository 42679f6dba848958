"""The conversion tables of Jakarta Messaging cell by cell, and errors where there is no mark."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgermq.errors import MessageFormatError
from ledgermq.wire.content.conversion import READERS, WRITERS, read_as, written_as

# As the API of MapMessage and StreamMessage has it: a value written as the row type can be read as
# the column type. The table of properties is this one without char and byte[].
TABLE = """
|        | boolean byte short char int long float double String byte[]
|----------------------------------------------------------------------
|boolean |    X                                            X
|byte    |          X     X         X   X                  X
|short   |                X         X   X                  X
|char    |                     X                           X
|int     |                          X   X                  X
|long    |                              X                  X
|float   |                                    X     X      X
|double  |                                          X      X
|String  |    X     X     X         X   X     X     X      X
|byte[]  |                                                        X
"""
OURS = {"String": "string", "byte[]": "bytes"}
# Of each type a value that the narrower types do not hold.
SAMPLES = {
    "boolean": True,
    "byte": -128,
    "short": 32767,
    "char": "x",
    "int": -(2**31),
    "long": 2**63 - 1,
    "float": 0.5,
    "double": 0.1,
    "string": "1",
    "bytes": b"\x00\xff",
}
# What is held does not say that a text was a char, nor that a double was no float: these reads are
# possible here, though the table does not mark them.
UNMARKED_AND_READ = {("char", "boolean"), ("string", "char")}


def cells():
    """Row, column and whether the table marks it, in our words."""
    lines = TABLE.strip().splitlines()
    heads = lines[0].split("|")[2].split()
    offset = lines[0].rindex("|") + 1
    at = [lines[0].index(f" {head}", offset) + 1 for head in heads]
    for line in lines[2:]:
        row = line.split("|")[1].strip()
        marks = [place for place, one in enumerate(line) if one == "X"]
        for head, start in zip(heads, at, strict=True):
            marked = any(start - 1 <= mark <= start + len(head) for mark in marks)
            yield OURS.get(row, row), OURS.get(head, head), marked


CELLS = list(cells())


def test_the_table_was_read_whole():
    """The reading of the table is not blind: it has as many marks as characters X in it."""
    assert len(CELLS) == 100
    assert sum(marked for *_, marked in CELLS) == sum(
        line.count("X") for line in TABLE.splitlines()[3:]
    )
    assert {row for row, *_ in CELLS} == set(SAMPLES) == set(READERS)
    assert set(WRITERS) == {*SAMPLES, "object"}


@pytest.mark.parametrize(("row", "column", "marked"), CELLS)
def test_conversion_follows_the_table_of_jakarta_messaging(row, column, marked):
    """A marked cell reads the value; an unmarked one raises, save the exceptions listed here."""
    held = written_as(row, SAMPLES[row], "it")
    if not marked and (row, column) not in UNMARKED_AND_READ:
        with pytest.raises(MessageFormatError, match=f"it cannot be read as {column}"):
            read_as(column, held, "it")
        return
    read = read_as(column, held, "it")
    if row == "string" and column not in ("string", "char"):
        expected = {"boolean": False, "float": 1.0, "double": 1.0}.get(column, 1)
    elif column == "string":
        expected = {"boolean": "true"}.get(row, str(SAMPLES[row]))
    else:
        expected = False if (row, column) == ("char", "boolean") else SAMPLES[row]
    assert (read, type(read)) == (expected, type(expected))


@pytest.mark.parametrize(("kind", "bits"), [("byte", 8), ("short", 16), ("int", 32), ("long", 64)])
def test_whole_numbers_are_read_and_written_within_their_bits(kind, bits):
    """Both ends are within, the next numbers are not, whoever holds them."""
    for value in (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1):
        assert read_as(kind, written_as(kind, value, "it"), "it") == value
        assert read_as(kind, str(value), "it") == value
    for value in (-(2 ** (bits - 1)) - 1, 2 ** (bits - 1)):
        for held in (value, str(value)):
            with pytest.raises(MessageFormatError, match=f"too large for {bits} bits"):
                read_as(kind, held, "it")
        with pytest.raises(MessageFormatError, match=f"too large for {bits} bits"):
            written_as(kind, value, "it")


@given(st.integers(-(2**63), 2**63 - 1), st.sampled_from(["byte", "short", "int", "long"]))
def test_narrowing_keeps_the_number_or_raises(value, kind):
    """No read changes a number."""
    limit = 2 ** {"byte": 7, "short": 15, "int": 31, "long": 63}[kind]
    if -limit <= value < limit:
        assert read_as(kind, value, "it") == value
    else:
        with pytest.raises(MessageFormatError):
            read_as(kind, value, "it")


@given(st.floats(width=32))
def test_a_float_is_read_as_it_was_written(value):
    """Numbers of 32 bits pass, the infinities and NaN too."""
    read = read_as("float", written_as("float", value, "it"), "it")
    assert struct.pack(">f", read) == struct.pack(">f", value)


def test_a_double_that_32_bits_do_not_hold_is_not_read_as_a_float():
    """Neither rounded nor cut; a text is rounded, as in Java."""
    for value in (0.1, 1e300):
        with pytest.raises(MessageFormatError, match="32 bits"):
            read_as("float", value, "it")
    assert read_as("float", "0.1", "it") == struct.unpack(">f", struct.pack(">f", 0.1))[0]
    assert written_as("float", 0.1, "it") == read_as("float", "0.1", "it")
    with pytest.raises(MessageFormatError, match="too large for 32 bits"):
        written_as("float", 1e300, "it")


@pytest.mark.parametrize("kind", sorted(set(SAMPLES) - {"boolean", "string", "bytes"}))
def test_a_null_is_no_number_and_no_char(kind):
    """As valueOf(null) raises in Java; MessageFormatError is a ValueError."""
    with pytest.raises(MessageFormatError, match="it is null") as caught:
        read_as(kind, None, "it")
    assert isinstance(caught.value, ValueError)


def test_a_null_is_false_and_no_text_and_no_bytes():
    """The reads that a null has."""
    assert read_as("boolean", None, "it") is False
    assert read_as("string", None, "it") is None
    assert read_as("bytes", None, "it") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [("true", True), ("TRUE", True), ("false", False), ("yes", False), ("", False)],
)
def test_only_true_is_true(text, expected):
    """Texts are read as booleans as Boolean.valueOf does."""
    assert read_as("boolean", text, "it") is expected


@pytest.mark.parametrize("text", ["", " 1", "1 ", "1_0", "0x1", "1.0", "one", "+", "١", "9" * 5000])
def test_a_text_that_is_no_whole_number_is_refused(text):
    """Java's NumberFormatException is a MessageFormatError; huge texts are not even tried."""
    with pytest.raises(MessageFormatError, match="the text is no whole number"):
        read_as("long", text, "it")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1.0),
        (" -1.5e3 ", -1500.0),
        (".5", 0.5),
        ("2.", 2.0),
        ("1.5f", 1.5),
        ("Infinity", math.inf),
    ],
)
def test_a_text_is_read_as_a_number_as_java_does(text, expected):
    """Spaces around it and a letter behind it are allowed."""
    assert read_as("double", text, "it") == expected


@pytest.mark.parametrize("text", ["", ".", "1_0", "inf", "nan", "1e", "one", "1" * 5000])
def test_a_text_that_is_no_number_is_refused(text):
    """Python's own spellings are no numbers of Java."""
    with pytest.raises(MessageFormatError, match="the text is no number"):
        read_as("double", text, "it")


@given(st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False))
def test_what_is_read_as_a_text_can_be_read_back(value):
    """Text and back is the same value, infinities too."""
    kind = {bool: "boolean", int: "long", float: "double"}[type(value)]
    assert read_as(kind, read_as("string", value, "it"), "it") == value
    assert math.isnan(read_as("double", read_as("string", math.nan, "it"), "it"))


@pytest.mark.parametrize("value", ["", "xy", "\U0001f600", 5, None])
def test_a_char_is_one_character_of_16_bits(value):
    """No other text is a char, written or read."""
    for convert in (read_as, written_as):
        with pytest.raises(MessageFormatError, match="as char"):
            convert("char", value, "it")


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *[(kind, "1") for kind in ("boolean", "byte", "int", "long", "float", "double", "bytes")],
        *[(kind, True) for kind in ("byte", "long", "float", "double", "string", "char")],
        *[("string", 1), ("string", b"x"), ("boolean", 1), ("int", 1.0), ("bytes", [1])],
        *[("object", [1]), ("object", {}), ("object", 2**63), ("object", object())],
    ],
)
def test_a_value_of_another_type_is_not_written(kind, value):
    """Writing converts nothing; what is refused is named."""
    with pytest.raises(MessageFormatError, match=f"entry 'a' cannot be written as {kind}: it is "):
        written_as(kind, value, "entry 'a'")


def test_what_python_has_for_a_type_is_written():
    """An int is a double where one is wanted, a bytearray is bytes, null is a text or bytes."""
    assert repr(written_as("double", 1, "it")) == "1.0"
    assert written_as("bytes", bytearray(b"x"), "it") == b"x"
    assert written_as("object", memoryview(b"x"), "it") == b"x"
    assert written_as("string", None, "it") is written_as("bytes", None, "it") is None
    with pytest.raises(MessageFormatError, match="too large for 64 bits"):
        written_as("double", 10**400, "it")
