"""One option for each setting of queues, topics and queue managers, made of the client's tables.

A setting that may be away is taken away with `none`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any, Final

import click

from ledgermq.cli.options.destinations import EXPLAINED, destination_named
from ledgermq.cli.options.together import Command, Number, Read, together
from ledgermq.client.admin.queue_settings import (
    Kind,
    ManagerSettings,
    QueueSettings,
    Setting,
    setting_keywords,
)
from ledgermq.digits import plain_digits
from ledgermq.redelivery import parse_steps
from ledgermq.wire.content.objects import LONG_MAX

NONE: Final = "none"
_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)?", re.ASCII)


class Duration(Read):
    """A duration in milliseconds, at most `most`; `none` is what that word means, if it may be."""

    def __init__(self, none: int | None = None, most: int = LONG_MAX) -> None:
        explained = (
            "DURATION is a number with a unit, 500ms, 30s, 10m, 12h or 7d; without one, seconds."
        )
        super().__init__("DURATION", partial(_milliseconds, none, most), explained)


def _milliseconds(none: int | None, most: int, text: str) -> int:
    if text == NONE and none is not None:
        return none
    found = _DURATION.fullmatch(text)
    if found is None:
        or_none = "" if none is None else ", or none"
        raise ValueError(f"{text!r} is no duration: write 500ms, 30s, 10m, 12h or 7d{or_none}")
    exactly = Decimal(found[1]) * _UNITS_MS[found[2] or "s"]
    # 0 often means that there is no such time.
    milliseconds = max(1, int(exactly)) if exactly else 0
    if milliseconds > LONG_MAX:
        raise ValueError(f"{text} is more than a record of the log can hold")
    if milliseconds > most:
        raise ValueError(f"{text} is more than {duration_text(most)}, the most that there may be")
    return milliseconds


def _count(none: int | None, text: str) -> int:
    if text == NONE and none is not None:
        return none
    try:
        number = int(plain_digits(text))
    except ValueError:
        or_none = "" if none is None else ", or none"
        raise ValueError(f"{text!r} is no whole number: write 1000, for example{or_none}") from None
    least = 1 if none is None else 0
    if number < least and number != none:
        raise ValueError(f"{text} is below {least}")
    if number > LONG_MAX:
        raise ValueError(f"{text} is more than a record of the log can hold")
    return number


def _destination(text: str) -> str:
    return "" if text in (NONE, "") else destination_named(text)


def _steps(text: str) -> list[tuple[int, int]]:
    """Retries and delays in ms."""
    if text == NONE:
        return []
    return [(one["retries"], one["delay_ms"]) for one in parse_steps(text)]


def _type_of(setting: Setting) -> click.ParamType:
    if setting.kind is Kind.DURATION:
        return Duration(setting.none)
    if setting.kind is Kind.DESTINATION:
        return Read("DESTINATION", _destination, EXPLAINED)
    if setting.kind is Kind.STEPS:
        return Read("STEPS", _steps)
    if setting.kind is Kind.PERCENT:
        return Number()
    if setting.kind is Kind.TEXT:
        return click.STRING
    if setting.kind is Kind.CHOICE:
        return click.Choice(setting.choices, case_sensitive=False)
    return Read("NUMBER", partial(_count, setting.none))


def _option_of(keyword: str, setting: Setting) -> Callable[..., Any]:
    word = keyword.removesuffix("_ms").replace("_", "-")
    text = setting.help
    if setting.kind is Kind.FLAG:
        return click.option(f"--{word}/--no-{word}", keyword, default=None, help=text)
    if setting.none is not None:
        text = f"{text} '{NONE}' removes the setting."
    metavar = {Kind.PERCENT: "FACTOR", Kind.TEXT: "TEXT"}.get(setting.kind)
    return click.option(f"--{word}", keyword, type=_type_of(setting), metavar=metavar, help=text)


def _options_of(settings: type) -> Callable[[Command], Command]:
    """One option for every setting; those not given are None."""
    return together(
        *(_option_of(keyword, setting) for keyword, setting in setting_keywords(settings).items()),
        click.option(
            "--redelivery",
            metavar="STEPS",
            help="All settings of redelivery as Java CAPS writes them, in place of the other "
            "redelivery options and --error-destination: '5:1000; 10:5000; 50:move(queue:dead$)' "
            "waits 1000 ms after 5 failed redeliveries, 5000 ms after 10, and after 50 moves the "
            "message to a queue whose name is dead and the name of its own queue.",
        ),
    )


setting_options: Final = _options_of(QueueSettings)
manager_options: Final = _options_of(ManagerSettings)


def given_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that options gave; UsageError if there are none."""
    given = {name: value for name, value in settings.items() if value is not None}
    if not given:
        words = (one.removesuffix("_ms").replace("_", "-") for one in settings)
        options = ", ".join(f"--{word}" for word in words)
        raise click.UsageError(f"nothing to change: give one of {options}")
    return given


def duration_text(milliseconds: int) -> str:
    """A duration as the options take it, in the largest unit that keeps it whole."""
    for unit, factor in reversed(_UNITS_MS.items()):
        if milliseconds and milliseconds % factor == 0:
            return f"{milliseconds // factor}{unit}"
    return f"{milliseconds}ms"


def shown_settings(told: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a status as people read them: one line each, `none` for what is not set."""
    shown: dict[str, Any] = {}
    for keyword, setting in setting_keywords().items():
        name = f"{keyword}_percent" if setting.kind is Kind.PERCENT else keyword
        if name not in told:
            continue
        value = told[name]
        label = keyword.removesuffix("_ms").replace("_", " ")
        if setting.none is not None and value == setting.none:
            shown[label] = NONE
        elif setting.kind is Kind.DURATION:
            shown[label] = duration_text(value)
        elif setting.kind is Kind.PERCENT:
            shown[label] = value / 100
        elif setting.kind is Kind.STEPS:
            shown[label] = "; ".join(f"{one['retries']}:{one['delay_ms']}" for one in value) or NONE
        else:
            shown[label] = value
    return shown
