"""Faults to be planted in the fold: quotas, storage, relocation, what is done by hand."""

from __future__ import annotations

from typing import Any

from ledgermq.core import apply as apply_module
from ledgermq.core import moves, unblocking
from ledgermq.core.destinations import by_name, copying, subscriptions
from ledgermq.core.manual import message_operations, relocation
from ledgermq.core.puts import blocked, putting, quotas
from ledgermq.core.sessions import sessions
from ledgermq.core.state.message_states import DELAYED
from ledgermq.core.state.records import Topic
from ledgermq.core.state.storage import Segment, Storage
from support.generators.generators import Entry
from support.generators.quota_generators import quota_histories
from support.generators.relocation_generators import relocation_histories
from support.generators.storage_generators import storage_history
from support.planted.fold_faults import STAYS_KNOWN
from support.planted.planted_faults import (
    Family,
    Fault,
    always,
    does_nothing,
    drawn,
    played,
    played_in,
)
from support.scripts.script import read_scripts

STORAGE_HISTORIES = 30
PURGE = """
open
put q A B -> enqueued 0..1
purge q 0 -> administered 1
"""


def _forgets_bytes(original: Any) -> Any:
    def free(self, size_bytes, count=1):
        original(self, 0, count)

    return free


def _last_free(original: Any) -> Any:
    def following(self):
        self.free.sort(reverse=True)
        return original(self)

    return following


def _keeps_subscribers(original: Any) -> Any:
    def enqueue(entry, target, messages, before, session=None):
        first = original(entry, target, messages, before, session)
        for message in messages if isinstance(target, Topic) else ():
            message.segment.hold(message.size_bytes)
        return first

    return enqueue


def _frees_for_each(original: Any) -> Any:
    def leave_topic(entry, topic, messages, cause):
        original(entry, topic, messages, cause)
        moves._free_room(messages)

    return leave_topic


def _forgets_body(original: Any) -> Any:
    def made(self, kind, queue):
        found = original(self, kind, queue)
        found.body = None
        return found

    return made


def _counts_as_delayed(original: Any) -> Any:
    return lambda message: DELAYED


def _scarce(number: int) -> list[list[Entry]]:
    return [storage_history(number)] if number < STORAGE_HISTORIES else []


QUOTAS = Family(
    "quotas",
    (
        Fault("puts never wait for a quota", blocked, "fits", always),
        Fault("puts pass those that wait", blocked, "stays_behind", does_nothing, 3),
        Fault("what waits goes on without room", unblocking, "fits", always),
        Fault("what waits never goes on", unblocking, "fits", does_nothing),
        Fault("a commit that waits never goes on", unblocking, "_commit_if_waiting", does_nothing),
        Fault(
            "puts that wait outlive their session", sessions, "drop_blocked", does_nothing, seed=1
        ),
        Fault("the most that a queue held is not noted", moves, "_note_high", does_nothing),
        Fault("what waits is answered when sent again", apply_module, "is_waiting", does_nothing),
    ),
    drawn(quota_histories()),
)
MARK_SCRIPTS = played_in("resume_marks")
# What is refused for a quota is believed by the laws of the audit (law M): they do not find this.
BELIEVED = Family(
    "refused for a resume mark",
    (Fault("with nobody waiting it is held up", blocked, "end_holding_up", does_nothing),),
    MARK_SCRIPTS,
)
# Scripts show them: random histories seldom drain a quota to its mark while puts wait for it.
RESUME_MARKS = Family(
    "resume marks",
    (
        Fault("resume marks are passed over", quotas, "_holds_up", does_nothing),
        Fault("what is held up once is so for long", unblocking, "resume", does_nothing),
        Fault("what does not fit is not held up again", unblocking, "hold_up", does_nothing),
    ),
    MARK_SCRIPTS,
)
STORAGE = Family(
    "storage",
    (
        Fault("segments are never freed", Segment, "free", does_nothing),
        Fault("segments free messages and no bytes", Segment, "free", _forgets_bytes),
        Fault("segments hold nothing", Segment, "hold", does_nothing),
        Fault("segments are never clean again", Storage, "clean", does_nothing),
        Fault("storage is never full", Storage, "fits", always),
        Fault("settings of the storage change nothing", Storage, "change", does_nothing),
        Fault("the last free segment is the next", Storage, "_next", _last_free, seed=3),
        Fault("units of work may be of any size", putting, "check_transaction_size", does_nothing),
        Fault("messages are stored in no segment", Storage, "append", does_nothing),
        Fault("the room of messages is never freed", moves, "_free_room", does_nothing),
        Fault(
            "a queue is deleted and its messages are not", by_name, "purge", does_nothing, seed=6
        ),
        Fault(
            "a subscription ends and its messages do not",
            subscriptions,
            "purge",
            does_nothing,
            seed=1,
        ),
        Fault("what is published takes its room twice", putting, "enqueue", _keeps_subscribers),
        Fault("each copy of a message frees its room", moves, "_leave_topic", _frees_for_each),
    ),
    _scarce,
)
RELOCATION = Family(
    "relocation",
    (
        Fault("messages to write again are not found", relocation, "_message_at", does_nothing),
        Fault("any copy passes for the message", relocation, "_difference", does_nothing),
        Fault(
            "where a body stands is lost on the way elsewhere",
            copying,
            "_made_as",
            _forgets_body,
            4,
        ),
    ),
    drawn(relocation_histories()),
)
HANDLING = Family(
    "handling",
    (
        STAYS_KNOWN,
        Fault(
            "what is purged counts as delayed", message_operations, "state_of", _counts_as_delayed
        ),
    ),
    played(lambda: read_scripts(PURGE)),
)
