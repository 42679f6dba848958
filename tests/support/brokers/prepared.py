"""Whoever imports this has done what workers and commands do before they have anything to do.

Imported by the process that those of tests are forked from: what is made here is theirs, too.
"""

from __future__ import annotations

import gc
import inspect
import sys
from importlib import import_module

from faust.types.settings import Settings

from ledgermq.wire.framing.schemas import by_fingerprint

# They import these when they are called.
CALLED = ("bridge", "log", "put", "reading", "relays", "worker")
for module in ("main", *(f"commands.{name}" for name in CALLED)):
    import_module(f"ledgermq.cli.{module}")
import_module("ledgermq.processor.worker.start")
by_fingerprint()
# Imports what Faust's settings name.
Settings(id="prepared")
# Faust asks where its agents come from, which looks for the files of all modules.
inspect.getmodule(sys._getframe())
# As it stays, nobody need look for cycles in it, which would copy it for each worker.
gc.collect()
gc.freeze()
