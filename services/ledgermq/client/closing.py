"""What closes itself at the end of a `with` block."""

from __future__ import annotations

import logging
from typing import Self

from ledgermq.errors import LedgerMQError

LOGGER = logging.getLogger("ledgermq.client")


class Closing:
    """Closed at the end of a `with` block; what `close` raises is raised."""

    def close(self) -> None:
        """Closes it."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: type[BaseException] | None, *_: object) -> None:
        self.close()


class ClosingInAnyCase(Closing):
    """Closed so too; but an exception that ends the block is not hidden by one of `close`."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self.close()
        except LedgerMQError as problem:
            if kind is None:
                raise
            name = type(self).__name__.lower()
            LOGGER.warning("closing a %s after an exception did not work: %s", name, problem)
