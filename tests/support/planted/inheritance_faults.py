"""Faults to be planted in what queues and topics take from the queue manager (§15)."""

from __future__ import annotations

from typing import Any

from ledgermq.core.destinations import settings_in_force
from ledgermq.core.manual import manager_settings
from ledgermq.protocol.settings import REDELIVERY_FIELDS, inherited
from support.planted.planted_faults import Family, Fault, does_nothing, played_in


def _all_of_it(original: Any) -> Any:
    return lambda own, rule: {name: getattr(rule, name) for name in REDELIVERY_FIELDS}


def _takes_nothing(original: Any) -> Any:
    return lambda own, rule: {}


def _takes_too(original: Any) -> Any:
    return lambda state, found: inherited(found.own_settings, state.redelivery)


def _for_new_ones(original: Any) -> Any:
    def configure_all(state, redelivery):
        state.redelivery = redelivery

    return configure_all


INHERITANCE = Family(
    "inheritance",
    (
        Fault(
            "nothing is taken from the queue manager",
            settings_in_force,
            "inherited",
            _takes_nothing,
        ),
        Fault("what is said is taken too", settings_in_force, "inherited", _all_of_it),
        Fault("the error destination takes too", settings_in_force, "inherited_by", _takes_too),
        Fault("only new ones take it", manager_settings, "configure_all", _for_new_ones),
        Fault("targets are not noted", settings_in_force, "_name_targets", does_nothing),
    ),
    played_in("inheritance"),
)
