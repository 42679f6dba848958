"""Where each message was, from queue to queue: one pass over a log in order (PROTOCOL.md §14).

A message that goes elsewhere gets a number among those that are put there, and may go on from
there, also back to where it was. So where a message goes and which number it has there rest on all
that went before it, wherever that was; nothing less than one pass in order tells it. A *stay* is a
message in one queue or topic, or its copy in a subscription of that topic; the stay 0 of a message
is the one that its Put began, every move begins one with a number of its own.

Order at one entry: what is due before it expires, sessions end and what they held comes back, and
delays end, in the order of their moments; then the entry acts; then what it numbered too late, or
what a shorter lifetime ends, expires.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator
from typing import Any

from ledgermq_spark.derivation.by_hand import chosen, refusal_of, source_of
from ledgermq_spark.derivation.changes import changes_of
from ledgermq_spark.derivation.destinations import is_topic, store_of
from ledgermq_spark.derivation.directory import Directory, Subscription
from ledgermq_spark.derivation.parked import GROUP_PARKED, following
from ledgermq_spark.derivation.redelivering import delay_us, limit_of
from ledgermq_spark.derivation.rounding import rounded
from ledgermq_spark.derivation.settings import LIFETIME_MS_DEFAULT
from ledgermq_spark.derivation.stay import Content, Stay, Stayed, Store, WalkEvent
from ledgermq_spark.derivation.wanting import wants
from ledgermq_spark.log.headers import without_group

# Where in an entry: before all else that is due; what the entry does; after all that it does.
FIRST, ACTS, LAST = (0, -1), (1, 1), (1, 2**31)
BY_HAND = ("moved", "copied", "retried")
Due = tuple[int, int, int, Stay]


class Walk:
    """Goes through a log entry by entry; the directory says what stood when."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._begins, self._ends = changes_of(directory)
        self._subscribers = {(one.session, one.consumer): one for one in directory.receptions}
        self._standing: dict[str, Store] = {}
        self._subscriptions: dict[int, tuple[Store, Subscription]] = {}
        self._held: dict[tuple[int, int], Stay] = {}
        self._own: list[Due] = []
        self._lifetimes: list[Due] = []
        self._maximum_us = LIFETIME_MS_DEFAULT * 1000
        self._births: list[Due] = []
        self._delayed: list[Due] = []
        self._moves = 0
        self._position = -1
        self._time = -1
        # When delays begin that the entry brings about.
        self._delays_from = -1
        self._place = FIRST
        self._phase = 2
        # Sessions that were lost before the entry.
        self._lost: set[int] = set()
        # Whether something may be due once the entry has acted.
        self._unsettled = False

    def take(self, event: WalkEvent) -> Iterator[Stayed]:
        """Takes an event; tells what it, and the time that passed until it, brought about."""
        if event.what == "entry":
            yield from self.finish()
            self._position, self._time, self._phase = event.position, event.time, 0
            self._delays_from = max(event.time, event.moment)
            self._place = FIRST
            self._lost.clear()
            yield from self._due()
            yield from self._follow()
            yield from self._bear()
            return
        yield from self._until(event.phase)
        self._place = (0, event.index) if event.phase == 0 else ACTS
        if event.what == "numbered":
            yield from self._put(event)
        elif event.what == "handled":
            yield from self._handle(json.loads(event.text))
        elif event.what == "delivered":
            yield from self._deliver(event)
        elif event.what == "ended":
            # Sessions go first at one moment.
            yield from self._end_delays(event.moment - 1)
            self._leave_subscriptions(event.session)
            yield from self._follow()
        else:
            yield from self._settle(event)

    def finish(self) -> Iterator[Stayed]:
        """Ends the entry that was begun last."""
        yield from self._until(2)

    def _until(self, phase: int) -> Iterator[Stayed]:
        """Goes on to a phase of the entry: 1 it acts, 2 it delivers."""
        if self._phase < 1 <= phase:
            self._place = (0, 2**31)
            yield from self._end_delays(self._time)
            self._end(due=True)
            self._begin()
        if self._phase < 2 <= phase:
            self._end(due=False)
            self._place = LAST
            yield from self._follow()
            if self._unsettled:
                yield from self._due()
                yield from self._follow()
                self._unsettled = False
        self._phase = max(self._phase, phase)

    def _begin(self) -> None:
        for what in self._begins.pop(self._position, ()):
            if isinstance(what, int):
                self._maximum_us = what * 1000
                self._unsettled = True
            elif isinstance(what, Subscription):
                topic = self._standing.get(what.topic)
                if topic is not None:
                    store = Store(what.topic, topic.created, what.created, topic)
                    self._subscriptions[what.created] = (store, what)
            elif len(what) == 2:
                store = self._standing[what[0]]
                store.settings = what[1]
                for one in self._stores():
                    one.parked.change(one.in_force)
                store.limits.append((self._position, what[1].redelivery_limit))
            else:
                self._standing[what.queue] = Store(what.queue, what.created, -1)

    def _end(self, *, due: bool) -> None:
        for what in self._ends.pop((self._position, due), ()):
            if isinstance(what, Subscription):
                found = self._subscriptions.pop(what.created, None)
                store = None if found is None else found[0]
            elif hasattr(what, "action"):
                self._remove(what.queue, what.sequence)
                continue
            else:
                store = self._standing.pop(what.queue, None)
            if store is not None:
                store.end()

    def _leave_subscriptions(self, session: int) -> None:
        """Ends what ends before the entry and had its last consumers in a session that is lost."""
        self._lost.add(session)
        due = self._ends.get((self._position, True), [])
        for one in [told for told in due if isinstance(told, Subscription)]:
            store = self._subscriptions.get(one.created, (None,))[0]
            holding = {holder for (holder, _), stay in self._held.items() if stay.store is store}
            keeping = (holding if one.stopped is None else set()) | {
                told.session
                for told in self._directory.receptions
                if told.subscription == one.created and told.closed == self._position
            }
            if store is not None and keeping <= self._lost:
                del self._subscriptions[one.created]
                store.end()

    def _remove(self, queue: str, sequence: int) -> None:
        store = self._standing.get(queue)
        stay = None if store is None else store.messages.pop(sequence, None)
        if stay is not None:
            stay.is_gone = True

    def _put(self, event: WalkEvent) -> Iterator[Stayed]:
        store = self._standing.get(event.queue)
        if store is None:
            return
        message = Content(event.message_id, event.priority, event.persistent, event.header)
        put = (event.put_position, event.put_index)
        sender = (event.connection, event.client_id)
        times = (self._time, event.moment, event.born_at)
        limit = limit_of(event.header, store.limit_at(event.put_position))
        yield self._number(Stay(put, 0, message, store, store.next, *times, limit=limit), sender)
        self._unsettled = self._unsettled or 0 <= event.moment <= self._time

    def _number(self, stay: Stay, sender: tuple[str, str]) -> Stayed:
        """Gives a stay its number; a topic hands it on to the subscriptions that want it."""
        store = stay.store
        store.next += 1
        if is_topic(store.name):
            for subscription, told in list(self._subscriptions.values()):
                if subscription.topic is store and wants(
                    told, stay, sender, self._directory.receptions, self._position
                ):
                    self._keep(stay.copy_in(subscription))
        else:
            self._keep(stay)
        return Stayed(
            *("numbered", *stay.put, stay.number, -1, store.name, store.created, stay.sequence),
            *(self._position, *self._place, self._time, stay.expires_at),
            origin=None if stay.origin is None else json.dumps(stay.origin, separators=(",", ":")),
            born_at=stay.born_at,
        )

    def _keep(self, stay: Stay) -> None:
        stay.store.parked.come(stay)
        stay.store.messages[stay.sequence] = stay
        place = (stay.store.order, stay.sequence, stay)
        if stay.expires_at >= 0:
            heapq.heappush(self._own, (stay.expires_at, *place))
        if stay.number and stay.born_at > self._time:
            heapq.heappush(self._births, (stay.born_at, *place))
        heapq.heappush(self._lifetimes, (stay.enqueued_at, *place))

    def _bear(self) -> Iterator[Stayed]:
        """Tells what was moved before its time, and is born now."""
        while self._births and self._births[0][0] <= self._time:
            stay = heapq.heappop(self._births)[3]
            if not stay.is_gone:
                yield self._gone(stay, "born")

    def _deliver(self, event: WalkEvent) -> Iterator[Stayed]:
        """A claimed delivery; one of what is not there is for others to tell."""
        if event.phase == 0:
            # It was delayed until right before, or came from where it was.
            while self._delayed and self._delayed[0][0] <= self._time:
                found = self._named_by(event)
                if found is not None and found.until < 0:
                    break
                yield from self._end_delays(self._delayed[0][0])
        stay = self._named_by(event, exactly=False)
        if stay is not None and not stay.held:
            stay.held, stay.until = True, -1
            self._held[event.session, event.delivery] = stay

    def _named_by(self, event: WalkEvent, *, exactly: bool = True) -> Stay | None:
        """What a claimed delivery names, by its number or else as what it is."""
        received = self._subscribers.get((event.session, event.consumer))
        if received is None:
            store = self._standing.get(event.queue)
        else:
            store = self._subscriptions.get(received.subscription, (None,))[0]
        if store is None:
            return None
        put = (event.put_position, event.put_index)
        stay = store.messages.get(event.sequence)
        if stay is not None and stay.put == put:
            return stay
        if exactly:
            return None
        return next((one for one in store.messages.values() if one.put == put), None)

    def _settle(self, event: WalkEvent) -> Iterator[Stayed]:
        if event.phase == 0:
            # Sessions go first at one moment.
            yield from self._end_delays(event.moment - 1)
        stay = self._held.pop((event.session, event.delivery), None)
        if stay is None or stay.is_gone:
            return
        stay.held = False
        stay.returned_at = (self._position, self._place[0])
        if event.text != "returned":
            self._go(stay)
            return
        stay.backouts += event.flag
        stay.uncounted += event.uncounted
        if self._is_over(stay):
            yield from self._expire(stay, on_return=True)
            return
        place = (stay.store.order, stay.sequence, stay)
        heapq.heappush(self._lifetimes, (stay.enqueued_at, *place))
        delay = delay_us(stay, event.delay_ms) if event.flag else 0
        if event.flag and not delay:
            yield from self._offer_again(stay, on_return=True)
        if stay.store.is_over:
            self._go(stay)
        if not delay or stay.is_gone:
            return
        stay.until = rounded(self._delays_from + delay)
        heapq.heappush(self._delayed, (stay.until, *place))
        yield self._gone(stay, "delayed")._replace(born_at=stay.until)

    def _end_delays(self, moment: int) -> Iterator[Stayed]:
        """Ends the delays that are over at a moment, by that and then by creation and number."""
        while self._delayed and self._delayed[0][0] <= min(moment, self._time):
            until, _, _, stay = heapq.heappop(self._delayed)
            if not stay.is_gone and stay.until == until:
                stay.until = -1
                yield from self._offer_again(stay, on_return=False)
            if not self._delayed or self._delayed[0][0] > until:
                yield from self._follow()

    def _offer_again(self, stay: Stay, *, on_return: bool) -> Iterator[Stayed]:
        """What was backed out is available again, unless it came back too often (§15)."""
        if not 0 <= stay.limit < stay.backouts - stay.uncounted:
            if not on_return:
                yield self._gone(stay, "offered")
            return
        destination = stay.store.in_force.error_destination
        how = "redelivery-limit" if destination else "dropped"
        if destination:
            stay.store.parked.park(stay)
        yield from self._leave(stay, how, destination, on_return=on_return)

    def _stores(self) -> list[Store]:
        return [*self._standing.values(), *(one for one, _ in self._subscriptions.values())]

    def _follow(self) -> Iterator[Stayed]:
        """What nobody holds of parked groups follows, by creation and by number (§15)."""
        for stay in following([one for one in self._stores() if one.parked]):
            back = stay.returned_at == (self._position, self._place[0])
            destination = stay.store.in_force.error_destination
            yield from self._leave(stay, GROUP_PARKED, destination, on_return=back)

    def _go(self, stay: Stay) -> None:
        stay.is_gone = True
        stay.store.messages.pop(stay.sequence, None)

    def _ends_at(self, enqueued_at: int) -> int:
        return rounded(enqueued_at + self._maximum_us)

    def _is_over(self, stay: Stay) -> bool:
        if 0 <= stay.expires_at <= self._time:
            return True
        return bool(self._maximum_us) and self._ends_at(stay.enqueued_at) <= self._time

    def _due(self) -> Iterator[Stayed]:
        """What is due and waits expires: by its own time, then by the maximum lifetime."""
        own: list[Stay] = []
        while self._own and self._own[0][0] <= self._time:
            own.append(heapq.heappop(self._own)[3])
        yield from self._expire_all(own)
        found: list[Due] = []
        heap = self._lifetimes
        while self._maximum_us and heap and self._ends_at(heap[0][0]) <= self._time:
            found.append(heapq.heappop(heap))
        found.sort(key=lambda one: one[1:3])
        yield from self._expire_all([one[3] for one in found])

    def _expire_all(self, stays: list[Stay]) -> Iterator[Stayed]:
        for stay in stays:
            if not stay.is_gone and not stay.held:
                yield from self._expire(stay, on_return=False)

    def _expire(self, stay: Stay, *, on_return: bool) -> Iterator[Stayed]:
        destination = stay.store.in_force.expiry_destination
        yield from self._leave(stay, "expired", destination, on_return=on_return)

    def _leave(
        self, stay: Stay, reason: str, destination: str, *, on_return: bool
    ) -> Iterator[Stayed]:
        """A stay ends by a rule; the message goes on to a destination, if there is one."""
        self._go(stay)
        target = self._standing.get(store_of(destination)) if destination else None
        told = self._gone(stay, reason)._replace(on_return=on_return)
        if target is None:
            yield told
        else:
            yield told._replace(to=destination, to_sequence=target.next)
            yield self._move(stay, target, reason)

    def _gone(self, stay: Stay, what: str) -> Stayed:
        store = stay.store
        return Stayed(
            *(what, *stay.put, stay.number, store.holder, store.name, store.created),
            *(stay.sequence, self._position, *self._place, self._time),
        )

    def _move(self, stay: Stay, target: Store, reason: str) -> Stayed:
        """Puts a message elsewhere, as a new one that says where it was."""
        self._moves += 1
        origin, message = stay.as_origin(reason), stay.message
        if is_topic(target.name):
            message = message._replace(header=without_group(message.header))
        expires_at = -1 if reason == "expired" else stay.expires_at
        # What an administrator moves stays unborn.
        born_at = stay.born_at if reason in BY_HAND and stay.born_at > self._time else -1
        times = (self._time, expires_at, born_at)
        # What came back too often may come as often as the destination says.
        header = None if reason == "redelivery-limit" else message.header
        limit = limit_of(header, target.settings.redelivery_limit)
        moved = Stay(stay.put, self._moves, message, target, target.next, *times, origin, limit)
        return self._number(moved, ("", ""))

    def _handle(self, asked: dict[str, Any]) -> Iterator[Stayed]:
        """An operation by hand (§17), or why it is refused."""
        found = source_of(asked["selection"], self._standing, self._subscriptions)
        reason = found if isinstance(found, str) else refusal_of(asked, found, self._standing)
        if isinstance(found, str) or reason is not None:
            nothing = ("refused", -1, -1, 0, -1, "", -1, -1)
            yield Stayed(*nothing, self._position, *ACTS, self._time, origin=reason)
            return
        for stay in chosen(asked, found, self._standing):
            if asked["kind"] == "CopyMessages":
                yield self._move(stay, self._standing[store_of(asked["target"])], "copied")
            elif asked["kind"] == "MoveMessages":
                back = stay.origin if asked["to_origin"] else None
                where = asked["target"] if back is None else back["destination"]
                reason = "moved" if back is None else "retried"
                yield from self._leave(stay, reason, where, on_return=False)
            else:
                yield from self._leave(stay, "removed", "", on_return=False)
