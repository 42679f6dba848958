"""Attributes that can be read while their owner is open, and not once it is closed (SES-25)."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class WhileOpen(Generic[Value]):
    """A public attribute; `behind` says where its value is, such as "_putter.priority".

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
        setattr(self._of(owner), self._name, value)
