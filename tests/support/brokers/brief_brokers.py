"""Supervisors whose brokers live for seconds, as those of tests do."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from unittest.mock import patch

from ledgermq.embedded import EmbeddedBroker
from ledgermq.processor.worker import supervisor


def brief_brokers() -> AbstractContextManager[object]:
    """Java's optimising compiler takes a third of such a life, and gives nothing for it."""
    return patch.object(supervisor, "EmbeddedBroker", partial(EmbeddedBroker, brief=True))
