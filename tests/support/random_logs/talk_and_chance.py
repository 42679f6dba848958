"""A log that has something of everything: a conversation, then whatever comes at random."""

from __future__ import annotations

from dataclasses import replace

from support.brokers.log_writer import Entry, Script
from support.planted.planting import conversation
from support.random_logs.random_log import RandomLog


def talk_and_chance() -> list[Entry]:
    """Its entries, to be written without a pause."""
    script = Script(step_us=0)
    conversation(script, "talk")
    RandomLog(script, topics=True).grow(150)
    return [replace(one, stamp=1, wait_seconds=0.0) for one in script.entries]
