"""The storage as answers report it: segments, what pins them, cache and log (§9, §19)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from ledgermq.protocol.documents.fields import BESIDE


def _by_topic(log: dict[str, int]) -> dict[str, int]:
    return {name.removesuffix("_bytes"): size for name, size in log.items()}


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
    sequence: int | None = field(metadata={"none": -1})
    enqueued_at: datetime | None
    put_position: int
    put_index: int


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
        cache: The worker's cache of bodies; None: the worker does not say.
        log_bytes: What the log really takes on the brokers' disks, replicas included, by kind of
            log topic (`operations`, `outcomes`, `questions`, `checkpoints`); None: the
            worker does not say.
    """

    position: int = field(metadata=BESIDE)
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
    log_bytes: dict[str, int] | None = field(metadata={"key": "log", "read": _by_topic})
