"""Settings of queues and topics as keywords, one line here for each (PROTOCOL.md §14).

`create_queue`, `alter_queue`, `create_topic` and `alter_topic` take them all, and the command line
makes an option of each; what is not given stays as it is, or at its default.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Annotated, Any, Final, TypeAlias, TypedDict, Unpack, get_type_hints

from ledgermq.client.destinations import checked_destination
from ledgermq.core.settings import given_settings
from ledgermq.errors import IllegalStateError

__all__ = ["Kind", "QueueSettings", "Setting", "setting_keywords", "settings_given"]

PERCENT: Final = "_percent"


class Kind(enum.Enum):
    """How a setting is given: by a program, and on the command line."""

    COUNT = "a whole number"
    DURATION = "milliseconds, or a timedelta; on the command line 500ms, 30s, 10m, 12h, 7d"
    PERCENT = "a factor such as 1.5, or under the full name a whole number of percent"
    FLAG = "true or false"
    CHOICE = "one of several words"
    DESTINATION = "queue:NAME, topic:NAME or a status of one"


@dataclass(frozen=True, slots=True)
class Setting:
    """What is known of one setting.

    Attributes:
        none: The value that takes it away; None: it always has one.
        choices: The words of a choice.
    """

    kind: Kind
    help: str
    none: Any = None
    choices: tuple[str, ...] = ()


# A destination, or what has one: a status, a producer.
Destination: TypeAlias = str | Any
Milliseconds: TypeAlias = int | timedelta


class QueueSettings(TypedDict, total=False):
    """Settings of queues and topics, beside those that a method names itself."""

    time_to_live_override_ms: Annotated[
        Milliseconds,
        Setting(Kind.DURATION, "How long messages put from now on live; 0: for ever.", -1),
    ]
    delivery_delay_override_ms: Annotated[
        Milliseconds,
        Setting(Kind.DURATION, "Delivery delay of messages put from now on.", -1),
    ]
    expiry_destination: Annotated[
        Destination, Setting(Kind.DESTINATION, "Where expired messages go.", "")
    ]


@cache
def setting_keywords() -> Mapping[str, Setting]:
    """Every setting by its keyword, in the order of the schema.

    A percentage has the keyword without that word, and is given as a factor.
    """
    found = {}
    for name, hint in get_type_hints(QueueSettings, include_extras=True).items():
        (setting,) = hint.__metadata__
        keyword = name.removesuffix(PERCENT) if setting.kind is Kind.PERCENT else name
        found[keyword] = setting
    return found


def settings_given(**settings: Unpack[QueueSettings]) -> dict[str, Any] | None:
    """Settings as an operation says them; None: it says nothing of any.

    Raises:
        TypeError: there is no setting of that name.
        InvalidDestinationError: what should be a destination is none.
        IllegalStateError: a value is not of the kind that the setting takes.
    """
    told: dict[str, Any] = {}
    keywords = setting_keywords()
    for keyword, value in settings.items():
        whole = keyword not in keywords
        setting = keywords.get(keyword.removesuffix(PERCENT) if whole else keyword)
        if setting is None or (whole and setting.kind is not Kind.PERCENT):
            known = ", ".join(keywords)
            raise TypeError(f"there is no setting {keyword}; there are: {known}")
        name = keyword + PERCENT if setting.kind is Kind.PERCENT and not whole else keyword
        told[name] = None if value is None else _value(name, setting.kind, value, whole)
    return given_settings(told)


def _value(name: str, kind: Kind, value: Any, whole: bool) -> Any:
    """A value as the log has it; whether it is in range, the queue manager says."""
    if kind is Kind.DESTINATION:
        text = value if isinstance(value, str) else getattr(value, "destination", value)
        return text if text == "" else checked_destination(text)
    if kind is Kind.DURATION and isinstance(value, timedelta):
        return value // timedelta(milliseconds=1)
    if kind is Kind.PERCENT and not whole and isinstance(value, (int, float)):
        return round(value * 100)
    expected = {Kind.FLAG: bool, Kind.CHOICE: str}.get(kind, int)
    if kind is Kind.CHOICE and isinstance(value, enum.Enum):
        value = value.value
    if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
        raise IllegalStateError(f"{name} is {value!r}, it is given as {kind.value}")
    return value
