"""Attributes that are told while their owner is open: of what is closed nothing is (SES-25)."""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar, overload

__all__ = ["WhileOpen"]

Value = TypeVar("Value")


class Closable(Protocol):
    """What has such attributes."""

    def _check_open(self) -> None:
        """Raises IllegalStateError once it, or what it belongs to, is closed."""


class WhileOpen(Generic[Value]):
    """A public attribute; what is behind it has the same name after an underscore."""

    def __set_name__(self, owner: type[Closable], name: str) -> None:
        self._behind = "_" + name

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
        thing._check_open()
        value: Value = getattr(thing, self._behind)
        return value

    def __set__(self, thing: Closable, value: Value) -> None:
        """Gives it another value.

        Raises:
            IllegalStateError: its owner is closed.
        """
        thing._check_open()
        setattr(thing, self._behind, value)
