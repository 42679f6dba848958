"""Which subscriptions want a message that their topic numbers (PROTOCOL.md §5)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ledgermq_spark.derivation.matching import Selected, matches

if TYPE_CHECKING:
    from ledgermq_spark.derivation.directory import Reception, Subscription
    from ledgermq_spark.derivation.stay import Stay


def wants(
    one: Subscription,
    stay: Stay,
    sender: tuple[str, str],
    receptions: Iterable[Reception],
    position: int,
) -> bool:
    """Whether a subscription wants what is numbered at a position; who sent it may matter."""
    connection, client_id = sender
    if one.no_local and connection:
        if client_id and client_id == one.client_id:
            return False
        if any(_is_local(one, told, connection, position) for told in receptions):
            return False
    if not one.selector:
        return True
    told = stay.message
    return matches(
        one.selector,
        Selected(told.message_id, told.priority, told.persistent, stay.enqueued_at, told.header),
    )


def _is_local(one: Subscription, told: Reception, connection: str, position: int) -> bool:
    """Whether a consumer of a subscription, open at a position, is of a connection."""
    if told.subscription != one.created or told.connection != connection:
        return False
    if told.opened >= position or told.closed is None:
        return bool(told.opened < position)
    return bool(told.closed > position or (told.closed == position and not told.closed_due))
