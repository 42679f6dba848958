"""Whoever imports this has done what each worker does before it has anything to do.

Imported by the process that workers of tests are forked from: what is made here is theirs, too.
"""

from __future__ import annotations

import gc
import inspect
import sys

from faust.types.settings import Settings

from ledgermq.processor.worker import start
from ledgermq.wire.framing.schemas import by_fingerprint

assert start, "a worker imports it when it is started"
by_fingerprint()
# Imports what Faust's settings name.
Settings(id="prepared")
# Faust asks where its agents come from, which looks for the files of all modules.
inspect.getmodule(sys._getframe())
# As it stays, nobody need look for cycles in it, which would copy it for each worker.
gc.collect()
gc.freeze()
