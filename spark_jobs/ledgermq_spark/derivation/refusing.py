"""Why an operation that is in turn is refused: PROTOCOL.md §3 and §5, read without the fold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ledgermq.selector import SelectorError, parse_selector
from ledgermq_spark.derivation.acts import Event
from ledgermq_spark.derivation.destinations import (
    is_temporary,
    is_topic,
    own_prefix,
    plain_name,
    store_of,
    valid_destination,
    valid_name,
)
from ledgermq_spark.derivation.directory import Directory
from ledgermq_spark.derivation.get_options import PLAIN, options_of
from ledgermq_spark.derivation.settings import TIMING_MS_MAX

MODES = ("AUTO", "CLIENT", "DUPS_OK", "INDIVIDUAL", "TRANSACTED")
INT_MAX = 2**31 - 1
CONSUMER_MAX = INT_MAX
CREDIT_MAX = 1_000_000
PUT_MESSAGES_MAX = 10_000
CONTENT_BYTES_MAX = 8 * 1024 * 1024 - 4096
HEADER_MAX = 64 * 1024
ACTOR_MAX, REASON_MAX = 128, 1_024
# Of what an Open says of its client, and of its takeover.
CLIENT_MAX = 1_024
UNIT_DESTINATIONS_MAX = 10_000
SETTLING = ("Acknowledge", "Commit", "Rollback", "Recover", "Close")


@dataclass(slots=True)
class ScannedConsumer:
    """A consumer as its session's operations tell it."""

    queue: str
    opened: int
    credit: int = 0
    open: bool = True
    # Whether all segments of a logical message come for one credit.
    complete: bool = False


class Segment(NamedTuple):
    """A delivery of a segment: where it begins and ends, and with which delivery it came."""

    consumer: int
    group_id: str
    number: int
    offset: int
    end: int
    # Where on the log it came, and the first delivery of its logical message if it came complete.
    entry: tuple[int, int]
    unit: int | None

    def goes_on(self, before: Segment) -> bool:
        """Whether it is what follows another segment of its logical message."""
        return before[:3] == self[:3] and before.end == self.offset


@dataclass(slots=True)
class ScannedSession:
    """A session as its operations tell it."""

    handle: int
    connection: str
    client_id: str
    mode: str
    timeout_us: int
    lane: int
    deadline: int | None
    confirmed: bool = False
    suspected: bool = False
    last: int = 0
    answered: int = 0
    consumers: dict[int, ScannedConsumer] = field(default_factory=dict)
    consumer_highest: int = 0
    next_delivery: int = 1
    # Deliveries in flight and the consumer that each is claimed for; -1 where the claim is lost.
    in_flight: dict[int, int] = field(default_factory=dict)
    # Up to where all was handed over, and what Alive told of beyond that.
    handed: int = 0
    handing: set[int] = field(default_factory=set)
    # Of deliveries in flight, the segments.
    segments: dict[int, Segment] = field(default_factory=dict)
    unit: int = 1
    unit_begin: int | None = None
    # Open puts by where they go.
    open_puts: dict[str, int] = field(default_factory=dict)
    open_bytes: dict[str, int] = field(default_factory=dict)
    # What has its number and waits for its reply (§16): puts, and a commit behind them.
    blocked: dict[int, Event] = field(default_factory=dict)
    # Whether administration ended the unit of work and the session did not roll back since.
    unit_ended: bool = False

    @property
    def unit_puts(self) -> int:
        """How many puts the unit of work holds."""
        return sum(self.open_puts.values())

    @property
    def transacted(self) -> bool:
        """Whether it has units of work."""
        return self.mode == "TRANSACTED"

    @property
    def has_unit(self) -> bool:
        """Whether its unit of work holds anything."""
        return self.transacted and bool(self.unit_puts or self.in_flight)


def opening_refusal(
    others: Iterable[ScannedSession], event: Event, directory: Directory
) -> str | None:
    """Why an Open is refused beside the other sessions of its connection, or None."""
    if event.acknowledge_mode not in MODES:
        return "mode-unknown"
    in_range = (
        1_000 <= event.suspect_timeout_ms <= 45_000
        and 0 <= event.lane <= INT_MAX
        and 0 <= event.redelivery_delay_ms <= TIMING_MS_MAX
        and event.number <= CLIENT_MAX
    )
    if not in_range or (event.client_id and not valid_name(event.client_id)):
        return "setting-invalid"
    # A connection reads one lane and has one client id.
    if any((one.lane, one.client_id) != (event.lane, event.client_id) for one in others):
        return "setting-invalid"
    return directory.open_refusals.get(event.position)


def refusal(session: ScannedSession, event: Event, directory: Directory) -> str | None:
    """Why an operation that is in turn is refused (§5), or None."""
    kind = event.kind
    if kind == "Put":
        if session.unit_ended:
            return "unit-of-work-ended"
        return _put_refusal(event, directory) or _room_refusal(session, event, directory)
    if kind == "OpenConsumer":
        if not session.consumer_highest < event.consumer <= CONSUMER_MAX:
            return "consumer-exists"
        return _consumer_refusal(session, event, directory)
    if kind in ("Get", "GiveBack", "CloseConsumer"):
        consumer = session.consumers.get(event.consumer)
        if consumer is None:
            return "consumer-unknown"
        if not consumer.open:
            # Closing again returns what crossed the first close; without such, it is unknown.
            if kind != "CloseConsumer" or event.consumer not in session.in_flight.values():
                return "consumer-unknown"
        elif kind == "Get":
            return _get_refusal(session, consumer, event, directory)
        return _range_refusal(session, event, event.consumer)
    if kind in SETTLING:
        return _settling_refusal(session, event, directory)
    if kind in ("RollbackTransaction", "EndSession"):
        given = 0 < len(event.actor) <= ACTOR_MAX and 0 < len(event.why) <= REASON_MAX
        return None if given else "reason-invalid"
    return None


