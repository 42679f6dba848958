"""The metrics of a worker: names, kinds, labels and meanings, as docs/monitoring.md has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

COUNTER: Final = "counter"
GAUGE: Final = "gauge"
HISTOGRAM: Final = "histogram"

MANAGER: Final = ("queue_manager",)
PLACE: Final = (*MANAGER, "destination")
SUBSCRIPTION: Final = (*PLACE, "subscription", "client_id")


@dataclass(frozen=True, slots=True)
class Family:
    """`name` has no `_total`; the library adds that to counters."""

    name: str
    kind: str
    labels: tuple[str, ...]
    meaning: str


FAMILIES: Final = (
    # What happened to messages.
    Family("messages_put", COUNTER, PLACE, "Messages put, also into units of work, or moved here."),
    Family(
        "messages_committed",
        COUNTER,
        PLACE,
        "Messages that got their number: at once or by commit.",
    ),
    Family(
        "messages_delivered",
        COUNTER,
        (*PLACE, "redelivered"),
        "Messages given to consumers; redelivered: whether an application may have seen it before.",
    ),
    Family("messages_acknowledged", COUNTER, PLACE, "Messages acknowledged, or got and committed."),
    Family(
        "messages_rolled_back",
        COUNTER,
        (*PLACE, "kind"),
        "Messages of units of work that were rolled back: put, or got and back in their place.",
    ),
    Family(
        "messages_returned",
        COUNTER,
        PLACE,
        "Messages back in their place unacknowledged: recovered, rejected, or their consumer gone.",
    ),
    Family("messages_expired", COUNTER, PLACE, "Messages whose time to live was over."),
    Family(
        "messages_dead_lettered",
        COUNTER,
        (*PLACE, "reason"),
        "Messages that left a destination for its error or expiry destination.",
    ),
    Family(
        "messages_removed",
        COUNTER,
        (*PLACE, "cause"),
        "Messages gone for another reason: moved, dropped, removed by an administrator, purged.",
    ),
    Family(
        "projection_rejected_events",
        COUNTER,
        (*MANAGER, "reason"),
        "Operations refused, by reason.",
    ),
    # What there is.
    Family("queue_messages", GAUGE, (*PLACE, "state"), "Messages of queues and topics, by state."),
    Family("queue_bytes", GAUGE, (*PLACE, "state"), "Bytes of the messages, by state."),
    Family(
        "subscription_messages",
        GAUGE,
        (*SUBSCRIPTION, "state"),
        "Messages that subscriptions have, by state; those without a name are one.",
    ),
    Family(
        "subscription_bytes", GAUGE, (*SUBSCRIPTION, "state"), "Bytes of the messages, by state."
    ),
    Family(
        "queue_oldest_message_timestamp_seconds",
        GAUGE,
        PLACE,
        "When the oldest message that is there got its number; absent if none is.",
    ),
    Family("queue_consumers", GAUGE, PLACE, "Open consumers."),
    Family(
        "queue_quota_used_ratio",
        GAUGE,
        PLACE,
        "How much of its quota of messages or bytes is used, whichever is more; absent without.",
    ),
    Family("sequence_last", GAUGE, PLACE, "Sequence number given last; absent before the first."),
    Family("transactions_open", GAUGE, MANAGER, "Units of work that hold something."),
    Family(
        "transaction_oldest_timestamp_seconds",
        GAUGE,
        MANAGER,
        "When the oldest of them began; absent if none is open.",
    ),
    Family("sessions_open", GAUGE, MANAGER, "Open sessions."),
    Family("puts_blocked", GAUGE, MANAGER, "Puts that wait for a quota."),
    # How far the fold is.
    Family(
        "projection_caught_up",
        GAUGE,
        MANAGER,
        "1 once all is folded that was on the log when the worker took over; 0 before.",
    ),
    Family(
        "projection_lag_records", GAUGE, MANAGER, "Operations on the log that are not folded yet."
    ),
    Family(
        "projection_lag_seconds",
        GAUGE,
        MANAGER,
        "How long the next of them has waited; 0 if none waits.",
    ),
    Family("projection_position", GAUGE, MANAGER, "Last log position folded."),
    Family(
        "projection_position_timestamp_seconds",
        GAUGE,
        MANAGER,
        "When the operation at that position was appended; absent before the first.",
    ),
    Family(
        "log_time_ahead_seconds", GAUGE, MANAGER, "How far log time is ahead of the log's clock."
    ),
    Family("operations_folded", COUNTER, MANAGER, "Operations folded, also to catch up."),
    Family(
        "outcome_latency_seconds",
        HISTOGRAM,
        MANAGER,
        "Time from the append of an operation to that of its outcome, both as Kafka stamped them.",
    ),
    Family("outcomes_written", COUNTER, MANAGER, "Outcomes handed to the lanes, also to catch up."),
    Family(
        "outcomes_unacknowledged_bytes",
        GAUGE,
        (),
        "Outcomes that the lanes of all queue managers have not acknowledged.",
    ),
    Family("bodies_read_back", COUNTER, MANAGER, "Bodies read back from the log."),
    Family("questions_answered", COUNTER, MANAGER, "Questions answered."),
    Family("worker_entries", COUNTER, MANAGER, "Entries that the worker wrote on the ledger."),
    # Checkpoints.
    Family(
        "checkpoint_position",
        GAUGE,
        MANAGER,
        "Log position of the newest checkpoint; absent: none.",
    ),
    Family(
        "checkpoint_age_seconds",
        GAUGE,
        MANAGER,
        "Time since a checkpoint was made or loaded, or since the start.",
    ),
    Family(
        "checkpoint_written_bytes",
        GAUGE,
        MANAGER,
        "What the last checkpoint wrote: what had changed since the one before; absent: none yet.",
    ),
    Family(
        "checkpoint_duration_seconds",
        GAUGE,
        MANAGER,
        "How long the last checkpoint took until it was durable; absent: none yet.",
    ),
    Family(
        "build_info", GAUGE, ("version", "worker"), "1; which LedgerMQ runs here, and its name."
    ),
)
