"""LedgerMQ: a message-queue system whose only source of truth is a transaction log on Kafka.

What it exports stands in `__init__.pyi` and is loaded when it is first used, so that the fold, the
worker and the Spark jobs, which live in this package too, load without the client.
"""

from __future__ import annotations

from ledgermq import errors as errors
from ledgermq.lazy_exports import load as __getattr__  # noqa: F401
from ledgermq.lazy_exports import names as __dir__  # noqa: F401
