"""Which subscriptions stood when, and which consumer belonged to which (PROTOCOL.md §5 Topics).

A subscription concerns several connections, so this goes through what consumers of topics did in
the order of the log: small facts, one or two per consumer.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ledgermq_spark.derivation.directory import (
    AdministrationRow,
    Directory,
    Reception,
    Subscription,
)

WHITESPACE = " \t\f\r\n"
Identity = tuple[str, str, str]
Key = tuple[int, int]


@dataclass(slots=True)
class _Standing:
    """A subscription that stands: its open consumers, and closed ones with deliveries in flight."""

    identity: Identity
    place: int
    consumers: set[Key] = field(default_factory=set)
    lingering: set[Key] = field(default_factory=set)

    @property
    def in_use(self) -> bool:
        return bool(self.consumers or self.lingering)


class Subscriptions:
    """Goes through consumers of topics in order; keeps what it finds in the directory."""

    def __init__(self, found: Directory) -> None:
        self._found = found
        self._standing: dict[Identity, _Standing] = {}
        self._of: dict[Key, _Standing] = {}
        self._receptions: dict[Key, int] = {}
        self._by_session: dict[int, list[Key]] = {}

    def open(self, row: AdministrationRow, topic_created: int) -> str | None:
        """Attaches a consumer, to what stands or to a new subscription; or says why not."""
        wanted = _wanted(row, topic_created)
        identity = (wanted.kind, wanted.name, wanted.client_id)
        standing = self._standing.get(identity)
        if standing is not None:
            one = self._found.subscriptions[standing.place]
            if one.shared != wanted.shared:
                return "subscription-differs"
            if standing.consumers and not one.shared:
                return "subscription-in-use"
            if not _alike(one, wanted):
                if standing.in_use:
                    return "subscription-in-use"
                self._end(standing, row.position, False, "made anew")
                standing = None
        if standing is None:
            standing = _Standing(identity, len(self._found.subscriptions))
            self._found.subscriptions.append(wanted)
            self._standing[identity] = standing
        key = (row.session, row.consumer)
        standing.consumers.add(key)
        self._of[key] = standing
        self._receptions[key] = len(self._found.receptions)
        self._by_session.setdefault(row.session, []).append(key)
        created = self._found.subscriptions[standing.place].created
        self._found.receptions.append(Reception(created, *key, row.connection, row.position))
        return None

    def closed(self, key: Key, position: int, due: bool) -> None:
        """A consumer closed; deliveries of it may be in flight until it is free."""
        standing = self._of.get(key)
        if standing is None or key not in standing.consumers:
            return
        standing.consumers.discard(key)
        standing.lingering.add(key)
        place = self._receptions[key]
        one = self._found.receptions[place]
        self._found.receptions[place] = one._replace(closed=position, closed_due=due)
        if standing.identity[0] == "shared" and not standing.consumers:
            self._stop(standing, position, due)

    def _stop(self, standing: _Standing, position: int, due: bool) -> None:
        """A shared subscription lost its last consumer: its name is free (SES-43)."""
        one = self._found.subscriptions[standing.place]
        self._found.subscriptions[standing.place] = one._replace(stopped=position, stopped_due=due)
        del self._standing[standing.identity]
        standing.identity = ("ended", f"{one.name}#{one.created}", one.client_id)
        self._standing[standing.identity] = standing

    def free(self, key: Key, position: int, due: bool) -> None:
        """Nothing of a closed consumer is in flight any more; what nothing keeps ends."""
        standing = self._of.get(key)
        if standing is None or key in standing.consumers:
            return
        del self._of[key]
        standing.lingering.discard(key)
        if standing.identity[0] != "durable" and not standing.in_use:
            self._end(standing, position, due, "last consumer gone")

    def session_ended(self, session: int, position: int, due: bool) -> None:
        """The consumers of a session are gone, and what they held has returned."""
        for key in self._by_session.pop(session, []):
            self.closed(key, position, due)
            self.free(key, position, due)

    def unsubscribe(self, row: AdministrationRow) -> str | None:
        """Ends a durable subscription that nobody uses."""
        standing = self._standing.get(("durable", row.subscription, row.client_id))
        if standing is None:
            return "subscription-unknown"
        if standing.in_use:
            return "subscription-in-use"
        self._end(standing, row.position, False, "unsubscribed")
        return None

    def on_topic(self, topic: str) -> bool:
        """Whether subscriptions of a topic stand."""
        places = (one.place for one in self._standing.values())
        return any(self._found.subscriptions[place].topic == topic for place in places)

    def end_topic(self, topic: str, position: int, due: bool, why: str) -> None:
        """Ends all subscriptions of a topic that goes."""
        for standing in list(self._standing.values()):
            if self._found.subscriptions[standing.place].topic == topic:
                self._end(standing, position, due, why)

    def _end(self, standing: _Standing, position: int, due: bool, why: str) -> None:
        one = self._found.subscriptions[standing.place]
        self._found.subscriptions[standing.place] = one._replace(
            ended=position, ended_due=due, why=why
        )
        del self._standing[standing.identity]


def _wanted(row: AdministrationRow, topic_created: int) -> Subscription:
    """The subscription that an OpenConsumer asks for, were there none."""
    kind = "durable" if row.durable else "shared" if row.shared else "consumer"
    return Subscription(
        created=row.position,
        topic=row.queue,
        topic_created=topic_created,
        kind=kind,
        name=f"{row.session}/{row.consumer}" if kind == "consumer" else row.subscription,
        client_id=row.client_id,
        shared=row.shared,
        selector=row.selector if row.selector.strip(WHITESPACE) else "",
        no_local=row.no_local,
    )


def _alike(one: Subscription, wanted: Subscription) -> bool:
    """Whether a consumer that asks for this may attach to what stands."""
    same = (one.topic, one.topic_created, one.selector, one.no_local)
    return same == (wanted.topic, wanted.topic_created, wanted.selector, wanted.no_local)
