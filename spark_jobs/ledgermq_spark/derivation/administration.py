"""Goes through administration in the order of the log and decides it: PROTOCOL.md §5, unfolded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ledgermq_spark.derivation.contents import Contents
from ledgermq_spark.derivation.destinations import (
    is_temporary,
    is_topic,
    own_prefix,
    plain_name,
    store_of,
    valid_destination,
    valid_name,
)
from ledgermq_spark.derivation.directory import (
    AdministrationRow,
    Correction,
    Directory,
    Lifetime,
    Situation,
)
from ledgermq_spark.derivation.settings import (
    DEFAULTS,
    TIMING_MS_MAX,
    Settings,
    Storage,
    manager_settings_valid,
    settings_refusal,
)
from ledgermq_spark.derivation.subscriptions import Subscriptions
from ledgermq_spark.journal.backups import Backups
from ledgermq_spark.log.skipped import Versions

CONTENT_BYTES_MAX = 8 * 1024 * 1024 - 4096
DESCRIPTION_MAX, UNACKNOWLEDGED_MAX = 1024, 1_000_000
# What is no operation, in the order in which it counts at one place.
RANKS = {"Closed": 0, "Free": 1, "Ended": 2}


@dataclass(slots=True)
class _Connection:
    """A connection while it has sessions."""

    client_id: str
    takeover: str
    sessions: dict[int, None] = field(default_factory=dict)
    owned: dict[str, None] = field(default_factory=dict)


def read_directory(
    rows: Iterable[AdministrationRow],
    situations: dict[int, Situation],
    contents: Contents | None = None,
) -> Directory:
    """Read the directory off the administrative operations that were in turn, and first uses."""
    return _Reader(situations, contents or Contents()).read(rows)


class _Reader:
    """Goes through administrative operations in order and decides each (PROTOCOL.md §5)."""

    def __init__(self, situations: dict[int, Situation], contents: Contents) -> None:
        self._situations = situations
        self._contents = contents
        self._found = Directory()
        self._standing: dict[str, int] = {}
        # Of messages removed by hand from the queue that stands: when each would have expired.
        self._gone: dict[str, list[int | None]] = {}
        self._removed: set[tuple[str, int, int]] = set()
        self._storage, self._backups, self._versions = Storage(), Backups(), Versions()
        self._subscriptions = Subscriptions(self._found)
        self._connections: dict[str, _Connection] = {}
        self._of_session: dict[int, str] = {}
        self._client_ids: dict[str, str] = {}

    def read(self, rows: Iterable[AdministrationRow]) -> Directory:
        for row in sorted(rows, key=_moment):
            reason = getattr(self, "_" + row.kind)(row)
            if reason is not None:
                self._found.refusals[row.position] = reason
        return self._found

    def _create(
        self, name: str, position: int, description: str = "", limit: int = 0, **more: Any
    ) -> None:
        self._standing[name] = len(self._found.lifetimes)
        self._found.lifetimes.append(
            Lifetime(name, position, description=description, message_bytes_max=limit, **more)
        )
        steps = self._found.limits.setdefault(name, [])
        if limit or steps:
            steps.append((position, limit))
        if more.get("unacknowledged_max"):
            self._found.held_limits.append((name, position, position, more["unacknowledged_max"]))
        if more.get("group_affinity"):
            self._found.affinities.append((name, position, position, True))
        if more.get("settings", DEFAULTS) != DEFAULTS:
            self._found.settings.append((name, position, position, more["settings"]))
        self._disable(name, position, more.get("settings", DEFAULTS).puts_disabled)

    def _disable(self, name: str, position: int, disabled: bool) -> None:
        steps = self._found.disabled.setdefault(name, [])
        if disabled or steps:
            steps.append((position, disabled))

    def _standing_queue(self, name: str) -> Lifetime | None:
        place = None if is_topic(name) else self._standing.get(name)
        return None if place is None else self._found.lifetimes[place]

    def _Use(self, row: AdministrationRow) -> None:  # noqa: N802 (named as the kind it reads)
        if row.queue not in self._standing and not is_temporary(row.queue):
            self._create(row.queue, row.position)

    def _CreateQueue(self, row: AdministrationRow) -> str | None:  # noqa: N802
        if not valid_name(row.queue) or is_temporary(row.queue):
            return "name-invalid"
        if row.queue in self._standing:
            return "queue-exists"
        settings = DEFAULTS.changed(row.settings)
        wrong = self._settings_refusal(row, settings)
        if wrong is not None:
            return wrong
        self._create(
            row.queue,
            row.position,
            row.description or "",
            row.message_bytes_max or 0,
            settings=settings,
            unacknowledged_max=row.unacknowledged_max or 0,
            group_affinity=bool(row.group_affinity),
        )
        return None

    def _CreateTopic(self, row: AdministrationRow) -> str | None:  # noqa: N802
        if not valid_name(plain_name(row.queue)) or is_temporary(row.queue):
            return "name-invalid"
        if row.queue in self._standing:
            return "topic-exists"
        settings = DEFAULTS.changed(row.settings)
        wrong = self._settings_refusal(row, settings)
        if wrong is not None:
            return wrong
        text, limit = row.description or "", row.message_bytes_max or 0
        more: Any = {"settings": settings, "unacknowledged_max": row.unacknowledged_max or 0}
        self._create(row.queue, row.position, text, limit, **more)
        return None

    def _settings_refusal(self, row: AdministrationRow, settings: Settings) -> str | None:
        """Why settings as they would be are refused, or None."""
        if _settings_wrong(row):
            return "setting-invalid"
        return settings_refusal(settings, row.queue, self._standing.__contains__)

    def _is_named(self, store: str) -> bool:
        """Whether settings of something that stands name a queue or topic (INF-16)."""
        standing = (self._found.lifetimes[place] for place in self._standing.values())
        return any(store in map(store_of, one.settings.destinations) for one in standing)

    def _CreateTemporary(self, row: AdministrationRow) -> str | None:  # noqa: N802
        store = store_of(row.queue)
        own = plain_name(store).startswith(own_prefix(row.connection))
        if not valid_destination(row.queue) or not own:
            return "name-invalid"
        if store in self._standing:
            return "queue-exists"
        connection = self._connections.get(row.connection)
        if connection is not None:
            connection.owned[store] = None
            self._create(store, row.position, owner=row.connection)
        return None

    def _AlterQueue(self, row: AdministrationRow) -> str | None:  # noqa: N802
        queue = self._standing_queue(row.queue)
        if queue is None:
            return "queue-unknown"
        wrong = self._alter(row, queue)
        if wrong is not None:
            return wrong
        if row.group_affinity is not None:
            affinity = (row.queue, queue.created, row.position, row.group_affinity)
            self._found.affinities.append(affinity)
        return None

    def _AlterTopic(self, row: AdministrationRow) -> str | None:  # noqa: N802
        place = self._standing.get(row.queue)
        if place is None:
            return "topic-unknown"
        return self._alter(row, self._found.lifetimes[place])

    def _alter(self, row: AdministrationRow, one: Lifetime) -> str | None:
        """Changes settings of a queue or topic that stands, or says why not."""
        settings = one.settings.changed(row.settings)
        wrong = self._settings_refusal(row, settings)
        if wrong is not None:
            return wrong
        changes = {
            "description": row.description,
            "message_bytes_max": row.message_bytes_max,
            "gets_disabled": row.flag,
            "unacknowledged_max": row.unacknowledged_max,
            "group_affinity": row.group_affinity,
        }
        given: dict[str, Any] = {key: value for key, value in changes.items() if value is not None}
        place = self._standing[row.queue]
        self._found.lifetimes[place] = one._replace(settings=settings, **given)
        if settings != one.settings:
            self._found.settings.append((row.queue, one.created, row.position, settings))
            self._disable(row.queue, row.position, settings.puts_disabled)
        if row.unacknowledged_max is not None:
            limit = (row.queue, one.created, row.position, row.unacknowledged_max)
            self._found.held_limits.append(limit)
        if row.message_bytes_max is not None:
            self._found.limits[row.queue].append((row.position, row.message_bytes_max))
        return None

    def _DeleteQueue(self, row: AdministrationRow) -> str | None:  # noqa: N802
        queue = self._standing_queue(row.queue)
        if queue is None:
            return "queue-unknown"
        if queue.owner not in ("", row.connection):
            return "temporary-foreign"
        if self._situations.get(row.position, Situation()).in_use or self._is_named(row.queue):
            return "queue-in-use"
        resident = self._contents.standing(row.queue, queue.created, row.position)
        # The contents know nothing of corrections, so they count these until they expire.
        gone = self._gone.get(row.queue, ())
        resident -= sum(moment is None or moment > row.position for moment in gone)
        if resident and not row.flag:
            return "queue-not-empty"
        self._found.purged[row.position] = resident
        self._delete(row.queue, row.position, due=False)
        return None

    def _DeleteTopic(self, row: AdministrationRow) -> str | None:  # noqa: N802
        if row.queue not in self._standing:
            return "topic-unknown"
        topic = self._found.lifetimes[self._standing[row.queue]]
        if topic.owner not in ("", row.connection):
            return "temporary-foreign"
        if self._situations.get(row.position, Situation()).in_use or self._is_named(row.queue):
            return "topic-in-use"
        if self._subscriptions.on_topic(row.queue) and not row.flag:
            return "topic-not-empty"
        self._subscriptions.end_topic(row.queue, row.position, False, "topic deleted")
        self._delete(row.queue, row.position, due=False)
        return None

    def _delete(self, name: str, position: int, *, due: bool) -> None:
        if self._found.limits[name]:
            self._found.limits[name].append((position, 0))
        self._disable(name, position, False)
        place = self._standing.pop(name)
        self._gone.pop(name, None)
        one = self._found.lifetimes[place]
        self._found.lifetimes[place] = one._replace(deleted=position, deleted_due=due)
        owner = self._connections.get(one.owner)
        if owner is not None:
            owner.owned.pop(name, None)

    def _OpenConsumer(self, row: AdministrationRow) -> None:  # noqa: N802
        place = self._standing.get(row.queue)
        if row.session not in self._of_session or (place is None and is_temporary(row.queue)):
            return
        created = row.position if place is None else self._found.lifetimes[place].created
        reason = self._subscriptions.open(row, created)
        if reason is not None:
            self._found.consumer_refusals[row.position] = reason
        elif place is None:
            self._create(row.queue, row.position)

    def _Unsubscribe(self, row: AdministrationRow) -> str | None:  # noqa: N802
        return self._subscriptions.unsubscribe(row)

    def _Open(self, row: AdministrationRow) -> None:  # noqa: N802
        name, client_id = row.connection, row.client_id
        if name not in self._connections:
            other = self._connections.get(self._client_ids.get(client_id, ""))
            if other is not None:
                if not other.takeover or other.takeover != row.takeover:
                    self._found.open_refusals[row.position] = "client-id-in-use"
                    return
                for session in list(other.sessions):
                    self._found.takeovers.append((row.position, session))
                    self._end_session(session, row.position, due=False)
            self._connections[name] = _Connection(client_id, row.takeover)
            if client_id:
                self._client_ids[client_id] = name
        self._connections[name].sessions[row.session] = None
        self._of_session[row.session] = name

    def _Closed(self, row: AdministrationRow) -> None:  # noqa: N802
        self._subscriptions.closed((row.session, row.consumer), row.position, row.phase == 0)

    def _Free(self, row: AdministrationRow) -> None:  # noqa: N802
        self._subscriptions.free((row.session, row.consumer), row.position, row.phase == 0)

    def _Ended(self, row: AdministrationRow) -> None:  # noqa: N802
        self._end_session(row.session, row.position, due=row.phase == 0)

    def _end_session(self, session: int, position: int, *, due: bool) -> None:
        """A session is over; with the last of its connection go what is temporary and its id."""
        name = self._of_session.pop(session, None)
        if name is None:
            return
        self._subscriptions.session_ended(session, position, due)
        connection = self._connections[name]
        del connection.sessions[session]
        if connection.sessions:
            return
        for store in list(connection.owned):
            self._subscriptions.end_topic(store, position, due, "connection ended")
            self._delete(store, position, due=due)
        del self._connections[name]
        if connection.client_id:
            del self._client_ids[connection.client_id]

    def _AlterQueueManager(self, row: AdministrationRow) -> str | None:  # noqa: N802
        lifetime_ms, storage = row.maximum_lifetime_ms, self._storage.changed(row.settings)
        wrong = lifetime_ms is not None and not 0 <= lifetime_ms <= TIMING_MS_MAX
        if wrong or not (storage.is_valid and manager_settings_valid(row.settings)):
            return "setting-invalid"
        if lifetime_ms is not None:
            self._found.maximum_lifetimes.append((row.position, lifetime_ms))
        if row.flag is not None:
            self._found.automatic.append((row.position, row.flag))
        if storage.segment_bytes != self._storage.segment_bytes:
            self._found.segment_steps.append((row.position, storage.segment_bytes))
        self._storage = storage
        self._backups.altered(row.position, row.settings)
        return None

    def _BackUpJournal(self, row: AdministrationRow) -> str | None:  # noqa: N802
        return self._backups.refusal(row.position, row.settings)

    def _Upgrade(self, row: AdministrationRow) -> str | None:  # noqa: N802
        if not self._versions.upgrade(row.number):
            return "version-invalid"
        self._found.version_raised_at = row.position
        return None

    def _VersionOffered(self, row: AdministrationRow) -> None:  # noqa: N802
        self._versions.offer(row.number)

    def _EndSession(self, row: AdministrationRow) -> str | None:  # noqa: N802
        if row.number == row.session:
            return "target-unknown"
        self._RollbackTransaction(row)
        return None

    def _RollbackTransaction(self, row: AdministrationRow) -> None:  # noqa: N802
        # The scan of the session that is meant tells whether there is anything to end.
        self._found.endings.append((row.position, row.kind, row.number or 0))

    def _Correct(self, row: AdministrationRow) -> str | None:  # noqa: N802
        queue = self._standing_queue(row.queue)
        if queue is None:
            return "queue-unknown"
        situation = self._situations.get(row.position, Situation())
        message = (row.queue, queue.created, row.number or 0)
        if not situation.resident or message in self._removed:
            return "sequence-unknown"
        held = situation.session >= 0
        if row.action not in ("REMOVE", "RELEASE") or (row.action == "RELEASE" and not held):
            return "correction-invalid"
        if row.action == "REMOVE":
            self._removed.add(message)
            self._gone.setdefault(row.queue, []).append(situation.expires)
        self._found.corrections.append(
            Correction(
                row.position,
                row.queue,
                queue.created,
                row.number or 0,
                row.action,
                row.actor,
                row.why,
                situation.session,
                situation.delivery,
            )
        )
        return None


def _settings_wrong(row: AdministrationRow) -> bool:
    limit, held = row.message_bytes_max, row.unacknowledged_max
    return (
        len(row.description or "") > DESCRIPTION_MAX
        or (limit is not None and not 0 <= limit <= CONTENT_BYTES_MAX)
        or (held is not None and not 0 <= held <= UNACKNOWLEDGED_MAX)
    )


def _moment(row: AdministrationRow) -> tuple[int, int, int]:
    return (row.position, row.phase, RANKS.get(row.kind, 0))
