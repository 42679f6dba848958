"""The metrics of a worker: names, kinds, labels and meanings, as docs/monitoring.md has them."""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

MANAGER: Final = ("queue_manager",)
DESTINATION: Final = (*MANAGER, "destination")
SUBSCRIPTION: Final = (*DESTINATION, "subscription", "client_id")


class Family(NamedTuple):
    """`name` has no `_total`; the library adds that to counters."""

    kind: str
    name: str
    labels: tuple[str, ...]
    meaning: str


_counter = partial(Family, "counter")
_gauge = partial(Family, "gauge")
_histogram = partial(Family, "histogram")


FAMILIES: Final = (
    # What happened to messages.
    _counter(
        "messages_put",
        DESTINATION,
        "Messages put into a queue or topic, in units of work too (before their commit), and "
        "messages moved there.",
    ),
    _counter(
        "messages_committed",
        DESTINATION,
        "Messages that got their sequence number: when put, or when their unit of work was "
        "committed.",
    ),
    _counter(
        "messages_delivered",
        (*DESTINATION, "redelivered"),
        "Messages delivered to consumers. redelivered is true if an application may have "
        "seen the message before.",
    ),
    _counter(
        "messages_acknowledged",
        DESTINATION,
        "Messages consumed for good: acknowledged, or got in a unit of work that was committed.",
    ),
    _counter(
        "messages_rolled_back",
        (*DESTINATION, "kind"),
        "Messages of units of work that were rolled back. kind put: the put vanished; get: "
        "the message went back to its queue, also alone: put back, or not handed over.",
    ),
    _counter(
        "messages_returned",
        DESTINATION,
        "Messages that went back to their queue unacknowledged, from no unit of work: recovered, "
        "put back by themselves, or their consumer or session ended.",
    ),
    _counter(
        "messages_expired",
        DESTINATION,
        "Messages whose time to live was over before they were consumed.",
    ),
    _counter(
        "messages_dead_lettered",
        (*DESTINATION, "reason"),
        "Messages that left a destination for its error or expiry destination, by reason.",
    ),
    _counter(
        "messages_removed",
        (*DESTINATION, "cause"),
        "Messages that left a destination without being consumed: moved, dropped, removed by "
        "an administrator, or purged with their destination.",
    ),
    _counter(
        "projection_rejected_events",
        (*MANAGER, "reason"),
        "Operations that the queue manager refused, by reason; the sender got that reason as "
        "an error.",
    ),
    # What there is.
    _gauge(
        "queue_messages",
        (*DESTINATION, "state"),
        "Messages that a queue or topic holds now, by state.",
    ),
    _gauge(
        "queue_bytes",
        (*DESTINATION, "state"),
        "Bytes of the messages that a queue or topic holds now, by state.",
    ),
    _gauge(
        "subscription_messages",
        (*SUBSCRIPTION, "state"),
        "Messages that a subscription holds now, by state; subscriptions without a name are "
        "summed.",
    ),
    _gauge(
        "subscription_bytes",
        (*SUBSCRIPTION, "state"),
        "Bytes of the messages that a subscription holds now, by state; subscriptions "
        "without a name are summed.",
    ),
    _gauge(
        "queue_oldest_message_timestamp_seconds",
        DESTINATION,
        "Unix time at which the oldest message of a queue or topic got its sequence number; "
        "absent if it is empty.",
    ),
    _gauge(
        "queue_consumers",
        DESTINATION,
        "Open consumers of a queue, or of all subscriptions of a topic.",
    ),
    _gauge(
        "queue_quota_used_ratio",
        DESTINATION,
        "Share of the quota of messages or bytes that is used, the higher of the two, 1 is "
        "full; absent without a quota.",
    ),
    _gauge(
        "sequence_last",
        DESTINATION,
        "Sequence number that a queue or topic gave last; absent before its first message.",
    ),
    _gauge("transactions_open", MANAGER, "Open units of work that hold a put or get."),
    _gauge(
        "transaction_oldest_timestamp_seconds",
        MANAGER,
        "Unix time at which the oldest open unit of work began; absent if none is open.",
    ),
    _gauge("sessions_open", MANAGER, "Open sessions of applications and of commands."),
    _gauge(
        "puts_blocked",
        MANAGER,
        "Puts that wait because a queue, a topic or the queue manager is full.",
    ),
    # How far the fold is.
    _gauge(
        "queue_manager_stopped",
        (*MANAGER, "code"),
        "1 while the worker cannot go on with the queue manager, and clients wait; code is that "
        "of the error in the worker's log. Absent otherwise.",
    ),
    _gauge(
        "projection_caught_up",
        MANAGER,
        "1 once the worker has folded all that was on the log when it took over the queue "
        "manager; 0 before, while clients wait.",
    ),
    _gauge(
        "projection_lag_records",
        MANAGER,
        "Operations on the log that the worker has not folded yet.",
    ),
    _gauge(
        "projection_lag_seconds",
        MANAGER,
        "How long the first operation that is not folded yet has been on the log; 0 if there "
        "is none.",
    ),
    _gauge("projection_position", MANAGER, "Log position that was folded last."),
    _gauge(
        "projection_position_timestamp_seconds",
        MANAGER,
        "Unix time at which the operation that was folded last was appended to the log; "
        "absent before the first.",
    ),
    _gauge(
        "log_time_ahead_seconds",
        MANAGER,
        "How far the time of the log, which never goes back, is ahead of Kafka's clock; "
        "above 0 after that clock was set back.",
    ),
    _counter(
        "operations_folded",
        MANAGER,
        "Operations that the worker has folded, including those that it folded to catch up.",
    ),
    _histogram(
        "outcome_latency_seconds",
        MANAGER,
        "Time from the append of an operation to the append of its outcome, both as Kafka "
        "stamped them.",
    ),
    _counter(
        "outcomes_written",
        MANAGER,
        "Outcomes that the worker has written to the lanes, including those that it wrote to "
        "catch up.",
    ),
    _gauge(
        "outcomes_unacknowledged_bytes",
        (),
        "Bytes of outcomes, of all queue managers of the worker, that it has sent to Kafka "
        "and Kafka has not acknowledged.",
    ),
    _counter(
        "bodies_read_back",
        MANAGER,
        "Message bodies that were delivered and no longer in the worker's memory, so that "
        "they were read from the log.",
    ),
    _counter(
        "questions_answered",
        MANAGER,
        "Questions about the live state that the worker has answered, from commands and "
        "administration.",
    ),
    _counter(
        "worker_entries",
        MANAGER,
        "Entries that the worker itself wrote on the log: that time has gone on, or that a "
        "connection has fallen silent.",
    ),
    # Checkpoints.
    _gauge(
        "checkpoint_position",
        MANAGER,
        "Log position of the newest checkpoint; absent if there is none.",
    ),
    _gauge(
        "checkpoint_age_seconds",
        MANAGER,
        "Time since the newest checkpoint was written or loaded; if neither, since the "
        "worker took over.",
    ),
    _gauge(
        "checkpoint_written_bytes",
        MANAGER,
        "Bytes that the last checkpoint wrote, which is what had changed since the one "
        "before; absent before the first.",
    ),
    _gauge(
        "checkpoint_duration_seconds",
        MANAGER,
        "How long the last checkpoint took until Kafka had stored it; absent before the first.",
    ),
    _gauge(
        "build_info",
        ("version", "worker"),
        "Always 1; the labels are the version of LedgerMQ and the name of the worker.",
    ),
)
