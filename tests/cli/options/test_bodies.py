"""Bodies as the command line shows them."""

from __future__ import annotations

import base64
import json
from datetime import date

import click
import pytest

from ledgermq.cli.options.bodies import body_document, body_line, map_from_json
from ledgermq.cli.printing.output import Output, json_text
from ledgermq.wire.content.bodies import ReadOnlyDict, StreamBody
from ledgermq.wire.content.objects import ObjectBody

PICKLE = ObjectBody({1, 2}, encoding="pickle")
BROKEN = ObjectBody.encoded("json", b"\xff")
DATE = {"$type": "date", "value": "2026-01-02"}


@pytest.mark.parametrize(
    ("body", "document", "line"),
    [
        (None, {"body_kind": "none", "body": None}, ""),
        ("text", {"body_kind": "text", "body": "text"}, "text"),
        (b"raw", {"body_kind": "bytes", "body": "raw"}, "raw"),
        (ReadOnlyDict(a=1), {"body_kind": "map", "body": {"a": 1}}, '{"a": 1}'),
        (
            StreamBody([1, "é", None]),
            {"body_kind": "stream", "body": [1, "é", None]},
            '[1, "é", null]',
        ),
        (
            ObjectBody({"on": date(2026, 1, 2)}),
            {"body_kind": "object", "object_encoding": "json", "body": {"on": DATE}},
            json.dumps({"on": DATE}),
        ),
    ],
)
def test_each_kind_of_body_is_shown(body, document, line):
    """As a JSON document and on one line of a table."""
    assert body_document(body) == document
    assert json.loads(json_text(document)) == document
    assert body_line(body) == line


@pytest.mark.parametrize("body", [PICKLE, BROKEN])
def test_what_is_not_loaded_is_shown_in_base64(body):
    """A pickle is not run by looking at it; what does not decode is shown all the same."""
    encoded = base64.b64encode(body.data).decode()
    assert body_document(body) == {
        "body_kind": "object",
        "object_encoding": body.encoding,
        "body_encoding": "base64",
        "body": encoded,
    }
    assert body_line(body) == encoded


@pytest.mark.parametrize("data", [b"[NaN]", b"-Infinity", b"[" * 50_000])
def test_what_python_alone_takes_for_json_is_shown_in_base64(data):
    """Programs that read our JSON could not."""
    document = body_document(ObjectBody.encoded("json", data))
    assert document["body"] == base64.b64encode(data).decode()


@pytest.mark.parametrize("text", ["a\ud800", "\x9b2J", "\u202egnp.exe", "\u2028"])
@pytest.mark.parametrize("shape", [lambda one: one, lambda one: [{one: one}]])
def test_a_body_that_json_escapes_is_shown_whatever_it_escapes(capsys, text, shape):
    """Half of a surrogate pair, which no output encodes, ended `get` before it acknowledged; what
    would steer a terminal stays escaped in JSON.
    """
    body = ObjectBody.encoded("json", json.dumps(shape(text)).encode())
    Output(as_json=True).line(body_document(body))
    told = capsys.readouterr().out
    assert told.isascii()
    assert json.loads(told)["body"] == shape(text)
    body_line(body).encode()


@pytest.mark.parametrize(
    ("number", "shown"), [("nan", "NaN"), ("inf", "Infinity"), ("-inf", "-Infinity")]
)
def test_a_number_that_json_does_not_know_is_a_text(number, shown):
    """Maps, streams and properties may have them, and programs read what is printed as JSON."""
    bodies = (ReadOnlyDict(x=float(number)), StreamBody([1.5, float(number)]))
    documents = [json_text(body_document(body)) for body in bodies]
    found = [json.loads(one, parse_constant=pytest.fail)["body"] for one in documents]
    assert found == [{"x": shown}, [1.5, shown]]
    assert body_line(bodies[0]) == json.dumps({"x": shown})


def test_a_map_that_is_nested_too_deeply_is_wrong_use():
    """As any other that is no map."""
    with pytest.raises(click.UsageError, match="BODY is nested too deeply"):
        map_from_json("[" * 50_000, where="BODY")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"a": 1, "a": 2}', "BODY cannot be put as a map: a name stands twice in an object"),
        ('{"a": 1e999}', "BODY cannot be put as a map: 1e999 is too large a number"),
        ('{"a": NaN}', "BODY cannot be put as a map: NaN is no JSON"),
        ('{"a": }', "BODY is no JSON: Expecting value"),
        (b'{"a": "\xff"}', "BODY is no JSON: 'utf-8' codec"),
    ],
)
def test_what_a_map_would_not_keep_is_wrong_use(text, told):
    """As a bridge refuses it: of two values the first was lost, a large number became infinite."""
    with pytest.raises(click.UsageError) as caught:
        map_from_json(text, where="BODY")
    assert str(caught.value).startswith(told)


def test_bytes_in_a_stream_are_text_on_a_line():
    """As they are in a map."""
    assert body_line(StreamBody([b"ab"])) == '["ab"]'
    assert json.loads(json_text(body_document(StreamBody([b"\xff"])))) == {
        "body_kind": "stream",
        "body": ["ff"],
    }
