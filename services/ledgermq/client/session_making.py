"""What a session makes: producers, consumers, browsers, temporary destinations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from ledgermq.client.argument_types import typed
from ledgermq.client.destinations import is_topic
from ledgermq.client.getting import GetMatch, Getting, Order
from ledgermq.client.settings import checked_delay_ms
from ledgermq.errors import IllegalStateError
from ledgermq.protocol.operations import (
    CreateTemporary,
    DeleteQueue,
    DeleteTopic,
    SessionOperation,
    Unsubscribe,
)

if TYPE_CHECKING:
    from ledgermq.client.browser import Browser
    from ledgermq.client.consumer import Consumer
    from ledgermq.client.message import Message
    from ledgermq.client.message_kinds import Sendable
    from ledgermq.client.producer import Producer
    from ledgermq.client.receipts import SendReceipt
    from ledgermq.client.requesting import Requestor
    from ledgermq.client.session import Session
    from ledgermq.client.session_core import SessionCore

__all__ = ["SessionMaking"]


@typed
class SessionMaking:
    """The part of `Session` that makes things."""

    _core: SessionCore
    _browse: Callable[..., Browser]
    _name_temporary: Callable[[str], str]

    def producer(
        self,
        destination: str | None,
        *,
        priority: int = 4,
        persistent: bool = True,
        time_to_live: float = 0,
        delivery_delay: float = 0,
        redelivery_limit: int | None = None,
    ) -> Producer:
        """A sender to one destination; with None, each send names its own.

        The rest holds for messages that do not say otherwise: priority 0 to 9, delivery mode,
        seconds until a message expires and before which it is not delivered (0: none).
        `redelivery_limit` is how often they are redelivered at most, where the destination does
        not say (INF-16); -1: no limit, None: as the connection has it.

        Raises:
            InvalidDestinationError: the text is no destination.
            IllegalStateError: the limit is out of range.
        """
        from ledgermq.client.producer import Producer

        return Producer(
            cast("Session", self),
            destination,
            priority=priority,
            persistent=persistent,
            time_to_live=time_to_live,
            delivery_delay=delivery_delay,
            redelivery_limit=redelivery_limit,
        )

    def consumer(
        self,
        destination: str,
        *,
        selector: str | None = None,
        no_local: bool = False,
        subscription: str | None = None,
        durable: bool = False,
        shared: bool = False,
        prefetch: int | None = None,
        order: Order | str = Order.PHYSICAL,
        all_messages_available: bool = False,
        all_segments_available: bool = False,
        complete_message: bool = False,
        match: GetMatch | None = None,
        redelivery_delay_ms: int | None = None,
    ) -> Consumer:
        """A receiver from one destination, as `queue:NAME` or `topic:NAME`.

        Args:
            destination: A queue, or a topic, of which it gets what is published from now on.
            selector: Which messages it gets, as `region = 'EU' AND amount > 100`; None or blank:
                all (SES-36).
            no_local: Topics: not what its own connection, or one of its client id, publishes.
            subscription: Topics, with durable or shared: its name. The same one, topic, selector
                and no_local join what stands; other ones make it anew if nobody uses it, and what
                it held is gone (SES-50, SES-51, SES-57, SES-58).
            durable: It keeps what is published while nobody is here, until `unsubscribe`.
                Unshared it needs the connection's client id (SES-45, SES-47).
            shared: Its consumers share the messages, each goes to one of them (SES-42, SES-56).
            prefetch: Up to how many messages (200) are on their way or waiting here, which other
                consumers cannot have. 1: the next one is asked for when `receive` is called. 0:
                and no longer once that ran out of time, so that consumers get messages strictly in
                the order of their calls; every time-out then costs an operation.
            order: `Order.LOGICAL` brings groups together, each in its order (GRP-03, GRP-06).
            all_messages_available: Nothing of a group before all of it is there (GRP-20).
            all_segments_available: Nothing of a message in segments before all of it is there.
            complete_message: A message in segments comes as one, settled as one (GRP-38).
            match: What a message must have, and in logical order what comes next (GRP-44).
            redelivery_delay_ms: How long what goes back from it waits before it is delivered again,
                where the destination does not say; None: as the session has it (INF-09).

        Raises:
            QueueNotFoundError: there is no such queue and queues are not created on first use.
            InvalidDestinationError: no destination, or a temporary one, ended or of another.
            InvalidSelectorError: the selector cannot be read; the text says where.
            SubscriptionInUseError: it is for one consumer at a time and has one, or would have to
                be made anew (SES-44, SES-49, SES-52, SES-59).
            IllegalStateError: a durable unshared subscription without a client id (SES-45), or a
                delay out of range.
            GetOptionsError: options for a topic or out of range, or a logical order that an
                INDIVIDUAL session cannot keep.
        """
        from ledgermq.client.consumer import Consumer, Source

        source = Source(
            selector=selector or "",
            no_local=no_local,
            subscription=subscription or "",
            durable=durable,
            shared=shared,
            redelivery_delay_ms=checked_delay_ms(redelivery_delay_ms, -1),
        )
        getting = Getting(
            order, all_messages_available, all_segments_available, complete_message, match
        )
        return Consumer(cast("Session", self), destination, source, prefetch, getting)

    def unsubscribe(self, subscription: str) -> None:
        """Ends a durable subscription of the connection's client id, with what it holds (SES-62).

        Raises:
            SubscriptionInUseError: it has a consumer, or messages that are not settled (SES-63).
            InvalidDestinationError: there is none of that name (SES-64).
        """
        self._administer(Unsubscribe, target=subscription, subscription=subscription)

    def browser(
        self,
        destination: str,
        *,
        selector: str | None = None,
        order: Order | str = Order.PHYSICAL,
        all_messages_available: bool = False,
        all_segments_available: bool = False,
        complete_message: bool = False,
        match: GetMatch | None = None,
    ) -> Browser:
        """Looks at the messages available in a queue without getting them (SES-40).

        The options say which are shown, and in which order, as those of `consumer` do.

        It looks once when it is made, so what is wrong is raised here. It belongs to the session as
        a consumer does: to one thread at a time, and until the session is closed.

        Raises:
            QueueNotFoundError: there is no such queue; a browser makes none.
            InvalidDestinationError: the text is no queue, or the temporary queue was deleted.
            InvalidSelectorError: the selector cannot be read; the text says where.
            GetOptionsError: options out of range.
            WorkerUnavailableError: nobody answered within the time-out.
        """
        getting = Getting(
            order, all_messages_available, all_segments_available, complete_message, match
        )
        self._core.check_open()
        return self._browse(destination, selector, getting, self._core)

    def temporary_queue(self) -> str:
        """Makes a queue that lives as long as the connection (SES-39); its destination.

        Everybody may send to it, only this connection's consumers get from it.
        """
        return self._temporary("queue")

    def temporary_topic(self) -> str:
        """Makes a topic that lives as long as the connection (SES-39); its destination."""
        return self._temporary("topic")

    def _temporary(self, kind: str) -> str:
        destination = self._name_temporary(kind)
        self._administer(CreateTemporary, target=destination, destination=destination)
        return destination

    def delete_temporary(self, destination: str) -> None:
        """Ends a temporary destination before its connection ends, with what it holds.

        Raises:
            DestinationInUseError: it has consumers, or work in flight.
            InvalidDestinationError: it is another connection's, or none.
        """
        name = destination.partition(":")[2]
        if not name.startswith("temporary/"):
            raise IllegalStateError(f"{destination} is no temporary destination")
        if is_topic(destination):
            self._administer(DeleteTopic, target=destination, topic=name, purge=True)
        else:
            self._administer(DeleteQueue, target=destination, queue=name, purge=True)

    def requestor(self, destination: str) -> Requestor:
        """Sends requests to a destination and gets their replies; see `Requestor`.

        Raises:
            IllegalStateError: the session is transacted: a request would wait for its commit.
        """
        from ledgermq.client.requesting import Requestor

        return Requestor(cast("Session", self), destination)

    def reply(self, request: Message, body: Sendable, **fields: Any) -> SendReceipt:
        """Answers a request: to its `reply_to`, with its message id as correlation id.

        Takes what `Producer.send` takes beside.

        Raises:
            IllegalStateError: the request has no `reply_to`.
            InvalidDestinationError: the asker is gone, and its temporary queue with it.
        """
        from ledgermq.client.requesting import answer_to

        return self.producer(answer_to(request, fields)).send(body, **fields)

    def _administer(self, operation: type[SessionOperation], *, target: str, **fields: Any) -> None:
        """Writes an operation and waits until it was applied."""
        core = self._core
        with core.lock:
            core.check_usable_locked()
            core.wait_for_room_locked()
            pending = core.write_locked(operation, target=target, **fields)
            core.await_locked(pending)
