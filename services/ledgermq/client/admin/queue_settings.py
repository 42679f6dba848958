"""Settings of queues, topics and the queue manager as keywords, one entry here for each
(PROTOCOL.md §14).

`create_queue`, `alter_queue`, `create_topic`, `alter_topic` and `alter_queue_manager` take them
all, and the command line makes an option of each; what is not given stays as it is, or at its
default.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import cache
from typing import Annotated, Any, Final, NamedTuple, TypeAlias, TypedDict, Unpack, get_type_hints

from ledgermq.client.arguments import wrong_type
from ledgermq.client.destinations import checked_destination
from ledgermq.errors import ArgumentTypeError, IllegalStateError
from ledgermq.errors.shown import shown
from ledgermq.protocol.settings import (
    FIFO_MODES,
    OPERATION_FIELDS,
    POLICIES,
    REDELIVERY_FIELDS,
    given_settings,
    redelivery_in,
)
from ledgermq.redelivery import parse_redelivery, parse_steps

PERCENT: Final = "_percent"
REDELIVERY: Final = "redelivery"
# Fields of an operation themselves, beside OPERATION_FIELDS.
COMMON_FIELDS: Final = ("description", "message_bytes_max", "unacknowledged_max")


class Kind(enum.Enum):
    """How a setting is given: by a program, and on the command line."""

    COUNT = "a whole number"
    DURATION = "a whole number of milliseconds, or a timedelta"
    PERCENT = "a factor such as 1.5, or under the full name a whole number of percent"
    FLAG = "true or false"
    CHOICE = "one of several words"
    TEXT = "text"
    DESTINATION = "queue:NAME, topic:NAME or a status of one"
    STEPS = "redelivery steps such as 5:1000; 10:60000, or a list of (retries, delay in ms)"


class Setting(NamedTuple):
    """What is known of one setting: what its keyword is annotated with.

    Attributes:
        none: The value that takes it away; None: it always has one, and a count is 1 at least.
        choices: The words of a choice.
    """

    kind: Kind
    help: str
    none: Any = None
    choices: tuple[str, ...] = ()


Count: TypeAlias = Annotated[int, Kind.COUNT]
Duration: TypeAlias = Annotated[int | timedelta, Kind.DURATION]
Factor: TypeAlias = Annotated[float, Kind.PERCENT]
Flag: TypeAlias = Annotated[bool, Kind.FLAG]
Word: TypeAlias = Annotated[str, Kind.CHOICE]
Text: TypeAlias = Annotated[str, Kind.TEXT]
# What has a destination will do: a status, a producer.
Destination: TypeAlias = Annotated[str | Any, Kind.DESTINATION]
Steps: TypeAlias = Annotated[str | Iterable[tuple[int, int]], Kind.STEPS]


class RedeliverySettings(TypedDict, total=False):
    """Settings of redelivery: of queues and topics, and of the queue manager for those without.

    `redelivery` stands for all of them: a redelivery string of Java CAPS (DB-21), such as
    `5:1000; 50:move(queue:dead)`. The first 5 redeliveries follow at once, each of the others after
    1,000 ms, and after 50 the message goes to `queue:dead`. None of the others may be given beside.
    """

    redelivery_delay_override_ms: Annotated[
        Duration,
        "How long a message that came back waits before it is delivered again, whatever its "
        "consumer asked for.",
        -1,
    ]
    redelivery_limit: Annotated[
        Count,
        "How often messages put from now on are redelivered at most; then they go to the error "
        "destination.",
        -1,
    ]
    redelivery_delay_multiplier_percent: Annotated[
        Factor,
        "By how much each further failure multiplies the redelivery delay: 1, the default, leaves "
        "it as it is, 2 doubles it.",
    ]
    redelivery_delay_max_ms: Annotated[
        Duration, "The longest redelivery delay that the factor leads to.", 0
    ]
    redelivery_steps: Annotated[
        Steps,
        "Redelivery delays by the number of failed redeliveries, in place of any other delay: "
        "'5:1000; 9:5000' waits 1000 ms after 5 of them, 5000 ms after 9.",
        (),
    ]
    error_destination: Annotated[
        Destination,
        "Where messages go that have reached their redelivery limit; without it they are dropped.",
        "",
    ]
    redelivery: str


class QueueSettings(RedeliverySettings, total=False):
    """Settings of queues and topics; those of only one of them its methods name.

    The first ones, and `redelivery`, which stands for all of these, are those of
    `RedeliverySettings`.
    """

    description: Annotated[Text, "Free text for people, which `show` prints."]
    message_bytes_max: Annotated[
        Count,
        "How many bytes the content of a message may have; larger ones are refused. 0: only the "
        "limit of every message, 8 MiB.",
        0,
    ]
    unacknowledged_max: Annotated[
        Count,
        "How many messages of it, or of a subscription of a topic, a session may hold unsettled; "
        "then it gets no more until it settles some. 0: any number.",
        0,
    ]
    inherits_redelivery: Annotated[
        Flag,
        "Whether it takes those settings of redelivery from the queue manager that it does not "
        "have itself, as is the default.",
    ]
    time_to_live_override_ms: Annotated[
        Duration,
        "How long messages put from now on live before they expire, whatever their sender asked "
        "for; 0: for ever.",
        -1,
    ]
    delivery_delay_override_ms: Annotated[
        Duration,
        "How long messages put from now on wait before they are delivered, whatever their sender "
        "asked for.",
        -1,
    ]
    expiry_destination: Annotated[
        Destination, "Where expired messages go; without it they are dropped.", ""
    ]
    puts_disabled: Annotated[
        Flag,
        "Whether puts are refused; messages that a rule or an administrator moves there still "
        "arrive.",
    ]
    messages_max: Annotated[
        Count,
        "Quota of messages that it may hold, in flight and uncommitted ones too; sends beyond it "
        "wait for room until their send time-out. 0: no quota.",
        0,
    ]
    bytes_max: Annotated[Count, "The same for the bytes of these messages; 0: no quota.", 0]
    blocking_send_policy: Annotated[
        Word,
        "Order of sends that wait for a quota. fifo, the default: none passes an earlier one; "
        "preemptive: one that fits passes an earlier one that does not.",
        None,
        POLICIES,
    ]
    fifo_mode: Annotated[
        Word,
        "Order in which messages are settled. concurrent, the default: any; protected: that in "
        "which they were received; serialized: one message is delivered at a time, and the next "
        "once it is settled.",
        None,
        FIFO_MODES,
    ]
    keeps_group_order: Annotated[
        Flag,
        "Whether later messages of a group wait while an earlier one waits for its redelivery "
        "delay, and follow it if it goes to the error destination.",
    ]
    single_active_consumer: Annotated[
        Flag,
        "Whether one consumer at a time is given messages, and the others stand by until it is "
        "closed, or its session ends, and nothing is in flight.",
    ]
    available_max: Annotated[
        Count,
        "How many messages that are available are kept, the newest ones; older ones are "
        "displaced, and go nowhere else; 0: all.",
        0,
    ]
    last_value_key: Annotated[
        Text,
        "Of the available messages with the same value of this property, or of a header field "
        "that selectors know, only the newest is kept; older ones are displaced.",
        "",
    ]
    deduplication_window_ms: Annotated[
        Duration,
        "How long the deduplication id of a send is remembered: a second send with it puts "
        "nothing. Goes with --deduplication-ids-max.",
        0,
    ]
    deduplication_ids_max: Annotated[
        Count,
        "How many deduplication ids are remembered, the latest ones; up to 100000. Goes with "
        "--deduplication-window.",
        0,
    ]
    messages_resume: Annotated[
        Count,
        "Once a send had to wait for the quota of messages, sends go on when no more than so many "
        "messages are left; 0: as soon as there is room.",
        0,
    ]
    bytes_resume: Annotated[
        Count, "The same for the quota of bytes; 0: as soon as there is room.", 0
    ]


class ManagerSettings(RedeliverySettings, total=False):
    """Settings of the queue manager.

    The first ones, and `redelivery`, which stands for all of these, are those of
    `RedeliverySettings`: queues and topics take them that say none themselves.
    """

    automatic_creation: Annotated[
        Flag,
        "Whether the first use of an unknown queue or topic creates it, as is the default; if "
        "not, the use is refused.",
    ]
    maximum_lifetime_ms: Annotated[
        Duration,
        "How long a message may live, whatever its own time to live; those that are there already "
        "too. The default is 30d; without it they live for ever.",
        0,
    ]
    segment_bytes: Annotated[
        Count,
        "Bytes of a segment, the unit in which the room of live messages is counted (`ledgermq "
        "storage`); a message or a unit of work that takes more is refused: a value below 8450048 "
        "refuses some messages, 1 all. The default is 16777216.",
    ]
    segments_min: Annotated[Count, "How many segments there are at least. The default is 4."]
    segments_max: Annotated[
        Count,
        "How many segments there are at most: puts are refused while all are full or pinned by "
        "live messages. 0, the default: no limit.",
        0,
    ]
    messages_max: Annotated[
        Count,
        "Quota of messages in all queues and topics together, in flight and uncommitted ones too; "
        "sends beyond it wait for room until their send time-out. 0, the default: no quota.",
        0,
    ]
    bytes_max: Annotated[
        Count, "The same for the bytes of these messages; 0, the default: none.", 0
    ]
    journaling: Annotated[
        Flag,
        "Whether messages put from now on go to the journal (`ledgermq journal`); by default none.",
    ]
    journal_lifetime_ms: Annotated[
        Duration,
        "How long messages stay in the journal, those that are there already too; the next backup "
        "removes older ones. The default is 7d; without it none is removed.",
        0,
    ]
    unit_of_work_time_limit_ms: Annotated[
        Duration,
        "How long a unit of work may be open, those that are open too; then it is rolled back. 0, "
        "the default: no limit.",
        0,
    ]
    unit_of_work_idle_limit_ms: Annotated[
        Duration,
        "How long a unit of work may be open without a further put or get; then it is rolled "
        "back. 0, the default: no limit.",
        0,
    ]
    messages_resume: Annotated[
        Count,
        "Once a send had to wait for the quota of messages, sends go on when no more than so many "
        "messages are left; 0, the default: as soon as there is room.",
        0,
    ]
    bytes_resume: Annotated[
        Count, "The same for the quota of bytes; 0, the default: as soon as there is room.", 0
    ]


@cache
def setting_keywords(of: type = QueueSettings) -> Mapping[str, Setting]:
    """Every setting by its keyword, of queues and topics or of the queue manager.

    A percentage has the keyword without that word, and is given as a factor. `redelivery` stands
    for several of them and is none.
    """
    found = {}
    for name, hint in get_type_hints(of, include_extras=True).items():
        if name == REDELIVERY:
            continue
        setting = Setting(*hint.__metadata__)
        keyword = name.removesuffix(PERCENT) if setting.kind is Kind.PERCENT else name
        found[keyword] = setting
    return found


def settings_given(own: str = "", /, **settings: Unpack[QueueSettings]) -> dict[str, Any]:
    """The fields of an operation that say settings; those of which it says nothing are left out.

    `own` is the destination that they are for. `redelivery` is a string of `ledgermq.redelivery`,
    in the place of all settings that begin so and of the error destination.

    Raises:
        TypeError: there is no setting of that name.
        InvalidDestinationError: what should be a destination is none.
        IllegalStateError: a value is not of the kind that the setting takes, or a redelivery
            string cannot be read, or was given with settings that it stands for.
    """
    named = _named(QueueSettings, own, settings)
    beside = {name: named.pop(name, None) for name in (*COMMON_FIELDS, *OPERATION_FIELDS)}
    fields: dict[str, Any] = {name: value for name, value in beside.items() if value is not None}
    given = given_settings(named)
    return fields if given is None else fields | {"settings": given}


def manager_settings_given(**settings: Unpack[ManagerSettings]) -> dict[str, Any]:
    """The fields of an operation on the queue manager that say settings.

    Raises:
        TypeError, InvalidDestinationError, IllegalStateError: as `settings_given`.
    """
    named = _named(ManagerSettings, "", settings)
    redelivery: dict[str, Any] = {
        name: named.pop(name) for name in REDELIVERY_FIELDS if name in named
    }
    return named | {"redelivery": redelivery_in(given_settings(redelivery))}


def _named(of: type, own: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that are given, by their full names and as the log has them."""
    named: dict[str, Any] = {}
    keywords = setting_keywords(of)
    for keyword, value in settings.items():
        if keyword == REDELIVERY:
            continue
        whole = keyword not in keywords
        setting = keywords.get(keyword.removesuffix(PERCENT) if whole else keyword)
        if setting is None or (whole and setting.kind is not Kind.PERCENT):
            known = ", ".join(keywords)
            raise ArgumentTypeError(f"there is no setting {keyword}; there are: {known}")
        name = keyword + PERCENT if setting.kind is Kind.PERCENT and not whole else keyword
        named[name] = None if value is None else _value(name, setting, value, whole)
    redelivery = settings.get(REDELIVERY)
    if redelivery is not None:
        named |= _redelivery(redelivery, own, settings)
    return named


