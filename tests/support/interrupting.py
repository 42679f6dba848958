"""Ctrl-C at a chosen moment of a call."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def interrupted_at(moment: int, call: Callable[[], Any]) -> bool:
    """Whether Ctrl-C came in a call at that moment: where a function begins or one of C returned.

    There Python looks for signals.
    """
    moments = itertools.count(1)

    def look(frame: FrameType, event: str, _: Any) -> None:
        inside = "/ledgermq/client/" in frame.f_code.co_filename
        if inside and event in ("call", "c_return") and next(moments) == moment:
            sys.setprofile(None)
            raise KeyboardInterrupt

    sys.setprofile(look)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
    return False
