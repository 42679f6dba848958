"""Requests of Kafka's protocol that neither of our Kafka libraries has, by aiokafka's classes.

Each is of one list, in a flexible version: texts and lists are compact, and tags end each part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import CompactArray, CompactString, Int32, Schema, TaggedFields

NAME: Final = CompactString("utf-8")
TAGS: Final = ("tags", TaggedFields)
PARTITIONS: Final = CompactArray(("topic", NAME), ("partitions", CompactArray(Int32)), TAGS)


def request_kind(
    key: int, version: int, items: CompactArray, *answer: tuple[str, Any]
) -> type[RequestStruct]:
    """A request of one list, by its number and version in Kafka's protocol, and its answer."""
    common = {"API_KEY": key, "API_VERSION": version}
    response = type("_Answer", (Response,), common | {"SCHEMA": Schema(*answer, TAGS)})
    own = {"FLEXIBLE_VERSION": True, "RESPONSE_TYPE": response}
    return type(
        "_Asked", (RequestStruct,), common | own | {"SCHEMA": Schema(("items", items), TAGS)}
    )


class KafkaRequest(Request[RequestStruct]):
    """A request of a kind, with the items of its list."""

    API_KEY = -1

    def __init__(self, kind: type[RequestStruct], items: Sequence[Any]) -> None:
        self.API_KEY = kind.API_KEY
        self._CLASSES = (kind,)
        self._items = items

    def build(self, request_struct_class: type[RequestStruct]) -> RequestStruct:
        return request_struct_class(self._items, {})
