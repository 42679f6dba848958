"""Objects as JSON and as pickles: what comes back, what is refused, and where it is."""

from __future__ import annotations

import contextlib
import enum
import json
import math
import pickle
from collections import OrderedDict, namedtuple
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgermq.errors import MessageFormatError
from ledgermq.wire.content.objects import DEPTH_MAX, ObjectBody

texts = st.text(st.characters(exclude_categories=("Cs",)))
offsets = st.integers(-86399, 86399).map(lambda seconds: timezone(timedelta(seconds=seconds)))
zones = st.none() | offsets
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**200), 2**200)
    | st.floats(allow_nan=False)
    | texts
    | st.binary()
    | st.datetimes(timezones=zones)
    | st.dates()
    | st.times(timezones=zones)
    | st.timedeltas()
    | st.decimals(allow_nan=False)
    | st.uuids()
)
keys = texts | st.just("$type")
objects = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(keys, inner, max_size=3)
    ),
    max_leaves=10,
)


def shape(value):
    """A value with the type of each part, because True == 1 == 1.0."""
    if isinstance(value, (list, tuple)):
        return type(value), [shape(one) for one in value]
    if isinstance(value, dict):
        return dict, [(key, shape(one)) for key, one in value.items()]
    return type(value), value


@given(objects)
def test_an_object_comes_back_as_it_was_sent(value):
    """Every supported type, however nested, keeps value and type; the data are JSON."""
    body = ObjectBody(value)
    assert shape(body.load()) == shape(value)
    json.loads(body.data)


@given(
    st.recursive(
        st.none() | st.integers() | texts,
        lambda one: st.lists(one) | st.dictionaries(st.just("$type") | st.just("value"), one),
        max_leaves=5,
    )
)
def test_a_member_that_looks_like_a_tag_is_none(value):
    """A dict of the application with keys of ours comes back as it was."""
    assert ObjectBody(value).load() == value


def test_not_a_number_is_carried_in_an_object():
    """NaN and the infinities, which JSON does not have, and a NaN of Decimal."""
    read = ObjectBody([math.nan, math.inf, -math.inf, Decimal("NaN"), Decimal("sNaN")]).load()
    assert math.isnan(read[0])
    assert read[1:3] == [math.inf, -math.inf]
    assert [str(one) for one in read[3:]] == ["NaN", "sNaN"]


def test_numbers_of_any_size_are_carried_in_an_object():
    """Beyond the digits that Python turns into text, too."""
    for value in (10**6000, -(10**6000), 2**63, -(2**63) - 1):
        assert ObjectBody([value]).load() == [value]


def test_a_time_keeps_its_instant_and_offset_not_its_zone():
    """What comes back has the offset that the zone had then."""
    sent = datetime(2026, 7, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    read = ObjectBody(sent).load()
    assert read == sent
    assert read.tzinfo == timezone(timedelta(hours=2))
    assert ObjectBody(datetime(2026, 1, 1, tzinfo=UTC)).load().utcoffset() == timedelta()


def test_an_offset_that_iso_8601_does_not_have_is_refused():
    """Otherwise another instant would come back."""
    zone = timezone(timedelta(microseconds=1))
    for value in (datetime(2026, 1, 1, tzinfo=zone), time(1, tzinfo=zone)):
        with pytest.raises(MessageFormatError, match="offset from UTC has microseconds"):
            ObjectBody([value])


def test_an_object_is_kept_as_it_was_when_the_body_was_made():
    """Neither the sender's object nor one that was loaded is the body's."""
    value = {"items": [1]}
    body = ObjectBody(value)
    value["items"].append(2)
    body.load()["items"].append(3)
    assert body.load() == {"items": [1]}


class Colour(enum.IntEnum):
    """A subclass of int, which would come back as an int."""

    RED = 1


class Text(str):
    """A subclass of str."""

    __slots__ = ()


class Price:
    """A class of the application."""

    def __eq__(self, other):
        return isinstance(other, Price)

    __hash__ = None


Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("value", "place", "named"),
    [
        (Price(), "the object", "Price"),
        ({"orders": [1, 2, 3, {"price": Price()}]}, r"orders\[3\].price in the object", "Price"),
        ([(1, {2})], r"\[0\]\[1\] in the object", "set"),
        ({"colour": Colour.RED}, "colour in the object", "Colour"),
        ([Text("x")], r"\[0\] in the object", "Text"),
        ({"at": Point(1, 2)}, "at in the object", "Point"),
        ({"a": OrderedDict()}, "a in the object", "OrderedDict"),
        ({"a": bytearray(b"x")}, "a in the object", "bytearray"),
        ({"a": 1j}, "a in the object", "complex"),
    ],
)
def test_a_type_that_is_not_supported_is_named_with_its_place(value, place, named):
    """MessageFormatError says where it is, what there is instead, and how to ask for a pickle."""
    with pytest.raises(MessageFormatError, match=f'^{place} is of type {named}, .*="pickle"'):
        ObjectBody(value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({1: "a"}, "the object is a dict with a key of type int: keys must be str"),
        ({"a": [{None: 1}]}, r"a\[0\] in the object is a dict with a key of type NoneType"),
        ({"a": "\ud800"}, "a in the object has a text that is no Unicode"),
        ({"\ud800": 1}, "the object has a text that is no Unicode"),
    ],
)
def test_keys_and_texts_that_json_does_not_have_are_refused(value, said):
    """Keys are texts, and texts are Unicode."""
    with pytest.raises(MessageFormatError, match=said):
        ObjectBody(value)


