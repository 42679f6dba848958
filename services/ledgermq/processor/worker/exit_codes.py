"""How a worker ends, as the exit code of its process.

In a file of its own: who starts workers and waits for them has no need of all that a worker takes.
"""

from __future__ import annotations

from typing import Final

EXIT_STOPPED: Final = 0
EXIT_FAULT: Final = 1
EXIT_USAGE: Final = 2
EXIT_UNREACHABLE: Final = 3
# Starting again would not help: a person must look at log, checkpoints or version first.
EXIT_REFUSED: Final = 4
