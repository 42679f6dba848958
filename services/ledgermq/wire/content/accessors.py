"""Methods that read or write one type of Jakarta Messaging each, as its programs name them.

A class has a method that is told the type, `_read(kind, ...)`, and of that one for each type:
`read_int = reads(_read, "int", int, "Reads")`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")
# How the type of a value is called in docstrings.
WORDS: Final = {
    "boolean": "a truth value",
    "byte": "a whole number of 8 bits",
    "unsigned byte": "a whole number from 0 to 255",
    "short": "a whole number of 16 bits",
    "unsigned short": "a whole number from 0 to 65535",
    "char": "one character",
    "int": "a whole number of 32 bits",
    "long": "a whole number of 64 bits",
    "float": "a floating-point number of 32 bits",
    "double": "a floating-point number of 64 bits",
}
WRITTEN: Final = WORDS | {"float": "the nearest floating-point number of 32 bits"}


def reads(
    method: Callable[Concatenate[Any, str, P], Any], kind: str, _of: type[T], words: str
) -> Callable[Concatenate[Any, P], T]:
    """A method that reads what a message has as one type; `words` begin its docstring."""
    return _of_kind(method, kind, f"{words} {WORDS[kind]}.")  # type: ignore[no-any-return]


def sets(
    method: Callable[[Any, str, str, Any], None], kind: str, _of: type[T], words: str
) -> Callable[[Any, str, T], None]:
    """A method that sets something that has a name to a value of one type."""
    return _of_kind(method, kind, f"{words} {WRITTEN[kind]}.")  # type: ignore[no-any-return]


def writes(
    method: Callable[[Any, str, Any], None], kind: str, _of: type[T]
) -> Callable[[Any, T], None]:
    """A method that writes a value of one type behind those before."""
    return _of_kind(method, kind, f"Writes {WRITTEN[kind]}.")  # type: ignore[no-any-return]


def _of_kind(method: Callable[..., Any], kind: str, told: str) -> Any:
    def call(message: Any, /, *args: Any, **kwargs: Any) -> Any:
        return method(message, kind, *args, **kwargs)

    call.__doc__ = told
    signature = inspect.signature(method)
    parameters = [one for one in signature.parameters.values() if one.name != "kind"]
    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return call
