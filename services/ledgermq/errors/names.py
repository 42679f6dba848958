"""The names of all errors, as their modules have them."""

from __future__ import annotations

from typing import Final

from ledgermq.lazy_exports import own_names

NAMES: Final = [
    name
    for module in ("base", "connections", "destinations", "groups", "messages", "sessions")
    for name in own_names(f"ledgermq.errors.{module}")
]
