"""How many files a worker may have open: each queue manager takes a dozen, for its connections."""

from __future__ import annotations

import contextlib
import resource


def allow_many_files() -> None:
    """Lets the process open as many as the system lets it, as Java does for brokers.

    Most systems begin with 1,024, for programs of long ago; a hundred queue managers are more.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Some systems name a limit that they do not let anybody have.
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
