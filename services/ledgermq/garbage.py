"""Python's search for cycles, made rare where a fold makes and drops many small objects."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

# After how many objects more it begins, by generations. A fold has hardly a cycle, and looking for
# them after every 700 objects takes a tenth of it, and a fifth of one that tells of its moves. The
# second looks at a quarter of a million at most: nothing else is done meanwhile.
SELDOM: Final = (50_000, 5, 200)


@contextmanager
def seldom_looked_for_cycles() -> Iterator[None]:
    """Rare within, and afterwards as before."""
    before = gc.get_threshold()
    gc.set_threshold(*SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)
