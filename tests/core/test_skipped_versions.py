"""Which entries may be skipped: those that bring a version that a worker may not know (H3)."""

import pytest

from ledgermq.core.apply import new_state
from ledgermq.core.versions import may_be_skipped
from ledgermq.protocol.administration import VersionOffered
from ledgermq.protocol.limits import VERSION_MAX
from ledgermq.protocol.operations import Upgrade


@pytest.mark.parametrize("kind", [Upgrade, VersionOffered])
@pytest.mark.parametrize(
    ("version", "may_be"),
    [(2, False), (3, True), (VERSION_MAX, True), (VERSION_MAX + 1, False)],
)
def test_a_version_above_those_that_are_known_may_be_skipped(kind, version, may_be):
    """Any that could be: what is active or offered already was not stopped at (§8)."""
    state = new_state()
    state.active_version = state.offered_version = 2
    assert may_be_skipped(state, entry_of(kind, version)) is may_be


def test_nothing_else_may_be_skipped():
    """An operation that every worker understands counts, whatever is declared."""
    assert not may_be_skipped(new_state(), entry_of(VersionOffered, 1))


def entry_of(kind, version):
    """An entry that brings a version."""
    if kind is Upgrade:
        return Upgrade(session=0, session_sequence=1, answered_through=0, version=version)
    return VersionOffered(worker="w", version=version)
