"""Bodies, properties and selectors on the command line.

A body is text, bytes or a JSON object that becomes a map.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from typing import Any, Final

import click

from ledgermq.cli.printing.output import json_text
from ledgermq.wire.content.bodies import StreamBody
from ledgermq.wire.content.objects import ObjectBody, no_constant, strict_json

_WORDS: Final = {"true": True, "false": False}

selector_option: Final = click.option(
    "--selector",
    metavar="SELECTOR",
    default="",
    help="Only messages that this selector of JMS matches, such as \"region = 'EU' AND count > "
    '2".',
)


def map_from_json(text: str | bytes, *, where: str) -> dict[str, Any]:
    """The map message in a JSON object; nested values are refused when it is sent."""
    try:
        found = strict_json(text)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{where} is no JSON: {error}") from None
    except ValueError as error:
        raise click.UsageError(f"{where} cannot be put as a map: {error}") from None
    except RecursionError:
        raise click.UsageError(f"{where} is nested too deeply for a map") from None
    if not isinstance(found, dict):
        raise click.UsageError(f'{where} must be a JSON object such as {{"id": 1}}')
    return found


def properties_from(given: tuple[str, ...]) -> dict[str, Any]:
    """Properties given as NAME=VALUE: whole numbers, decimals, true and false, else text."""
    properties: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.UsageError(f"--property {text!r} must be NAME=VALUE")
        if name in properties:
            raise click.UsageError(f"--property {name} was given twice")
        properties[name] = _typed(value)
    return properties


def _typed(text: str) -> bool | int | float | str:
    if text in _WORDS:
        return _WORDS[text]
    for kind in (int, float):
        try:
            value = kind(text)
            # What would not print the same again, as 007 or 1e3, is text; so are nan and inf.
            if str(value) == text and math.isfinite(value):
                return value
        except ValueError:
            pass
    return text


def body_document(body: Any) -> dict[str, Any]:
    """A body as JSON members: its kind and, for bytes that are no text, its encoding.

    A pickle is never loaded: its bytes are shown.
    """
    if isinstance(body, ObjectBody):
        return {**_object_document(body), "body_kind": "object"}
    if isinstance(body, StreamBody):
        return {"body_kind": "stream", "body": list(body)}
    if isinstance(body, bytes):
        try:
            return {"body_kind": "bytes", "body": body.decode()}
        except UnicodeDecodeError:
            encoded = base64.b64encode(body).decode()
            return {"body_kind": "bytes", "body_encoding": "base64", "body": encoded}
    if isinstance(body, Mapping):
        return {"body_kind": "map", "body": dict(body)}
    return {"body_kind": "none" if body is None else "text", "body": body}


def _object_document(body: ObjectBody) -> dict[str, Any]:
    """The JSON of an object message as it travels; what is no JSON, as a pickle, in base64.

    So is what Python alone takes for JSON: numbers that are none.
    """
    if body.encoding == "json":
        try:
            found = json.loads(body.data, parse_constant=no_constant)
            return {"object_encoding": "json", "body": found}
        except (ValueError, RecursionError):
            pass
    encoded = base64.b64encode(body.data).decode()
    return {"object_encoding": body.encoding, "body_encoding": "base64", "body": encoded}


def body_line(body: Any) -> str:
    """A body as a text that every output can encode."""
    document = body_document(body)["body"]
    if isinstance(document, (dict, list)):
        return json_text(document)
    return "" if document is None else str(document).encode(errors="backslashreplace").decode()