def _settling_refusal(session: ScannedSession, event: Event, directory: Directory) -> str | None:
    """Why deliveries are not settled, or open puts not committed."""
    kind = event.kind
    if kind in ("Acknowledge", "Recover") and session.transacted:
        return "transacted"
    if kind in ("Commit", "Rollback") and not session.transacted:
        return "not-transacted"
    if kind == "Commit" and session.unit_ended:
        return "unit-of-work-ended"
    if kind == "Commit" and any(one.kind == "Commit" for one in session.blocked.values()):
        return "commit-waiting"
    if kind == "Commit" and event.position in directory.waiting:
        # What it names is looked at behind the puts that it waits for.
        return None
    if kind == "Commit" and event.number != session.unit_puts:
        return "puts-mismatch"
    if kind == "Rollback" and session.unit_ended:
        # What it saw went back already: nobody looks at what it names.
        return None
    return _range_refusal(session, event, None) or directory.queue_refusals.get(event.position)


def _get_refusal(
    session: ScannedSession, consumer: ScannedConsumer, event: Event, directory: Directory
) -> str | None:
    """Why a Get of an open consumer is refused."""
    if not 0 <= event.number <= CREDIT_MAX - consumer.credit:
        return "credit-invalid"
    options = options_of(event.text)
    if not options.in_range or (options.logical_order and session.mode == "INDIVIDUAL"):
        return "options-invalid"
    if options != PLAIN and is_topic(consumer.queue):
        return "options-invalid"
    return directory.queue_refusals.get(event.position)


def _destination_refusal(event: Event, directory: Directory) -> str | None:
    if not valid_destination(event.target):
        return "destination-invalid"
    return directory.use_refusal(store_of(event.target), event.position)


def _consumer_refusal(session: ScannedSession, event: Event, directory: Directory) -> str | None:
    """Why an OpenConsumer with a good number is refused."""
    if not -1 <= event.redelivery_delay_ms <= TIMING_MS_MAX:
        return "setting-invalid"
    reason = _destination_refusal(event, directory)
    if reason is not None:
        return reason
    store = store_of(event.target)
    if is_temporary(store) and not plain_name(store).startswith(own_prefix(session.connection)):
        return "temporary-foreign"
    try:
        parse_selector(event.selector)
    except SelectorError:
        return "selector-invalid"
    reason = _subscription_refusal(session, event, store)
    return reason or directory.consumer_refusals.get(event.position)


def _subscription_refusal(session: ScannedSession, event: Event, store: str) -> str | None:
    """What is wrong with the subscription that is asked for, whatever others stand."""
    named = bool(event.durable or event.shared)
    if not is_topic(store):
        wrong = named or event.subscription
        return "subscription-invalid" if wrong else None
    if not valid_name(event.subscription) if named else event.subscription:
        return "subscription-invalid"
    if event.shared and event.no_local:
        return "subscription-invalid"
    if event.durable and not event.shared and not session.client_id:
        return "client-id-missing"
    if event.durable and is_temporary(store):
        return "destination-invalid"
    return None


def _put_refusal(event: Event, directory: Directory) -> str | None:
    reason = _destination_refusal(event, directory)
    if reason is not None:
        return reason
    if directory.puts_disabled(store_of(event.target), event.position):
        return "puts-disabled"
    if not 1 <= event.count <= PUT_MESSAGES_MAX:
        return "message-invalid"
    if event.priority_low < 0 or event.priority_high > 9 or event.size_low < 1:
        return "message-invalid"
    limit = directory.message_bytes_max(store_of(event.target), event.position)
    too_large = event.size_high > (limit or CONTENT_BYTES_MAX) or event.header_high > HEADER_MAX
    if too_large:
        return "message-too-large"
    if event.grouped and is_topic(store_of(event.target)):
        return "group-not-allowed"
    return directory.queue_refusals.get(event.position)


def _room_refusal(session: ScannedSession, event: Event, directory: Directory) -> str | None:
    """Why there is no room for a Put that is otherwise in order (§19)."""
    needed = event.whole_high
    if session.transacted:
        needed = sum(session.open_bytes.values()) + event.whole_sum
    crowded = session.transacted and len(session.open_puts) >= UNIT_DESTINATIONS_MAX
    if crowded and store_of(event.target) not in session.open_puts:
        return "transaction-too-large"
    if needed > directory.segment_bytes_at(event.position):
        return "transaction-too-large"
    if not 0 <= event.number <= TIMING_MS_MAX:
        return "setting-invalid"
    return directory.room_refusals.get(event.position)


def _range_refusal(session: ScannedSession, event: Event, consumer: int | None) -> str | None:
    """Ranges must rise and name only deliveries in flight (of one consumer, if it closes)."""
    highest = 0
    for first, last in zip(event.firsts, event.lasts, strict=True):
        if first <= highest or last < first or last >= session.next_delivery:
            return "delivery-unknown"
        for number in range(first, last + 1):
            holder = session.in_flight.get(number)
            if holder is None or (consumer is not None and holder not in (consumer, -1)):
                return "delivery-unknown"
        highest = last
    return None