def test_an_object_that_holds_itself_is_refused():
    """Nesting has a limit, which is the same for all."""
    loop = []
    loop.append(loop)
    with pytest.raises(MessageFormatError, match="nested deeper than 100 levels, or holds itself"):
        ObjectBody(loop)
    deep = []
    for _ in range(DEPTH_MAX - 1):
        deep = [deep]
    assert ObjectBody(deep).load() == deep
    with pytest.raises(MessageFormatError, match="nested deeper"):
        ObjectBody([deep])


@pytest.mark.parametrize(
    "data",
    [
        *[b"", b"{", b"\xff", b"NaN", b"[1,]", b"[" * 100_000, b'{"$type":"set","value":[]}'],
        *[b'{"$type":"int"}', b'{"$type":"int","value":"1","more":1}', b'{"$type":[],"value":1}'],
        *[b'{"$type":"bytes","value":"?"}', b'{"$type":"bytes","value":5}'],
        *[b'{"$type":"uuid","value":5}', b'{"$type":"uuid","value":"5"}'],
        *[b'{"$type":"decimal","value":"x"}', b'{"$type":"date","value":"x"}'],
        *[b'{"$type":"timedelta","value":[1e300]}', b'{"$type":"timedelta","value":5}'],
        *[b'{"$type":"timedelta","value":[999999999999]}', b'{"$type":"tuple","value":"ab"}'],
        *[b'{"$type":"dict","value":5}', b'{"$type":"datetime","value":null}'],
        *[b'{"$type":"float","value":"x"}', b'{"$type":"float","value":[]}'],
    ],
)
def test_data_that_are_no_object_are_a_format_error(data):
    """Whatever stands in the message, no other exception leaves the reader."""
    with pytest.raises(MessageFormatError, match="the object cannot be decoded"):
        ObjectBody.encoded("json", data).load()


@given(st.binary() | st.text().map(str.encode))
def test_any_data_are_an_object_or_a_format_error(data):
    """Made-up data."""
    with contextlib.suppress(MessageFormatError):
        ObjectBody.encoded("json", data).load()


def test_a_pickle_is_loaded_only_when_it_is_allowed():
    """Otherwise the text says what to do and that nothing is lost; nothing of it was run."""
    body = ObjectBody({1, 2, Price}, encoding="pickle")
    with pytest.raises(MessageFormatError, match=r"connect with allow_pickle=True.*still there"):
        body.load()
    assert body.load(allow_pickle=True) == {1, 2, Price}


def test_a_pickle_that_cannot_be_made_or_loaded_is_a_format_error():
    """Whatever pickle raises is its cause."""
    with pytest.raises(MessageFormatError, match="cannot be pickled"):
        ObjectBody(lambda: 1, encoding="pickle")
    for data in (b"", b"nonsense", pickle.dumps(Price())[:-2]):
        with pytest.raises(MessageFormatError, match="cannot be loaded") as caught:
            ObjectBody.encoded("pickle", data).load(allow_pickle=True)
        assert caught.value.__cause__ is not None


def test_another_encoding_is_refused():
    """There are two."""
    with pytest.raises(MessageFormatError, match='must be "json" or "pickle"'):
        ObjectBody(1, encoding="yaml")


def test_object_bodies_are_compared_by_what_they_hold():
    """Encoding and data; the text of one does not show the object."""
    assert ObjectBody([1]) == ObjectBody([1])
    assert len({ObjectBody([1]), ObjectBody([1])}) == 1
    assert ObjectBody([1]) != ObjectBody([1], encoding="pickle")
    assert ObjectBody([1]) != [1]
    assert repr(ObjectBody([1])) == "ObjectBody(json, 3 bytes)"


@pytest.mark.parametrize(
    ("value", "data"),
    [
        ({"a": [1, None, True, "é"]}, '{"a":[1,null,true,"é"]}'),
        (b"\x00", '{"$type":"bytes","value":"AA=="}'),
        ((1,), '{"$type":"tuple","value":[1]}'),
        (date(2026, 1, 2), '{"$type":"date","value":"2026-01-02"}'),
        (time(1, 2), '{"$type":"time","value":"01:02:00"}'),
        (timedelta(1, 2, 3), '{"$type":"timedelta","value":[1,2,3]}'),
        (Decimal("1.50"), '{"$type":"decimal","value":"1.50"}'),
        (UUID(int=1), '{"$type":"uuid","value":"00000000-0000-0000-0000-000000000001"}'),
        (2**64, '{"$type":"int","value":"0x10000000000000000"}'),
        (math.inf, '{"$type":"float","value":"inf"}'),
        ({"$type": 1}, '{"$type":"dict","value":{"$type":1}}'),
    ],
)
def test_the_json_of_an_object_never_changes(value, data):
    """Messages live on the log for ever, so these bytes do too (PROTOCOL.md §3)."""
    assert ObjectBody(value).data.decode() == data
    assert shape(ObjectBody.encoded("json", data.encode()).load()) == shape(value)
