"""Histories in which the log's clock leaps, is set back and is agreed on (PROTOCOL.md §6)."""

from __future__ import annotations

from hypothesis import strategies as st

from support.generators.generators import Writer
from support.generators.naive_histories import LEAPS_US, Entry


class ClockWriter(Writer):
    """Draws operations that suit the model's state, and what a worker writes between them."""

    leaps_us = (*LEAPS_US, -61_000_000, -200_000_000, -3_600_000_000)

    def step(self) -> None:
        """Writes something."""
        if self.one((True, False, False)):
            self.worker()
        else:
            super().step()


@st.composite
def clock_histories(draw: st.DrawFn, steps: int = 30) -> list[Entry]:
    """Histories whose state time is often ahead of the clock."""
    return ClockWriter(draw).history_of(steps)
