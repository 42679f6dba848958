"""What is closed at the end of a `with` block, and what can be read of it before (SES-25).

And how a signal handler closes what it interrupts.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Final, Generic, NoReturn, Self, SupportsIndex, TypeVar

from ledgermq.errors import ArgumentTypeError, LedgerMQError

Value = TypeVar("Value")
LOGGER = logging.getLogger("ledgermq.client")
# More than any call has a lock for without a wait, however busy the machine.
MOMENT_SECONDS: Final = 2.0
LOOK_SECONDS: Final = 0.001


def is_interrupted(lock: threading.Lock) -> bool:
    """Whether a signal handler is about to wait for the call that it interrupts.

    That call has the lock of its session, which any thread has for moments only.
    """
    if threading.current_thread() is not threading.main_thread():
        return False
    deadline = time.monotonic() + MOMENT_SECONDS
    # It is not taken to see whether it is free: interrupted then, nobody would ever release it.
    while lock.locked():
        if time.monotonic() > deadline:
            return True
        time.sleep(LOOK_SECONDS)
    return False


def close_aside(close: Callable[[], None]) -> None:
    """Closes in a thread of its own; what that raises is logged."""

    def work() -> None:
        try:
            close()
        except LedgerMQError as problem:
            LOGGER.warning("closing from a signal handler did not work: %s", problem)

    threading.Thread(target=work, name="ledgermq-closing").start()


class Uncopied:
    """What is in the process that opened it, once: copied or pickled, it raises ArgumentTypeError.

    A copy that is dropped would close what the original still uses.
    """

    __slots__ = ()

    def __reduce_ex__(self, _protocol: SupportsIndex) -> NoReturn:
        raise ArgumentTypeError(
            f"a {type(self).__name__} cannot be copied or pickled, as it belongs to the process "
            "that opened it: connect in the process that uses it, and hand over the address; "
            "messages can be pickled"
        )


class Closing(Uncopied):
    """Closed at the end of a `with` block; an exception that ends the block is hidden by none."""

    __slots__ = ()

    def close(self) -> None:
        """Closes it."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self.close()
        except LedgerMQError as problem:
            if kind is None:
                raise
            name = type(self).__name__.lower()
            LOGGER.warning("closing a %s after an exception did not work: %s", name, problem)


class Again(contextlib.ContextDecorator, Generic[Value]):
    """A block that begins anew each time that it is entered, after it was left."""

    def __init__(self, begin: Callable[[], contextlib.AbstractContextManager[Value]]) -> None:
        self._begin = begin

    def __enter__(self) -> Value:
        block = self._begin()
        entered = block.__enter__()
        # Where blocks do not nest, a second one raised by now, and this one is left as it is.
        self._block = block
        return entered

    def __exit__(self, *error: Any) -> bool | None:
        return self._block.__exit__(*error)


class WhileOpen(Generic[Value]):
    """A public attribute; `behind` says where its value is, such as "_shared.priority".

    Its owner's `_check_open` raises IllegalStateError once the owner is closed.
    """

    def __init__(self, behind: str) -> None:
        self._holder, _, self._name = behind.rpartition(".")

    def _of(self, owner: Any) -> Any:
        owner._check_open()
        return getattr(owner, self._holder) if self._holder else owner

    def __get__(self, owner: Any, kind: type) -> Value:
        if owner is None:
            return self  # type: ignore[return-value] # as of the class, for whoever looks at that
        value: Value = getattr(self._of(owner), self._name)
        return value

    def __set__(self, owner: Any, value: Value) -> None:
        self._of(owner)
        name, kind = self._name.removeprefix("_"), type(owner).__name__
        raise AttributeError(f"{name} of a {kind} cannot be set: say it where it is made")


class SetWhileOpen(WhileOpen[Value]):
    """One that can be set: what it is of has a `set`, which takes its name and checks the value."""

    def __set__(self, owner: Any, value: Value) -> None:
        self._of(owner).set(self._name, value)
