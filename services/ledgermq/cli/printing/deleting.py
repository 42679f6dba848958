"""What is said before a queue, topic or subscription is deleted: what is lost, and what forbids it.

A dry run deletes nothing, so that the queue manager is not asked: it says here what that would say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ledgermq.cli.options.consent import confirm
from ledgermq.cli.printing.exits import OK, REFUSED
from ledgermq.cli.printing.output import Output, count_of
from ledgermq.client.admin.admin import Admin
from ledgermq.protocol.documents.destinations import QueueStatus, SubscriptionStatus, TopicStatus
from ledgermq.protocol.settings import TARGETS


def confirm_deletion(what: str, lost: str) -> None:
    """Ask whether to delete it with what would be lost."""
    confirm(f"this would delete {what} with {lost}")


def tell_dry_run(
    output: Output, what: str, lost: str, document: Mapping[str, Any], refused: str
) -> int:
    """Say what a deletion would take away, or why it would be `refused`; the exit code."""
    told = f"{what} would be deleted with {lost}"
    if refused:
        told = f"{what} has {lost}, and would not be deleted: {refused}"
    output.done(told, {**document, "deleted": False, **({"refused": refused} if refused else {})})
    return REFUSED if refused else OK


def why_queue_stays(admin: Admin, status: QueueStatus, *, purge: bool) -> str:
    """Why a queue cannot be deleted, in words; empty: it can."""
    used = _in_use(status.receivers, status.uncommitted_puts, [status])
    if used or (named := _named_by(admin, status.destination)):
        return used or named
    if status.message_count and not purge:
        return f"it holds {count_of(status.message_count, 'message')}: --purge removes them, too"
    return ""


def why_topic_stays(admin: Admin, status: TopicStatus, *, purge: bool) -> str:
    """Why a topic cannot be deleted, in words; empty: it can."""
    used = _in_use(status.receivers, status.uncommitted_puts, admin.subscriptions(status.name))
    if used or (named := _named_by(admin, status.destination)):
        return used or named
    if (status.subscriptions or status.message_count) and not purge:
        lost = count_of(status.subscriptions, "durable subscription")
        lost += f" and {count_of(status.message_count, 'message')}"
        return f"it has {lost}: --purge removes them, too"
    return ""


def why_subscription_stays(status: SubscriptionStatus) -> str:
    """Why a durable subscription cannot be deleted, in words; empty: it can."""
    return _in_use(status.receivers, 0, [status])


def _in_use(receivers: int, puts: int, holders: Iterable[QueueStatus | SubscriptionStatus]) -> str:
    held = sum(one.unacknowledged + one.uncommitted_gets for one in holders)
    if not receivers and not puts and not held:
        return ""
    parts = [
        count_of(receivers, "consumer"),
        count_of(puts, "uncommitted put"),
        count_of(held, "delivery in flight", "deliveries in flight"),
    ]
    return f"it is in use, by {parts[0]}, {parts[1]} and {parts[2]}; end them first"


def _named_by(admin: Admin, destination: str) -> str:
    """Whose setting names a destination, which stays as long as one does."""
    manager = admin.queue_manager_status()
    named = [(manager.name, manager.redelivery)]
    named += [(one.destination, one.settings) for one in admin.list_queues()]
    named += [(one.destination, one.settings) for one in admin.topics()]
    for by, settings in named:
        for setting in TARGETS:
            if settings.get(setting) == destination:
                return f"it is the {setting.replace('_', ' ')} of {by}; change that first"
    return ""
