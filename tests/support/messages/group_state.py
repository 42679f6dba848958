"""A state with two groups of one queue: held, clashing and available items."""

from __future__ import annotations

from support.scripts.play import play_lines
from support.scripts.verbs import group_id

LINES = (
    "P: open",
    "T: open TRANSACTED",
    "P: put q M1{g=G.1} S1{g=G.2!@0+5} S2{g=G.2!@5+5!} -> enqueued 0..2",
    "T: put q X{g=G.3} N1{g=H.1} -> refused group-clash",
    "T: put q N1{g=H.1}",
    "P: put q N2{g=H.1!} -> enqueued 3..3",
    "T: commit -> committed q 4..4",
    "G: open",
    "G: consumer 1 q",
    "G: get 2 logical -> accepted; delivered M1@0 S1@1",
)


def state_with_groups():
    """Group G of three items, two of them in the hands of G; group H with a clash."""
    return play_lines(*LINES).state


def group_of(state, name="G"):
    """A group of the queue."""
    return state.queues["q"].groups[group_id(name)]
