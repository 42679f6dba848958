"""The storage as administration reads it: segments, what pins them, cache and log (§9, §19)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ledgermq.client.instants import datetime_from
from ledgermq.client.questions import Answer

__all__ = ["BodyCacheStatus", "OldestMessage", "SegmentState", "StorageStatus"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OldestMessage:
    """The live message that was put first of those in a segment.

    Attributes:
        destination: Where it is; a message of a topic: the topic.
        sequence: Its sequence number; None: it is an uncommitted put.
        enqueued_at: When it was numbered; None: it is an uncommitted put.
        put_position: Log position of the put that brought it.
        put_index: Its place in that put.
    """

    destination: str
    sequence: int | None
    enqueued_at: datetime | None
    put_position: int
    put_index: int

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> OldestMessage:
        """From the worker's document."""
        enqueued_at = document["enqueued_at"]
        return cls(
            destination=document["destination"],
            sequence=document["sequence"] if document["sequence"] >= 0 else None,
            enqueued_at=None if enqueued_at is None else datetime_from(enqueued_at),
            put_position=document["put_position"],
            put_index=document["put_index"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentState:
    """A segment of the storage.

    Attributes:
        number: Its number in hexadecimal.
        state: `free`, `active` (messages are appended to it) or `pinned` by live messages.
        bytes: What was appended to it since it was clean.
        live_bytes: What its live messages take; more than `bytes` where messages share a body.
        live_messages: How many they are.
        oldest: The one that was put first; None: there is none.
    """

    number: str
    state: str
    bytes: int
    live_bytes: int
    live_messages: int
    oldest: OldestMessage | None

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> SegmentState:
        """From the worker's document."""
        oldest = document["oldest"]
        return cls(
            **{
                name: document[name]
                for name in ("number", "state", "bytes", "live_bytes", "live_messages")
            },
            oldest=None if oldest is None else OldestMessage.from_document(oldest),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyCacheStatus:
    """The worker's cache of bodies since it took over the queue manager.

    Attributes:
        limit_bytes: Its setting `body_cache_bytes`.
        bytes: What it holds.
        puts: Of how many puts it holds the bodies.
        hits: Bodies that were asked for and in it.
        misses: Bodies that were asked for and read back from the log.
    """

    limit_bytes: int
    bytes: int
    puts: int
    hits: int
    misses: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageStatus:
    """The storage of a queue manager at one log position.

    Attributes:
        position: Log position that this is true at.
        segment_bytes: How much a segment takes, and a unit of work at most.
        segments_min: How many segments there are at least.
        segments_max: How many there are at most; 0: no limit.
        allocated: How many there are.
        free: How many of them are free.
        bytes: What was appended to all of them since they were clean.
        live_bytes: What live messages take.
        live_messages: How many they are; a message of a topic counts once.
        segments: All of them, by number.
        cache: The worker's cache of bodies; None: it does not tell.
        log_bytes: What the log really takes on the brokers' disks, replicas included, by kind of
            log topic (`operations`, `outcomes`, `questions`, `checkpoints`); None: not told.
    """

    position: int
    segment_bytes: int
    segments_min: int
    segments_max: int
    allocated: int
    free: int
    bytes: int
    live_bytes: int
    live_messages: int
    segments: list[SegmentState]
    cache: BodyCacheStatus | None
    log_bytes: dict[str, int] | None

    @classmethod
    def from_answers(cls, answers: list[Answer]) -> StorageStatus:
        """From the pages of the worker's document; the sums are those of the last one."""
        document = answers[-1].document
        cache, log = document["cache"], document["log"]
        same = ("segment_bytes", "segments_min", "segments_max", "allocated", "free", "bytes")
        return cls(
            position=answers[-1].position,
            **{name: document[name] for name in (*same, "live_bytes", "live_messages")},
            segments=[
                SegmentState.from_document(one)
                for answer in answers
                for one in answer.document["segments"]
            ],
            cache=None if cache is None else _cache_from(cache),
            log_bytes=None
            if log is None
            else {name.removesuffix("_bytes"): size for name, size in log.items()},
        )


def _cache_from(document: dict[str, Any]) -> BodyCacheStatus:
    """The fields this version knows; a newer worker may tell more."""
    return BodyCacheStatus(
        **{name: document[name] for name in BodyCacheStatus.__dataclass_fields__}
    )
