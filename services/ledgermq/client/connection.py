"""Connections: the way from an application to one queue manager.

It has one producer to the log, one reader of its outcome lane and one thread of heartbeats, for any
number of sessions. Any number of threads may use it. It does not survive a fork: the child connects
anew.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from typing import Unpack

from ledgermq.client.admin.admin import Admin
from ledgermq.client.argument_types import typed
from ledgermq.client.arguments import check_callback
from ledgermq.client.closing import Closing
from ledgermq.client.engine.engine import Engine
from ledgermq.client.engine.work import Work
from ledgermq.client.link.route import Route, kafka_route
from ledgermq.client.options import BrowserOptions, ConnectOptions, SessionOptions
from ledgermq.client.problems import ExceptionListener
from ledgermq.client.receiving.browser import Browser
from ledgermq.client.running_connection import Running
from ledgermq.client.session import Session
from ledgermq.client.settings import ConnectionSettings, settings_from


@typed
class Connection(Closing):
    """Made by `connect`; closes itself and its sessions at the end of a `with` block.

    Any number of threads may use it, with a session for each. In the child of a fork every call
    raises IllegalStateError: connect again there. One that is dropped, with all that was made of
    it, warns (ResourceWarning) and is closed soon; message listeners keep it.
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        route: Callable[[ConnectionSettings, float], Route] = kafka_route,
    ) -> None:
        self._running = Running(settings, route)

    @property
    def queue_manager(self) -> str:
        """Name of the queue manager."""
        return self._running.settings.queue_manager

    @property
    def identity(self) -> str:
        """This connection's identity: 32 hexadecimal digits."""
        return self._running.settings.identity.hex()

    @property
    def admin(self) -> Admin:
        """Administration of the queue manager.

        Raises:
            ConnectionClosedError: the connection is closed, or cannot go on.
        """
        self._running.check_usable()
        return Admin(self._control_session, self._running.questions)

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self._running.closed

    @property
    def exception_listener(self) -> ExceptionListener | None:
        """Who is told of what goes wrong while nobody calls, if there is one."""
        return self._running.problems.listener

    def set_exception_listener(self, listener: ExceptionListener | None) -> None:
        """Has a function called with what goes wrong while nobody calls; None ends that.

        It is given the error that the next call of the session, or of the connection, raises:
        SessionLostError for a session that was lost or ended by administration,
        ConnectionClosedError for a connection that cannot go on, and what ended the message
        listeners of a session. All of these are logged as well.

        It is called in a thread of its own, once for each error, and may close the connection and
        connect again: no close waits for it (SES-23).

        Raises:
            IllegalStateError: a coroutine function, or one with a yield.
            ConnectionClosedError: the connection is closed, or cannot go on: it would not be told.
        """
        if listener is not None:
            self._running.check_usable()
            check_callback(listener)
        self._running.problems.listener = listener

    def session(self, **options: Unpack[SessionOptions]) -> Session:
        """Opens a session, for one thread at a time (SES-01).

        A unit of work that breaks a time limit is rolled back: send and receive raise
        TransactionRolledBackError until `rollback()`, commit raises it once.

        Args:
            ack: How the session settles what it gets, also as text: "CLIENT"; see `AckMode`.
            transacted: True is `ack=AckMode.TRANSACTED`, whichever mode `ack` names (SES-09).
            redelivery_delay_ms: How long what goes back waits before it is delivered again, where
                consumer or destination do not say; None: as the connection has it (INF-09).
            unit_of_work_time_limit_ms: How long a unit of work may be open. 0: no limit but the
                queue manager's; of the two the shorter one holds.
            unit_of_work_idle_limit_ms: How long it may be open without a put or get; 0 likewise.

        Raises:
            WorkerUnavailableError: no worker answered within the time-out.
            ConnectionClosedError: the connection is closed, or cannot go on.
            IllegalStateError: `ack` is no mode, or the delay or a limit is out of range.
        """
        return Session(self.open_work(**options))

    def open_work(self, **options: Unpack[SessionOptions]) -> Work:
        """Opens a session, for threads or coroutines; see `session`."""
        return self._running.open_work(weakref.ref(self), **options)

    def browser(self, destination: str, **options: Unpack[BrowserOptions]) -> Browser:
        """Looks at the available messages of a queue without getting them (SES-40).

        Takes and raises what `Session.browser` does, but belongs to no session: it works until it
        or the connection is closed, and then raises ConnectionClosedError.
        """
        self._running.check_usable()
        return Browser(self._running.questions, destination, owner=self, **options)

    def close(self, *, timeout: float | None = None) -> None:
        """Closes its sessions, then itself; closing twice does nothing. From any thread.

        Listeners that are running have its sessions until they return; none begins with another
        message (SES-21).

        By a signal handler, as `Session.close`.

        Args:
            timeout: Seconds for all of it together; None: the connection's time-out.

        Raises:
            OutcomeUnknownError: a session's end was not confirmed within the time-out; it ends by
                itself when the queue manager hears no more of it.
            LedgerMQError: the first error of closing a session.
            IllegalStateError: called by a listener or a completion callback of its own (SES-19,
                SES-22); nothing was closed.
        """
        self._running.close(timeout)

    def _control_session(self) -> Engine:
        return self._running.control_session()

    def __del__(self) -> None:
        # It may have been refused before there was any, and a child of a fork has none.
        running = getattr(self, "_running", None)
        if running is not None and not running.closed and not running.forked:
            text = f"{self!r} was dropped without close()"
            warnings.warn(text, ResourceWarning, stacklevel=2, source=self)
            running.leave()

    def __repr__(self) -> str:
        state = "closed" if self._running.closed else "open"
        return f"Connection({self.queue_manager} at {self._running.settings.bootstrap}, {state})"


