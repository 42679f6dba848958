"""Histories of one that knows nothing: small random numbers, mostly illegal, and random bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from hypothesis import strategies as st

from ledgermq.protocol import operations as op
from ledgermq.protocol.operations import Operation
from ledgermq.wire.framing.codec import encode_operation
from support.generators.handling_generators import naive_handling
from support.generators.naive_operations import FOLLOWING, START_US, naive_operations, opens

BLIND = naive_operations | naive_handling
STEPS_US = (0, 0, 0, 1_000, 50_000, 1_000_000, 10_000_000)
LEAPS_US = (*STEPS_US, 30_000_000, 60_000_000, 61_000_000, 200_000_000, -5_000_000)


class Entry(NamedTuple):
    """One record of the operations topic."""

    value: bytes | None
    time: int


@st.composite
def _mutilated(draw: st.DrawFn) -> bytes:
    """An operation whose bytes were cut, flipped or prolonged."""
    value = bytearray(encode_operation(draw(BLIND)))
    how = draw(st.sampled_from(("cut", "flip", "prolong")))
    at = draw(st.integers(0, len(value) - 1))
    if how == "cut":
        return bytes(value[:at])
    if how == "flip":
        value[at] ^= 1 << draw(st.integers(0, 7))
        return bytes(value)
    return bytes(value) + draw(st.binary(min_size=1, max_size=4))


@st.composite
def naive_histories(draw: st.DrawFn) -> list[Entry]:
    """Any records in any order."""
    values = st.one_of(*[BLIND] * 5, _mutilated(), st.binary(max_size=40), st.none())
    time = START_US
    following: dict[int, int] = {}
    history = [Entry(encode_operation(draw(opens)), time) for _ in range(draw(st.integers(0, 2)))]
    for value in draw(st.lists(values, max_size=30)):
        time += draw(st.sampled_from(LEAPS_US))
        if isinstance(value, op.SessionOperation) and value.session_sequence == FOLLOWING:
            number = following[value.session] = following.get(value.session, 0) + 1
            value = replace(value, session_sequence=number)
        encoded = encode_operation(value) if isinstance(value, Operation) else value
        history.append(Entry(encoded, time))
    return history
