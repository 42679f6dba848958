"""Settings of the queue manager, changed by operation: all of them are checked, then all made."""

from __future__ import annotations

from ledgermq.core.destinations.changes import check_targets
from ledgermq.core.destinations.resume_marks import changed_mark, checked_mark
from ledgermq.core.destinations.settings_in_force import THE_QUEUE_MANAGER, configure_all
from ledgermq.core.entry import Entry
from ledgermq.core.ranges import check_range
from ledgermq.core.state.records import Session
from ledgermq.core.unit_limits import restart_limits
from ledgermq.protocol.limits import QUOTA_MAX, TIMING_MS_MAX
from ledgermq.protocol.operations import AlterQueueManager
from ledgermq.protocol.reasons import Reason, Refusal
from ledgermq.protocol.settings import changed, wrong_in


def alter_queue_manager(
    entry: Entry, session: Session, operation: AlterQueueManager
) -> Refusal | None:
    state, lifetime_ms = entry.state, operation.maximum_lifetime_ms
    time_limit_ms = operation.unit_of_work_time_limit_ms
    idle_limit_ms = operation.unit_of_work_idle_limit_ms
    storage = state.storage.settings.changed(
        {
            "segment_bytes": operation.segment_bytes,
            "segments_min": operation.segments_min,
            "segments_max": operation.segments_max,
        }
    )
    wrong = storage.wrong()
    if wrong is not None:
        return Refusal(Reason.SETTING_INVALID, wrong)
    refusal = (
        check_range("journal_lifetime_ms", operation.journal_lifetime_ms, 0, TIMING_MS_MAX)
        or check_range("maximum_lifetime_ms", lifetime_ms, 0, TIMING_MS_MAX)
        or check_range("messages_max", operation.messages_max, 0, QUOTA_MAX)
        or check_range("bytes_max", operation.bytes_max, 0, QUOTA_MAX)
        or check_range("unit_of_work_time_limit_ms", time_limit_ms, 0, TIMING_MS_MAX)
        or check_range("unit_of_work_idle_limit_ms", idle_limit_ms, 0, TIMING_MS_MAX)
    )
    if refusal is not None:
        return refusal
    limits = (operation.messages_max, operation.bytes_max)
    marks = checked_mark(
        (operation.messages_resume, operation.bytes_resume),
        state.resume_mark,
        (
            state.messages_max if limits[0] is None else limits[0],
            state.bytes_max if limits[1] is None else limits[1],
        ),
    )
    if isinstance(marks, Refusal):
        return marks
    redelivery = changed(state.redelivery, operation.redelivery)
    wrong = wrong_in(redelivery)
    if wrong is not None:
        return Refusal(Reason.SETTING_INVALID, wrong)
    refusal = check_targets(state, THE_QUEUE_MANAGER, redelivery)
    if refusal is not None:
        return refusal
    if redelivery is not state.redelivery:
        configure_all(state, redelivery)
    state.resume_mark = changed_mark(state.resume_mark, *marks)
    if lifetime_ms is not None:
        state.lifetimes.set_maximum(lifetime_ms, state.stores.values())
    for name in ("messages_max", "bytes_max", "automatic_creation"):
        value = getattr(operation, name)
        if value is not None:
            setattr(state, name, value)
    if time_limit_ms is not None or idle_limit_ms is not None:
        _limit_units_of_work(entry, time_limit_ms, idle_limit_ms)
    if storage is not state.storage.settings:
        state.storage.change(storage)
    if operation.journal_lifetime_ms is not None:
        state.journal.lifetime_ms = operation.journal_lifetime_ms
    if operation.journaling is not None:
        state.journal.switch(entry.position, on=operation.journaling)
    return None


def _limit_units_of_work(entry: Entry, time_ms: int | None, idle_ms: int | None) -> None:
    """Sets the limits, also for what is open: in all since it began, idle from now on."""
    state = entry.state
    if time_ms is not None:
        state.unit_of_work_time_limit_ms = time_ms
    if idle_ms is not None:
        state.unit_of_work_idle_limit_ms = idle_ms
    for one in state.sessions.values():
        if one.has_unit_of_work:
            restart_limits(state, one, one.unit_of_work_began_at, entry.begins)
