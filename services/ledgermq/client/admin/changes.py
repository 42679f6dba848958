"""Changes by administration: each is an operation on the log."""

from __future__ import annotations

from typing import Any, Literal, Unpack

from ledgermq.client.admin.part import AdminPart, who_asks
from ledgermq.client.admin.queue_settings import (
    ManagerSettings,
    QueueSettings,
    manager_settings_given,
    settings_given,
)
from ledgermq.client.argument_types import typed
from ledgermq.client.destinations import checked_destination, queue_name, topic_name
from ledgermq.errors import IllegalStateError
from ledgermq.errors.shown import shown
from ledgermq.protocol.administration import BackUpJournal
from ledgermq.protocol.operations import (
    AlterQueue,
    AlterQueueManager,
    AlterTopic,
    Bind,
    Correct,
    CreateQueue,
    CreateTopic,
    DeleteQueue,
    DeleteTopic,
    EndSession,
    RollbackTransaction,
    SessionOperation,
    Unbind,
    Unsubscribe,
    Upgrade,
)


@typed
class Changes(AdminPart):
    """Changes of settings, bindings and sessions; each returns the log position of its outcome.

    Each raises OutcomeUnknownError if there is no outcome within the time-out.
    """

    def _on(
        self,
        operation: type[SessionOperation],
        kind: Literal["queue", "topic"],
        name: str,
        settings: QueueSettings | None = None,
        **fields: Any,
    ) -> int:
        name = queue_name(name) if kind == "queue" else topic_name(name)
        about = f"{kind}:{name}"
        fields |= {kind: name, **settings_given(about, **(settings or {}))}
        return self._change(operation, about=about, **fields)

    def create_queue(
        self,
        name: str,
        *,
        group_affinity: bool = False,
        **settings: Unpack[QueueSettings],
    ) -> int:
        """Creates a queue.

        Args:
            name: Its name.
            group_affinity: Whether all messages of a group go to the consumer that was given one
                of them, while that is open. A message's group is its property `JMSXGroupID` if
                that is text, else its group id.
            settings: Any of `ledgermq.QueueSettings`, such as
                `expiry_destination="queue:old"`, or `unacknowledged_max=5` (SES-07).

        Raises:
            DestinationExistsError: there is one of this name.
            InvalidDestinationError: the name is not allowed, or a setting names a destination
                that is none or is not there.
            RefusedError: a setting is out of range.
        """
        return self._on(CreateQueue, "queue", name, settings, group_affinity=group_affinity)

    def alter_queue(
        self,
        name: str,
        *,
        gets_disabled: bool | None = None,
        group_affinity: bool | None = None,
        **settings: Unpack[QueueSettings],
    ) -> int:
        """Changes settings of a queue; None leaves one as it is, 0 takes a limit away.

        Suspended, a queue takes messages and delivers none. What sessions hold beyond a lower
        `unacknowledged_max` stays theirs; they get more when they hold less than that. Turning
        `group_affinity` off frees the groups of the consumers that they went to. `settings` are
        those of `ledgermq.QueueSettings`.

        Raises:
            QueueNotFoundError: there is no such queue.
            InvalidDestinationError: a setting names a destination that is not there.
            RefusedError: a setting is out of range.
        """
        return self._on(
            AlterQueue,
            "queue",
            name,
            settings,
            gets_disabled=gets_disabled,
            group_affinity=group_affinity,
        )

    def suspend_queue(self, name: str) -> int:
        """Stops delivery from a queue; it goes on taking messages. Raises as `alter_queue`."""
        return self.alter_queue(name, gets_disabled=True)

    def resume_queue(self, name: str) -> int:
        """Enables the gets of a queue: it delivers again. Raises as `alter_queue`."""
        return self.alter_queue(name, gets_disabled=False)

    def delete_queue(self, name: str, *, purge: bool = False) -> int:
        """Deletes a queue that nobody uses; with `purge` also when it holds messages.

        Raises:
            QueueNotFoundError: there is no such queue.
            DestinationInUseError: it has consumers, uncommitted puts, deliveries, or messages, or
                settings of another destination name it.
        """
        return self._on(DeleteQueue, "queue", name, purge=purge)

    def create_topic(
        self,
        name: str,
        *,
        moves_unrouted: bool = False,
        **settings: Unpack[QueueSettings],
    ) -> int:
        """Creates a topic.

        With `moves_unrouted` messages that no subscription wants go to the error destination, if
        there is one; otherwise they are dropped. `settings` are those of `ledgermq.QueueSettings`,
        and hold for each of its subscriptions by itself.

        Raises:
            DestinationExistsError: there is one of this name.
            InvalidDestinationError: the name is not allowed, or a setting names a destination
                that is none or is not there.
            RefusedError: a setting is out of range.
        """
        return self._on(CreateTopic, "topic", name, settings, moves_unrouted=moves_unrouted)

    def alter_topic(
        self,
        name: str,
        *,
        moves_unrouted: bool | None = None,
        **settings: Unpack[QueueSettings],
    ) -> int:
        """Changes settings of a topic and of its subscriptions; None leaves one as it is.

        Raises:
            TopicNotFoundError: there is no such topic.
            InvalidDestinationError: a setting names a destination that is not there.
            RefusedError: a setting is out of range.
        """
        return self._on(AlterTopic, "topic", name, settings, moves_unrouted=moves_unrouted)

    def delete_topic(self, name: str, *, purge: bool = False) -> int:
        """Deletes a topic that nobody uses; with `purge` also its durable subscriptions.

        What such subscriptions hold goes with them.

        Raises:
            TopicNotFoundError: there is no such topic.
            DestinationInUseError: it has consumers, uncommitted puts, deliveries, or durable
                subscriptions, or settings of another destination name it.
            TemporaryDestinationForeignError: it is another connection's temporary topic.
        """
        return self._on(DeleteTopic, "topic", name, purge=purge)

    def unsubscribe(self, name: str) -> int:
        """Deletes a durable subscription of this connection's client id, with what it holds.

        A connection without a client id deletes durable subscriptions that were made without one.

        Raises:
            SubscriptionNotFoundError: this client id has no durable subscription of that name.
            SubscriptionInUseError: it has consumers or deliveries in flight (SES-63).
        """
        return self._change(Unsubscribe, subscription=name)

    def bind(self, topics: str, destination: str, *, selector: str = "") -> int:
        """Has topics hand copies of what is put to them on to a queue or topic, from now on.

        Where several bindings would hand a message to the same destination, it is there once.
        What a topic has from elsewhere than by a put, such as by another binding, goes no further.
        A binding that is there already has the new selector.

        Args:
            topics: Name of a topic, or a pattern of names: of its words, which are between dots and
                slashes, `*` is any one, and one `#` any number, as in `orders.*.eu` or `orders.#`.
            destination: Where copies go, as `queue:NAME` or `topic:NAME`; they do beyond quotas.
            selector: Restricts what is handed on (PROTOCOL.md §12); empty: everything.

        Raises:
            InvalidDestinationError: the pattern or the destination is none.
            TemporaryDestinationDeletedError: the destination is not there.
            InvalidSelectorError: the selector is not valid.
            RefusedError: the destination is temporary, or the very topic.
        """
        return self._bound(Bind, topics, destination, selector=selector)

    def unbind(self, topics: str, destination: str) -> int:
        """Ends a binding, named as it was made.

        What it handed on stays where it is.

        Raises:
            BindingNotFoundError: there is no such binding.
        """
        return self._bound(Unbind, topics, destination)

    def _bound(
        self, operation: type[SessionOperation], topics: str, destination: str, **fields: Any
    ) -> int:
        to = checked_destination(destination)
        fields |= {"topics": topics.removeprefix("topic:"), "destination": to}
        return self._change(operation, about=to, **fields)

    def alter_queue_manager(self, **settings: Unpack[ManagerSettings]) -> int:
        """Changes settings of the queue manager; None leaves one as it is.

        `settings` are those of `ledgermq.ManagerSettings`, such as `segments_max=100`, or
        `redelivery_limit=5` for all queues and topics that have none of their own.

        Raises:
            InvalidDestinationError: the error destination is none, or is not there.
            RefusedError: a setting is out of range.
        """
        return self._change(AlterQueueManager, **manager_settings_given(**settings))

    def back_up_journal(
        self, *, through: int, kept_from: int, needed_from: int, reason: str, actor: str
    ) -> int:
        """Tells that the journal was archived; what expired is in it no longer (DB-19).

        `ledgermq journal backup` archives it and then calls this; both texts stay on the log.

        Args:
            through: Everything that came into the journal below this log position was archived.
            kept_from: What came in below this position leaves the journal.
            needed_from: No Put below this position brought what stays, or may yet come in.
            reason: Why, up to 1,024 characters.
            actor: Who asked for it, up to 128 characters.

        Raises:
            RefusedError: the journal is empty, was backed up further meanwhile, or a text is too
                long.
        """
        return self._change(
            BackUpJournal,
            actor=actor,
            reason=reason,
            through=through,
            kept_from=kept_from,
            needed_from=needed_from,
        )

    def upgrade(self, version: int) -> int:
        """Sets the protocol version that later entries are read by; there is no way back.

        Raises:
            RefusedError: the version is not above the active one.
        """
        return self._change(Upgrade, version=version)

    def correct(
        self, name: str, *, sequence: int, action: str, reason: str, actor: str | None = None
    ) -> int:
        """Repairs one message's state by hand; `actor` and `reason` stay on the log.

        `sequence` is its sequence number. `action` REMOVE takes it away, whoever holds it; RELEASE
        takes it from the session that holds it and gives it back with its delivery count raised.

        Raises:
            QueueNotFoundError: there is no such queue.
            RefusedError: there is no such message, or the action does not fit its state.
            IllegalStateError: there is no such action.
        """
        if action not in ("REMOVE", "RELEASE"):
            raise IllegalStateError(f"action is {shown(action)}, must be REMOVE or RELEASE")
        return self._on(
            Correct,
            "queue",
            name,
            sequence=sequence,
            action=action,
            actor=who_asks(actor),
            reason=reason,
        )

    def rollback_transaction(self, session: int, *, reason: str, actor: str | None = None) -> int:
        """Rolls back the unit of work of a session; both texts stay on the log.

        Its puts vanish, its gets go back with their delivery count raised. The session's next
        commit raises TransactionRolledBackError (SES-20).

        Args:
            session: Handle of the session, as `transactions()` tells it.
            reason: Why, up to 1,024 characters.
            actor: Who asked for it, up to 128 characters; the user of the operating system if it is
                left out.

        Raises:
            SessionNotFoundError: there is no such session, or no unit of work holds anything.
            RefusedError: a text is too long.
        """
        return self._change(
            RollbackTransaction, target_session=session, actor=who_asks(actor), reason=reason
        )

    def end_session(self, session: int, *, reason: str, actor: str | None = None) -> int:
        """Ends a session as if it was lost: what it holds goes back, its next call raises.

        Raises:
            SessionNotFoundError: there is no such session, or it is the one that asks.
            RefusedError: a text is too long.
        """
        return self._change(
            EndSession, target_session=session, actor=who_asks(actor), reason=reason
        )
