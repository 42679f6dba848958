"""Where an application begins: `connect`."""

from __future__ import annotations

from ledgermq.client.argument_types import typed
from ledgermq.client.connection import Connection
from ledgermq.client.settings import SEND_TIMEOUT_SECONDS_DEFAULT, settings_from
from ledgermq.errors import IllegalStateError
from ledgermq.protocol.limits import PUT_MESSAGES_MAX


@typed
def connect(
    address: str = "kafka://localhost:9092",
    *,
    client_id: str | None = None,
    takeover: str | None = None,
    application: str | None = None,
    timeout: float = 30.0,
    suspect_timeout_seconds: float = 15.0,
    send_timeout_seconds: float = SEND_TIMEOUT_SECONDS_DEFAULT,
    topic_prefix: str | None = None,
    put_messages_max: int = 250,
    allow_pickle: bool = False,
    redelivery_delay_ms: int = 0,
    redelivery_limit: int = -1,
) -> Connection:
    """Connects to a queue manager: `kafka://HOST:PORT[,HOST:PORT...][/QUEUE-MANAGER]`, else QM1.

    Args:
        address: Brokers and queue manager.
        client_id: The client whose durable subscriptions these are; only one connection at a time
            has it.
        takeover: A secret of this client. Started again with the same one, it ends a connection
            that still has its client id; without, it is refused until that one has ended.
        application: A name of your own for logs of the broker.
        timeout: How many seconds a call waits for its outcome unless it says otherwise.
        suspect_timeout_seconds: After how much silence (1 to 45 s) the queue manager suspects this
            connection, and how long its sessions then have to show themselves before they end and
            what they hold goes to others.
        send_timeout_seconds: How long a send may wait for room where a quota is used up, before it
            fails with QuotaExceededError (INF-03, INF-20); at most up to a second before the call's
            own time-out. 0: it fails at once.
        topic_prefix: First part of the log topics' names; `ledgermq` unless told otherwise.
        put_messages_max: Up to how many messages one operation gathers in transacted and
            asynchronous sends.
        allow_pickle: Reads object messages that were sent as pickles. Reading one runs code that
            its sender chose: for queues whose every sender is trusted. Warns (PickleWarning).
        redelivery_delay_ms: How long what its sessions roll back or recover waits before it is
            delivered again, where session, consumer or destination do not say (INF-09).
        redelivery_limit: How often what it sends is redelivered at most, before that goes to the
            error destination or is dropped, where producer or destination do not say (INF-16);
            -1: no limit.

    Raises:
        BrokerUnavailableError: no Kafka broker answers within the time-out.
        LogError: the log topics are missing or not as they should be.
        QueueManagerNotFoundError: the registry has no queue manager of this name.
        InvalidClientIDError: another connection has the client id.
        WorkerUnavailableError: no worker of the queue manager answers within the time-out.
    """
    settings = settings_from(
        address,
        client_id=client_id,
        takeover=takeover,
        application=application,
        timeout_seconds=timeout,
        suspect_timeout_seconds=suspect_timeout_seconds,
        send_timeout_seconds=send_timeout_seconds,
        topic_prefix=topic_prefix,
        allow_pickle=allow_pickle,
        redelivery_delay_ms=redelivery_delay_ms,
        redelivery_limit=redelivery_limit,
    )
    if not 1 <= put_messages_max <= PUT_MESSAGES_MAX:
        raise IllegalStateError(
            f"put_messages_max is {put_messages_max}, must be 1 to {PUT_MESSAGES_MAX:,}"
        )
    return Connection(settings, put_messages_max)