def _redelivery(text: str, own: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that a redelivery string stands for, if none of them is given beside it."""
    if not isinstance(text, str):
        raise wrong_type("redelivery", text, "text")
    for name in REDELIVERY_FIELDS:
        for keyword in (name, name.removesuffix(PERCENT)):
            if settings.get(keyword) is not None:
                raise IllegalStateError(
                    f"redelivery stands for {keyword} too: give {keyword} without redelivery, or "
                    "say it within redelivery"
                )
    return parse_redelivery(text, own)


def _steps(value: Any) -> list[Any]:
    """Redelivery steps as the log has them."""
    if isinstance(value, str):
        return list(parse_steps(value)) if value.strip() else []
    if not isinstance(value, Iterable):
        raise ArgumentTypeError(
            f"redelivery_steps is {shown(value)}, and must be {Kind.STEPS.value}"
        )
    steps = []
    for one in value:
        pair = tuple(one) if isinstance(one, Iterable) else ()
        if isinstance(one, Mapping) and len(one) == 2:
            pair = (one.get("retries"), one.get("delay_ms"))
        if [type(number) for number in pair] != [int, int]:
            raise IllegalStateError(
                f"redelivery_steps has the step {shown(one)}, and each must be (retries, delay in "
                "ms), such as (5, 1000)"
            )
        steps.append({"retries": pair[0], "delay_ms": pair[1]})
    return steps


def _percent(name: str, factor: float) -> int:
    """A factor in whole percent, if it is so many; no other is taken for the next one."""
    try:
        percent = round(factor * 100)
        is_whole = math.isclose(percent, factor * 100, rel_tol=1e-9)
    except (OverflowError, ValueError):
        # It is infinite, by a hundred times at the latest, or no number.
        raise IllegalStateError(f"{name} is {factor}, and must be {Kind.PERCENT.value}") from None
    if not is_whole:
        raise IllegalStateError(
            f"{name} is {factor}: at most two digits after the point are kept, as in 1.25"
        )
    return percent


def _value(name: str, setting: Setting, value: Any, whole: bool) -> Any:
    """A value as the log has it; whether it is in range, the queue manager says."""
    kind = setting.kind
    if kind is Kind.DESTINATION:
        text = value if isinstance(value, str) else getattr(value, "destination", value)
        return text if text == "" else checked_destination(text)
    if kind is Kind.STEPS:
        return _steps(value)
    if kind is Kind.DURATION and isinstance(value, timedelta):
        # What is above 0 stays so, because 0 means none, or for ever.
        return value // timedelta(milliseconds=1) or int(bool(value))
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is Kind.PERCENT and not whole and is_number:
        return _percent(name.removesuffix(PERCENT), value)
    expected = {Kind.FLAG: bool, Kind.CHOICE: str, Kind.TEXT: str}.get(kind, int)
    if kind is Kind.CHOICE and isinstance(value, enum.Enum):
        value = value.value
    if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
        raise ArgumentTypeError(f"{name} is {shown(value)}, and must be {kind.value}")
    if kind is Kind.CHOICE:
        # The documentation writes them as the command line does, in lower case.
        choice = str.upper(value)  # type: ignore[arg-type] # it is of the type expected
        if choice not in setting.choices:
            known = ", ".join(setting.choices)
            raise IllegalStateError(f"{name} is {shown(value)}, and must be one of {known}")
        return choice
    return value
