"""All faults that are planted in the fold, with the histories that show them."""

from __future__ import annotations

from support.planted import (
    deduplication_faults,
    fold_faults,
    inheritance_faults,
    order_faults,
    put_faults,
    source_faults,
    topic_faults,
)

FAMILIES = (
    fold_faults.FOLD,
    fold_faults.JOURNAL,
    fold_faults.REJECTING,
    fold_faults.REJECTING_SCRIPTS,
    fold_faults.CLOCK,
    fold_faults.CONNECTIONS,
    put_faults.QUOTAS,
    put_faults.RESUME_MARKS,
    put_faults.STORAGE,
    put_faults.RELOCATION,
    put_faults.HANDLING,
    source_faults.SOURCES,
    deduplication_faults.DEDUPLICATION,
    deduplication_faults.DEDUPLICATION_SCRIPTS,
    inheritance_faults.INHERITANCE,
    topic_faults.UNROUTED,
    topic_faults.BINDINGS,
    topic_faults.BINDINGS_SCRIPTS,
    order_faults.GROUPS,
    order_faults.FIFO,
    order_faults.SINGLE_ACTIVE,
    order_faults.CONSUMER_PRIORITY,
    order_faults.SINGLE_ACTIVE_SCRIPTS,
    order_faults.DISPLACEMENT,
    order_faults.DISPLACEMENT_SCRIPTS,
    order_faults.GROUP_ORDER,
    order_faults.GROUP_ORDER_SCRIPTS,
)
