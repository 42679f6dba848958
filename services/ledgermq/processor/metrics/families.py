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
    Family(
        "messages_put",
        COUNTER,
        PLACE,
        "Messages put into a queue or topic, in units of work too (before their commit), and "
        "messages moved there.",
    ),
    Family(
        "messages_committed",
        COUNTER,
        PLACE,
        "Messages that got their sequence number: when put, or when their unit of work was "
        "committed.",
    ),
    Family(
        "messages_delivered",
        COUNTER,
        (*PLACE, "redelivered"),
        "Messages delivered to consumers. redelivered is true if an application may have "
        "seen the message before.",
    ),
    Family(
        "messages_acknowledged",
        COUNTER,
        PLACE,
        "Messages consumed for good: acknowledged, or got in a unit of work that was committed.",
    ),
    Family(
        "messages_rolled_back",
        COUNTER,
        (*PLACE, "kind"),
        "Messages of units of work that were rolled back. kind put: the put vanished; get: "
        "the message went back to its queue, also alone: put back, or not handed over.",
    ),
    Family(
        "messages_returned",
        COUNTER,
        PLACE,
        "Messages that went back to their queue unacknowledged, from no unit of work: recovered, "
        "put back by themselves, or their consumer or session ended.",
    ),
    Family(
        "messages_expired",
        COUNTER,
        PLACE,
        "Messages whose time to live was over before they were consumed.",
    ),
    Family(
        "messages_dead_lettered",
        COUNTER,
        (*PLACE, "reason"),
        "Messages that left a destination for its error or expiry destination, by reason.",
    ),
    Family(
        "messages_removed",
        COUNTER,
        (*PLACE, "cause"),
        "Messages that left a destination without being consumed: moved, dropped, removed by "
        "an administrator, or purged with their destination.",
    ),
    Family(
        "projection_rejected_events",
        COUNTER,
        (*MANAGER, "reason"),
        "Operations that the queue manager refused, by reason; the sender got that reason as "
        "an error.",
    ),
    # What there is.
    Family(
        "queue_messages",
        GAUGE,
        (*PLACE, "state"),
        "Messages that a queue or topic holds now, by state.",
    ),
    Family(
        "queue_bytes",
        GAUGE,
        (*PLACE, "state"),
        "Bytes of the messages that a queue or topic holds now, by state.",
    ),
    Family(
        "subscription_messages",
        GAUGE,
        (*SUBSCRIPTION, "state"),
        "Messages that a subscription holds now, by state; subscriptions without a name are "
        "summed.",
    ),
    Family(
        "subscription_bytes",
        GAUGE,
        (*SUBSCRIPTION, "state"),
        "Bytes of the messages that a subscription holds now, by state; subscriptions "
        "without a name are summed.",
    ),
    Family(
        "queue_oldest_message_timestamp_seconds",
        GAUGE,
        PLACE,
        "Unix time at which the oldest message of a queue or topic got its sequence number; "
        "absent if it is empty.",
    ),
    Family(
        "queue_consumers",
        GAUGE,
        PLACE,
        "Open consumers of a queue, or of all subscriptions of a topic.",
    ),
    Family(
        "queue_quota_used_ratio",
        GAUGE,
        PLACE,
        "Share of the quota of messages or bytes that is used, the higher of the two, 1 is "
        "full; absent without a quota.",
    ),
    Family(
        "sequence_last",
        GAUGE,
        PLACE,
        "Sequence number that a queue or topic gave last; absent before its first message.",
    ),
    Family(
        "transactions_open",
        GAUGE,
        MANAGER,
        "Open units of work that hold a put or get.",
    ),
    Family(
        "transaction_oldest_timestamp_seconds",
        GAUGE,
        MANAGER,
        "Unix time at which the oldest open unit of work began; absent if none is open.",
    ),
    Family(
        "sessions_open",
        GAUGE,
        MANAGER,
        "Open sessions of applications and of commands.",
    ),
    Family(
        "puts_blocked",
        GAUGE,
        MANAGER,
        "Puts that wait because a queue, a topic or the queue manager is full.",
    ),
    # How far the fold is.
    Family(
        "queue_manager_stopped",
        GAUGE,
        (*MANAGER, "code"),
        "1 while the worker cannot go on with the queue manager, and clients wait; code is that "
        "of the error in the worker's log. Absent otherwise.",
    ),
    Family(
        "projection_caught_up",
        GAUGE,
        MANAGER,
        "1 once the worker has folded all that was on the log when it took over the queue "
        "manager; 0 before, while clients wait.",
    ),
    Family(
        "projection_lag_records",
        GAUGE,
        MANAGER,
        "Operations on the log that the worker has not folded yet.",
    ),
    Family(
        "projection_lag_seconds",
        GAUGE,
        MANAGER,
        "How long the first operation that is not folded yet has been on the log; 0 if there "
        "is none.",
    ),
    Family(
        "projection_position",
        GAUGE,
        MANAGER,
        "Log position that was folded last.",
    ),
    Family(
        "projection_position_timestamp_seconds",
        GAUGE,
        MANAGER,
        "Unix time at which the operation that was folded last was appended to the log; "
        "absent before the first.",
    ),
    Family(
        "log_time_ahead_seconds",
        GAUGE,
        MANAGER,
        "How far the time of the log, which never goes back, is ahead of Kafka's clock; "
        "above 0 after that clock was set back.",
    ),
    Family(
        "operations_folded",
        COUNTER,
        MANAGER,
        "Operations that the worker has folded, including those that it folded to catch up.",
    ),
    Family(
        "outcome_latency_seconds",
        HISTOGRAM,
        MANAGER,
        "Time from the append of an operation to the append of its outcome, both as Kafka "
        "stamped them.",
    ),
    Family(
        "outcomes_written",
        COUNTER,
        MANAGER,
        "Outcomes that the worker has written to the lanes, including those that it wrote to "
        "catch up.",
    ),
    Family(
        "outcomes_unacknowledged_bytes",
        GAUGE,
        (),
        "Bytes of outcomes, of all queue managers of the worker, that it has sent to Kafka "
        "and Kafka has not acknowledged.",
    ),
    Family(
        "bodies_read_back",
        COUNTER,
        MANAGER,
        "Message bodies that were delivered and no longer in the worker's memory, so that "
        "they were read from the log.",
    ),
    Family(
        "questions_answered",
        COUNTER,
        MANAGER,
        "Questions about the live state that the worker has answered, from commands and "
        "administration.",
    ),
    Family(
        "worker_entries",
        COUNTER,
        MANAGER,
        "Entries that the worker itself wrote on the log: that time has gone on, or that a "
        "connection has fallen silent.",
    ),
    # Checkpoints.
    Family(
        "checkpoint_position",
        GAUGE,
        MANAGER,
        "Log position of the newest checkpoint; absent if there is none.",
    ),
    Family(
        "checkpoint_age_seconds",
        GAUGE,
        MANAGER,
        "Time since the newest checkpoint was written or loaded; if neither, since the "
        "worker took over.",
    ),
    Family(
        "checkpoint_written_bytes",
        GAUGE,
        MANAGER,
        "Bytes that the last checkpoint wrote, which is what had changed since the one "
        "before; absent before the first.",
    ),
    Family(
        "checkpoint_duration_seconds",
        GAUGE,
        MANAGER,
        "How long the last checkpoint took until Kafka had stored it; absent before the first.",
    ),
    Family(
        "build_info",
        GAUGE,
        ("version", "worker"),
        "Always 1; the labels are the version of LedgerMQ and the name of the worker.",
    ),
)
