"""Types of arguments, checked at the edge: a wrong one is refused by name, before anything else.

A class, or a function, is marked with `typed`; what its annotations say is what its public calls
take, options of `Unpack` among them. What names no type known here, such as a body, is left to the
call itself.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from ledgermq.client.arguments import check_seconds, wrong_type
from ledgermq.client.options import USUAL

Marked = TypeVar("Marked", bound=Callable[..., Any])


class _Kind(NamedTuple):
    """What an argument may be, and how that is said."""

    types: tuple[type, ...]
    words: str


class _Check(NamedTuple):
    """The types that fit without a look, and what refuses a value that does not fit."""

    usual: frozenset[type]
    refuse: Callable[[object], None]


CALLABLE: Final = _Kind((Callable,), "something to call")  # type: ignore[arg-type]
# By the name that annotations have; a class of ours is known by its name alone.
KINDS: Final = {
    "str": _Kind((str,), "text"),
    "bytes": _Kind((bytes,), "bytes"),
    "int": _Kind((int,), "a whole number"),
    "float": _Kind((float, int), "a number"),
    "bool": _Kind((bool,), "True or False"),
    "None": _Kind((type(None),), "None"),
    "Mapping": _Kind((dict, Mapping), "a mapping such as a dict"),
    "Iterable": _Kind((Iterable,), "something to iterate over"),
    "Callable": CALLABLE,
    "Listener": CALLABLE,
    "ReadValue": CALLABLE,
    "ExceptionListener": CALLABLE,
    "AckMode": _Kind((str,), "an AckMode"),
    "Order": _Kind((str,), "an Order"),
}
OPTIONS: Final = "ledgermq.client.options"
NONE: Final = inspect.Parameter("none", inspect.Parameter.POSITIONAL_ONLY)
OWN: Final = ("Browser", "GetMatch", "GroupPlace", "Message")
# Arguments that are so many seconds to wait, each with its annotation.
SECONDS: Final = {"timeout": "float | None", "turn_timeout": "float", "seconds": "float"}


def typed(marked: Marked) -> Marked:
    """Marks a function, or all public methods of a class: their arguments are checked.

    Such a call raises ArgumentTypeError for a value that is not what its annotation says, and
    IllegalStateError for a time that nobody can wait for.
    """
    if not inspect.isclass(marked):
        checked: Marked = _checked(marked)
        return checked
    for name, member in list(vars(marked).items()):
        if inspect.isfunction(member) and not name.startswith("_"):
            # As of one that is made of the steps of another class's.
            member.__qualname__ = f"{marked.__qualname__}.{name}"
            setattr(marked, name, _checked(member))
    return marked


def _checked(function: Any) -> Any:
    signature, open_ended = _signature(function)
    parameters = list(signature.parameters.values())
    names = {one.name for one in parameters}
    checks = {
        one.name: check
        for one in parameters
        if one.kind is not one.VAR_KEYWORD and (check := _check_of(one.name, one.annotation))
    }
    if not checks:
        return function
    placed = [
        (place, checks[one.name])
        for place, one in enumerate(parameters)
        if one.kind is not one.KEYWORD_ONLY and one.name in checks
    ]

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for place, check in placed:
            if place < len(args) and type(args[place]) not in check.usual:
                check.refuse(args[place])
        for name, value in kwargs.items():
            if name in checks:
                if type(value) not in checks[name].usual:
                    checks[name].refuse(value)
            elif name not in names and not open_ended:
                raise TypeError(_unexpected(function, name, names))
        return function(*args, **kwargs)

    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def _unexpected(function: Any, name: str, names: Iterable[str]) -> str:
    meant = difflib.get_close_matches(name, names, n=1)
    hint = f"; did you mean {meant[0]}?" if meant else ""
    return f"{function.__qualname__}() got an unexpected keyword argument {name!r}{hint}"


def _signature(function: Any) -> tuple[inspect.Signature, bool]:
    """A signature with each option by its name; whether it takes others besides."""
    signature = inspect.signature(function)
    *parameters, last = [*signature.parameters.values()] or [NONE]
    if last.kind is not last.VAR_KEYWORD:
        return signature, False
    kind, _, name = str(last.annotation).partition("[")
    known = inspect.unwrap(function).__globals__
    options = known.get(name.removesuffix("]")) if kind == "Unpack" else None
    if options is None or options.__module__ != OPTIONS:
        return signature, True
    for name, hint in options.__annotations__.items():
        annotation = hint.__forward_arg__
        optional = "None" in annotation.replace(" ", "").split("|")
        own = f"{options.__name__}.{name}"
        usual = None if optional else USUAL.get(own, USUAL.get(name, False))
        parameters.append(
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=usual, annotation=annotation
            )
        )
    return signature.replace(parameters=parameters), False


def _check_of(name: str, annotation: Any) -> _Check | None:
    """What an argument of that name may be; None: anything."""
    parts = [part.partition("[")[0].strip() for part in str(annotation).split("|")]
    if not all(part in KINDS or part in OWN for part in parts):
        return None
    kinds = [KINDS[part] for part in parts if part in KINDS]
    types = tuple(one for kind in kinds for one in kind.types)
    own = {part for part in parts if part in OWN}
    takes_flags = bool in types
    is_time = SECONDS.get(name) == annotation
    words = " or ".join(
        [*(f"a {part}" for part in parts if part in OWN), *(k.words for k in kinds)]
    )

    def refuse(value: object) -> None:
        if isinstance(value, bool):
            fits = takes_flags
        else:
            fits = isinstance(value, types) or any(
                one.__name__ in own for one in type(value).__mro__
            )
        if not fits:
            raise wrong_type(name, value, words)
        if is_time:
            check_seconds(name, value)  # type: ignore[arg-type] # a number or None, as it fits

    # A time may be out of range, whatever its type.
    return _Check(frozenset(() if is_time else types), refuse)
