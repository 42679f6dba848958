"""Settings of the queue manager, changed by operation."""

from __future__ import annotations

from ledgermq.core.entry import Entry
from ledgermq.core.manual.journal_operations import check_journal, configure_journal
from ledgermq.core.puts.room import check_storage, configure_storage
from ledgermq.core.state.records import Session
from ledgermq.protocol.limits import QUOTA_MAX, TIMING_MS_MAX
from ledgermq.protocol.operations import AlterQueueManager
from ledgermq.protocol.reasons import Reason, Refusal


def alter_queue_manager(
    entry: Entry, session: Session, operation: AlterQueueManager
) -> Refusal | None:
    refusal = check_storage(entry.state, operation) or check_journal(operation)
    if refusal is not None:
        return refusal
    lifetime_ms = operation.maximum_lifetime_ms
    if lifetime_ms is not None and not 0 <= lifetime_ms <= TIMING_MS_MAX:
        return Refusal(
            Reason.SETTING_INVALID,
            f"maximum_lifetime_ms is {lifetime_ms}, must be 0 to {TIMING_MS_MAX}",
        )
    quotas = {"messages_max": operation.messages_max, "bytes_max": operation.bytes_max}
    for name, quota in quotas.items():
        if quota is not None and not 0 <= quota <= QUOTA_MAX:
            return Refusal(Reason.SETTING_INVALID, f"{name} is {quota}, must be 0 to {QUOTA_MAX}")
    if lifetime_ms is not None:
        entry.state.lifetimes.set_maximum(lifetime_ms, entry.state.stores.values())
    if operation.messages_max is not None:
        entry.state.messages_max = operation.messages_max
    if operation.bytes_max is not None:
        entry.state.bytes_max = operation.bytes_max
    if operation.automatic_creation is not None:
        entry.state.automatic_creation = operation.automatic_creation
    configure_storage(entry.state, operation)
    configure_journal(entry, operation)
    return None
