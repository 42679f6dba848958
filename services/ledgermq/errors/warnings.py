"""Warnings that LedgerMQ gives: the call worked, but a group was used in an unintended way.

They are given with `warnings.warn`, after the call has worked, for the line of the application that
called; a filter can make them exceptions or silence them, all or by kind.
"""

from __future__ import annotations

import sys
import warnings
from types import FrameType


class LedgerMQWarning(UserWarning):
    """Any warning of LedgerMQ about groups and segments.

    Attributes:
        code: Stable text for programs.
    """

    code: str = "warning"


class IncompleteGroupWarning(LedgerMQWarning):
    """A group was left, or put around, before its last message (GRP-41)."""

    code = "incomplete-group"


class IncompleteMessageWarning(LedgerMQWarning):
    """A message in segments was left, or put around, before its last segment (GRP-42)."""

    code = "incomplete-message"


class InconsistentUnitOfWorkWarning(LedgerMQWarning):
    """A group is put or got partly in units of work and partly outside (GRP-43)."""

    code = "unit-of-work-inconsistent"


def give_warning(warning: UserWarning) -> None:
    """Gives a warning, for the first line on the stack that is not of this package."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and _is_ours(frame):
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, stacklevel=level)


def _is_ours(frame: FrameType) -> bool:
    name: str = frame.f_globals.get("__name__", "")
    return name.startswith("ledgermq.") or name == "contextlib"
