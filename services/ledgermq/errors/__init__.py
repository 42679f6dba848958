"""Errors that LedgerMQ raises: what happened, where, and what to do.

Every error has a stable `code` for programs (`queue-unknown`, `outcome-unknown`, ...), says whether
trying again can help (`retryable`), and names the destination where there is one. Refusals of the
queue manager keep the reason code of the protocol as their `code`. An operation ends in one of
three ways: it worked, it failed, or its outcome is **unknown** (`OutcomeUnknownError`,
`TransactionInDoubtError`): then it may have been applied, or may yet be.
"""

from __future__ import annotations

from ledgermq.errors.base import *  # noqa: F403
from ledgermq.errors.connections import *  # noqa: F403
from ledgermq.errors.destinations import *  # noqa: F403
from ledgermq.errors.groups import *  # noqa: F403
from ledgermq.errors.messages import *  # noqa: F403
from ledgermq.errors.names import NAMES as __all__  # noqa: F401, N811
from ledgermq.errors.sessions import *  # noqa: F403
