"""Sessions: where an application sends, gets, acknowledges, commits and rolls back.

For one thread at a time; only `close` may come from another, and makes a `receive` that waits
return None. A connection may have many sessions, each in a thread of its own.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from functools import partial
from typing import Any, Unpack

from ledgermq.client.argument_types import typed
from ledgermq.client.closing import Again, Closing
from ledgermq.client.engine.steps import taken
from ledgermq.client.engine.work import OfSession, Work
from ledgermq.client.messages.message import Message
from ledgermq.client.messages.message_kinds import Sendable
from ledgermq.client.options import BrowserOptions, ConsumerOptions, ProducerOptions
from ledgermq.client.receiving.browser import Browser
from ledgermq.client.receiving.consumer import Consumer
from ledgermq.client.receiving.requesting import Requestor, answer_to, check_for_requests
from ledgermq.client.sending.producer import Producer
from ledgermq.client.sending.receipts import CommitReceipt, ReceiptFuture, SendReceipt
from ledgermq.errors import LedgerMQError, OutOfTurnError, TransactionTooLargeError

LOGGER = logging.getLogger("ledgermq.client")


@typed
class Session(OfSession, Closing):
    """Made by `connection.session(...)`; closes itself at the end of a `with` block.

    It is for one thread at a time (SES-01), of which only `close` is free; with a message listener
    it belongs to the thread of its listeners (SES-02). A call while another thread is inside raises
    IllegalStateError, and so does any call or property but `close` and `is_closed` once it is
    closed (SES-25). Once the queue manager has ended it, calls raise SessionLostError. Where an
    operation was refused that nobody waited for, the next call raises that error.
    """

    def __init__(self, work: Work) -> None:
        self._work = self._shared = work
        self._owner = work.owner()
        self._engine = work.engine

    def producer(self, destination: str | None, **options: Unpack[ProducerOptions]) -> Producer:
        """A sender to one destination; writes nothing by itself.

        The options hold for messages that do not say otherwise. Those of them that are out of range
        are refused by the send.

        Args:
            destination: As `queue:NAME` or `topic:NAME`; None: each send names its own (SES-34).
            priority: 0 (lowest) to 9.
            persistent: Delivery mode, which is carried; both modes are as durable.
            time_to_live: Seconds from the send until a message expires; 0: never (SES-66).
            delivery_delay: Seconds from the send before which it is not delivered (INF-01); 0:
                none.
            redelivery_limit: How often its messages are redelivered at most, where the destination
                does not say (INF-16); -1: no limit, None: as the connection has it.

        Raises:
            InvalidDestinationError: the text is no destination.
            IllegalStateError: the redelivery limit is out of range.
        """
        return Producer(self._work, destination, **options)

    def consumer(self, destination: str, **options: Unpack[ConsumerOptions]) -> Consumer:
        """A receiver from one destination, as `queue:NAME` or `topic:NAME`.

        Args:
            destination: A queue, or a topic, of which it gets what is published from now on.
            selector: Which messages it gets, as `region = 'EU' AND amount > 100`; None or blank:
                all (SES-36).
            no_local: Topics: not what its own connection, or one of its client id, publishes
                (SES-37, SES-53).
            subscription: Topics, with durable or shared: its name. The same one, topic, selector
                and no_local join what stands; other ones make it anew if nobody uses it, and what
                it held is gone (SES-50, SES-51, SES-57, SES-58). Selectors are the same if their
                texts are, blanks among them.
            durable: It keeps what is published while nobody is here, until `unsubscribe`.
                Unshared it needs the connection's client id (SES-45, SES-47).
            shared: Its consumers share the messages, each goes to one of them (SES-42, SES-56).
            prefetch: Up to how many messages (200) are on their way or waiting here, which other
                consumers cannot have. 1: the next one is asked for when `receive` is called. 0:
                that request is withdrawn when the call runs out of time, so that consumers get
                messages strictly in the order of their calls; every time-out then costs an
                operation. None: 200.
            order: `Order.LOGICAL` brings groups together, each in its order (GRP-03, GRP-06).
            all_messages_available: Nothing of a group before all of it is there (GRP-20).
            all_segments_available: Nothing of a message in segments before all of it is there.
            complete_message: A message in segments comes as one, settled as one (GRP-38).
            match: What a message must have, and in logical order what comes next (GRP-44).
            redelivery_delay_ms: How long what goes back from it waits before it is delivered again,
                where the destination does not say; None: as the session has it (INF-09).
            consumer_priority: A message goes to a consumer of the highest priority that asks for
                one; others get what comes while those have as much as they asked for. Any whole
                number of 32 bits.

        Raises:
            QueueNotFoundError, TopicNotFoundError: there is no such destination, and none is
                created on first use.
            InvalidDestinationError: the text is no destination, a queue was given a subscription,
                or a temporary destination has ended or is another connection's (SES-39).
            InvalidSelectorError: the selector cannot be read; the text says where.
            SubscriptionInUseError: it is for one consumer at a time and has one, or would have to
                be made anew (SES-44, SES-49, SES-52, SES-59).
            SubscriptionDiffersError: a durable one of this name is shared and this is not, or the
                other way round (SES-60).
            InvalidSubscriptionError: a name without `durable` or `shared`, one of them without a
                name, or a name that is none.
            ClientIDMissingError: a durable unshared one without a client id (SES-45).
            IllegalStateError: prefetch, delay or priority is out of range.
            GetOptionsError: options for a topic or out of range, or a logical order that an
                INDIVIDUAL session cannot keep.
            OutcomeUnknownError: no outcome within the time-out.
        """
        return Consumer(self._work, destination, **options)

    def browser(self, destination: str, **options: Unpack[BrowserOptions]) -> Browser:
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
        return Browser(
            self._work.services.questions, destination, self._engine, owner=self, **options
        )

    unsubscribe = taken(Work.unsubscribe)
    temporary_queue = taken(Work.temporary_queue)
    temporary_topic = taken(Work.temporary_topic)
    delete_temporary = taken(Work.delete_temporary)

    def requestor(self, destination: str) -> Requestor:
        """Sends requests to a destination and gets their replies; see `Requestor`.

        Raises:
            IllegalStateError: the session is transacted: a request would wait for its commit.
        """
        check_for_requests(self.transacted)
        producer = self.producer(destination)
        reply_to = self.temporary_queue()
        return Requestor(producer, self.consumer(reply_to), self._work)

    def reply(self, request: Message, body: Sendable, **fields: Any) -> SendReceipt:
        """Answers a request, at its `reply_to`.

        The reply has the request's correlation id, or if it has none its message id, as its
        correlation id. `fields` are options of `Producer.send`. In a transacted session the reply
        is sent with the commit.

        Raises:
            IllegalStateError: the request has no `reply_to`.
            InvalidDestinationError: the asker is gone, and its temporary queue with it.
            LedgerMQError: what `Producer.send` raises.
        """
        return self.producer(answer_to(request, fields)).send(body, **fields)

    acknowledge = taken(Work.acknowledge)
    recover = taken(Work.recover)

    def commit(self, *, timeout: float | None = None, turn_timeout: float = 0.0) -> CommitReceipt:
        """Puts what was sent, consumes what was handed over since the last commit, as one (SES-12).

        What was sent gets its sequence numbers now (SEQ-04). Waits for the completion callbacks
        that are due (SES-18).

        Args:
            timeout: Seconds to wait for its outcome; None: the connection's time-out.
            turn_timeout: For how many seconds it is asked again while the FIFO mode PROTECTED of a
                queue refuses it, because an older message is not settled (DB-22).

        Raises:
            OutOfTurnError: it still is refused; the unit of work is as it was, so commit again, or
                roll back.
            TransactionTooLargeError: a put was refused that was too large for a segment together
                with those before it; commit again without it, or roll back (DB-09). Or more was
                got than one commit can name: roll back.
            TransactionRolledBackError: it could not be done, and all of it was undone; or the
                session was lost, or ended by administration (SES-20). What `send` raises in other
                sessions, such as QuotaExceededError, is its `__cause__`.
            DuplicatePutError: a deduplication id was put before; all of it was undone.
            TransactionError: an earlier `commit_async` failed; roll back.
            TransactionInDoubtError: no outcome within the time-out; see its `resolve`.
            IllegalStateError: the session is not transacted (SES-17), or closed, or a completion
                callback of its own calls (SES-19).

        Warns:
            InconsistentUnitOfWorkWarning: others of a group were put outside of one (GRP-43).
        """
        self._engine.callbacks.refuse("commit")
        try:
            return self._engine.run(self._work.commit(timeout=timeout, turn_timeout=turn_timeout))
        finally:
            self._work.await_callbacks(timeout)

    def commit_async(self) -> ReceiptFuture[CommitReceipt]:
        """Writes a commit and returns at once; commits take effect in the order written.

        Its future has the receipt, or raises what `commit` raises, save that the unit of work is
        not undone by itself: after a failure the session must be rolled back. Until then `commit`
        and `commit_async` raise TransactionError, `receive` raises IllegalStateError.

        Raises:
            TransactionError: an earlier one failed; roll back.
            TransactionRolledBackError: the session was lost.
            IllegalStateError: the session is not transacted (SES-17), or closed.
        """
        commitment = self._engine.run(self._work.commits.begin())
        return ReceiptFuture(commitment.outcome, commitment.get, self._engine.callbacks)

    def rollback(self, *, timeout: float | None = None) -> None:
        """Undoes everything sent and everything got since the last commit (SES-13).

        What was handed over goes back to its place with its delivery count raised (INF-08); what
        was prefetched goes back as if it had never been delivered. A commit that is still under way
        is waited for first. `timeout` is in seconds, for each wait; None: the connection's.

        Raises:
            IllegalStateError: the session is not transacted (SES-17), or closed, or a completion
                callback of its own calls (SES-19).
            OutcomeUnknownError: no outcome within the time-out.
        """
        self._engine.callbacks.refuse("rollback")
        self._engine.run(self._work.rollback(timeout=timeout))
        self._work.await_callbacks(timeout)

    def transaction(self, *, turn_timeout: float = 0.0) -> Again[Session]:
        """A unit of work as a block: commits at its end, rolls back when it raises (SES-11).

        A commit that is out of turn for longer than `turn_timeout` seconds is rolled back too, as
        is one that lacks a put which was too large.

        Raises:
            IllegalStateError: the session is not transacted, something was sent or handed over in
                its unit of work already, or it is in such a block: blocks do not nest.
            LedgerMQError: what `commit` raises.
        """
        return Again(partial(self._transaction, turn_timeout))

    @contextlib.contextmanager
    def _transaction(self, turn_timeout: float) -> Iterator[Session]:
        with self._work.commits.block():
            try:
                yield self
            except BaseException:
                try:
                    self.rollback()
                except LedgerMQError as error:
                    LOGGER.warning("the rollback after an exception did not work: %s", error)
                raise
            self._commit_or_undo(turn_timeout)

    def _commit_or_undo(self, turn_timeout: float = 0.0) -> None:
        """Commits; what would leave the unit of work open rolls it back."""
        try:
            self.commit(turn_timeout=turn_timeout)
        except (OutOfTurnError, TransactionTooLargeError):
            self.rollback()
            raise

    flush = taken(Work.flush)

    def close(self, *, timeout: float | None = None) -> None:
        """Ends the session: what was sent asynchronously arrives, an open unit of work is undone.

        What was handed over and not settled goes back (SES-24). Closing twice does nothing
        (SES-26). May be called from any thread; a `receive` that waits then returns None. It waits
        for a listener that is being called (SES-21), which can use the session until it returns,
        and for each outcome up to `timeout` seconds; None: the connection's time-out.

        A signal handler may call it too. Where that interrupts a call of the session, which has
        to end before, it returns at once, and a thread goes on with closing.

        Raises:
            OutcomeUnknownError: no outcome within the time-out.
            SessionLostError: AUTO: the session was lost before its last acknowledgements counted.
            IllegalStateError: called by one of its own listeners or completion callbacks (SES-19,
                SES-22).
        """
        self._work.end(timeout)
