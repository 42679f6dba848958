"""Displacement: of what is available only the newest is kept, if a queue says so (§23)."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Final

from ledgermq.core.entry import Entry
from ledgermq.core.moves import move
from ledgermq.core.order.selecting import value_in
from ledgermq.core.quoting import quoted
from ledgermq.core.state.message_states import AVAILABLE, DISPLACED, GONE
from ledgermq.core.state.records import Message, Queue
from ledgermq.core.structures.newest import Newest
from ledgermq.protocol.limits import LAST_VALUE_KEY_CHARACTERS_MAX
from ledgermq.protocol.reasons import Reason, Refusal

KEY: Final = re.compile(rf"[A-Za-z_$][A-Za-z0-9_$]{{0,{LAST_VALUE_KEY_CHARACTERS_MAX - 1}}}")


def check_key(key: str | None) -> Refusal | None:
    """Refuses what no property can be called."""
    if not key or KEY.fullmatch(key):
        return None
    detail = (
        f"last_value_key {quoted(key)} is no name of a property: a letter, _ or $, then letters, "
        f"digits, _ and $, {LAST_VALUE_KEY_CHARACTERS_MAX} characters at most"
    )
    return Refusal(Reason.SETTING_INVALID, detail)


def keep_newest(queue: Queue, available_max: int, last_value_key: str) -> None:
    """Sets how many messages are available at most, 0 for any number, and the key; empty: none."""
    if (queue.available_max, queue.last_value_key) == (available_max, last_value_key):
        return
    queue.available_max, queue.last_value_key = available_max, last_value_key
    queue.newest = None
    if available_max or last_value_key:

        def value_of(message: Message) -> Hashable | None:
            value = value_in(message, last_value_key)
            # As keys of a mapping 1, 1.0 and True are the same, and each NaN another.
            told = value.hex() if isinstance(value, float) else value
            return None if value is None else (type(value), told)

        queue.newest = Newest(_is_available, value_of if last_value_key else None)
        queue.newest.add(one for one in queue.messages.values() if one.is_available)


def _is_available(message: Message) -> bool:
    return message.is_available and message.queue.messages.get(message.sequence) is message


def displace(entry: Entry, queue: Queue) -> bool:
    """Lets go of what is not to be kept of what is available; returns whether there was any."""
    newest = queue.newest
    if newest is None:
        return False
    outdated = newest.take_outdated()
    move(entry, queue, outdated, AVAILABLE, GONE, cause=DISPLACED)
    surplus = queue.counts[AVAILABLE] - queue.available_max if queue.available_max else 0
    oldest = newest.take_oldest(surplus)
    move(entry, queue, oldest, AVAILABLE, GONE, cause=DISPLACED)
    newest.tidy(queue.counts[AVAILABLE])
    return bool(outdated or oldest)
