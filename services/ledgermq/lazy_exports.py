"""Loads what `ledgermq` exports when it is first used, from where `__init__.pyi` has it."""

from __future__ import annotations

import ast
import pkgutil
from functools import cache
from importlib import import_module
from typing import Any, Final

# What programs import beside `ledgermq` itself.
MODULES: Final = ("aio", "testing")


@cache
def _homes() -> dict[str, str]:
    """The module of each exported name."""
    stub = pkgutil.get_data("ledgermq", "__init__.pyi")
    assert stub is not None, "the package has its stub beside it"
    homes: dict[str, str] = {}
    for node in ast.parse(stub).body:
        if isinstance(node, ast.ImportFrom) and node.module not in (None, "ledgermq"):
            listed = [one.name for one in node.names]
            if listed == ["*"]:
                listed = own_names(node.module)
            homes |= dict.fromkeys(listed, node.module)
    return homes


def own_names(module: str) -> list[str]:
    """The names of the classes and functions that a module has of its own."""
    found = vars(import_module(module)).items()
    return [name for name, one in found if getattr(one, "__module__", "") == module]


def names() -> list[str]:
    """The exported names."""
    return sorted(_homes())


def load(name: str) -> Any:
    """An exported name; AttributeError if `ledgermq` exports none of this name."""
    if name == "__all__":
        return names()
    home = None if name.startswith("__") else _homes().get(name)
    if home is None:
        text = f"module 'ledgermq' has no attribute {name!r}"
        if name in MODULES:
            text = f"{text} before it is imported: `from ledgermq import {name}`"
        raise AttributeError(text)
    return getattr(import_module(home), name)