@typed
def connect(
    address: str = "kafka://localhost:9092", **settings: Unpack[ConnectOptions]
) -> Connection:
    """Connects to a queue manager: `kafka://HOST:PORT[,HOST:PORT...][/QUEUE-MANAGER]`, else QM1.

    Args:
        address: Brokers and queue manager.
        client_id: The client whose durable subscriptions these are; only one connection at a time
            has it.
        takeover: A secret of this client. Started again with the same one, it ends a connection
            that still has its client id; without, it is refused until that one has ended.
        application: A name of your own for logs of the broker.
        timeout: How many seconds (30) connecting may take, and a call waits for its outcome unless
            it says otherwise.
        suspect_timeout_seconds: After how much silence (15 s; 1 to 45) the queue manager suspects
            this connection, and how long its sessions then have to show themselves before they end
            and what they hold goes to others. After that much silence they ask before they hand
            over what was fetched ahead.
        send_timeout_seconds: How long (10 s) a send may wait for room where a quota is used up,
            before it fails with QuotaExceededError (INF-03, INF-20); at most up to a second before
            the call's own time-out. 0: it fails at once.
        topic_prefix: First part of the log topics' names; None: `ledgermq`.
        schema_registry: Address of a Confluent-compatible schema registry,
            `http[s]://[USER:PASSWORD@]HOST:PORT[/PATH]`: what is written is framed for the tools of
            Kafka. None: LEDGERMQ_SCHEMA_REGISTRY of the environment; empty: none.
        put_messages_max: Up to how many messages (250; 1 to 10,000) one operation gathers in
            transacted and asynchronous sends.
        allow_pickle: Reads object messages that were sent as pickles. Reading one runs code that
            its sender chose: for queues whose every sender is trusted. Warns (PickleWarning).
        redelivery_delay_ms: How long what its sessions roll back or recover waits before it is
            delivered again, where session, consumer or destination do not say (INF-09).
        kafka: Options of Kafka's clients by librdkafka's names, such as `security.protocol`; on top
            of LEDGERMQ_KAFKA_CONFIG and LEDGERMQ_KAFKA_<NAME> in the environment.
        redelivery_limit: How often what it sends is redelivered at most, before that goes to the
            error destination or is dropped, where producer or destination do not say (INF-16);
            -1: no limit.

    Raises:
        AddressError: address or settings cannot be used.
        AuthenticationFailedError: Kafka and this client do not trust each other.
        AccessDeniedError: Kafka does not let this client do what it must; the text says what.
        BrokerUnavailableError: no Kafka broker answers within the time-out.
        LogError: the log topics are missing or not as they should be.
        QueueManagerNotFoundError: the registry has no queue manager of this name.
        SchemaRegistryError: a schema registry was named and does not answer, or refuses a schema.
        InvalidClientIDError: another connection has the client id; or the text is none, and then
            the error is not `retryable`.
        WorkerUnavailableError: no worker of the queue manager answers within the time-out.
    """
    return Connection(settings_from(address, **settings))
