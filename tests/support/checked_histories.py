"""Random histories folded with every check after every entry."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import HealthCheck, settings

from ledgermq.core import query, topic_query
from ledgermq.wire.codec import decode_operation
from support.generators import Entry
from support.play import Player
from support.witness import Witness

__all__ = ["FOLD", "check_history"]

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
settings.register_profile(
    "fold", deadline=None, suppress_health_check=QUIET, derandomize=True, database=None
)
FOLD = settings.get_profile("fold")


def check_history(history: Sequence[Entry]) -> Player:
    """Folds a history with every check after every entry; the witness follows beside the model."""
    player = Player()
    witness = Witness()
    for position, entry in enumerate(history):
        player.clock_us = entry.time
        found = player.enter(entry.value)
        witness.observe(decode_operation(entry.value), position, found)
        topics = topic_query.topic_statuses(player.state)
        witness.compare(query.queue_statuses(player.state), topics)
    return player
