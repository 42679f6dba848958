"""Attributes that can be read while their owner is open, and not once it is closed (SES-25)."""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar, overload

Value = TypeVar("Value")


class Closable(Protocol):
    """What has such attributes."""

    def _check_open(self) -> None:
        """Raises IllegalStateError once it, or what it belongs to, is closed."""


class WhileOpen(Generic[Value]):
    """A public attribute; `behind` says where its value is, such as "_putter.priority"."""

    def __init__(self, behind: str) -> None:
        self._holder, _, self._name = behind.rpartition(".")

    def _of(self, thing: Closable) -> Any:
        thing._check_open()
        return getattr(thing, self._holder) if self._holder else thing

    @overload
    def __get__(self, thing: None, owner: Any = None) -> WhileOpen[Value]: ...

    @overload
    def __get__(self, thing: Closable, owner: Any = None) -> Value: ...

    def __get__(self, thing: Closable | None, owner: Any = None) -> WhileOpen[Value] | Value:
        """The value.

        Raises:
            IllegalStateError: its owner is closed.
        """
        if thing is None:
            return self
        value: Value = getattr(self._of(thing), self._name)
        return value

    def __set__(self, thing: Closable, value: Value) -> None:
        """Gives it another value.

        Raises:
            IllegalStateError: its owner is closed.
        """
        setattr(self._of(thing), self._name, value)
