"""The worker's log, on standard error, without the same line over and over.

For people a line is text, for programs a JSON object with what it is about in fields: where a line
is about a queue manager, a log position, sessions or a connection, its caller names them.
"""

from __future__ import annotations

import logging
import math
import sys
import time
from typing import Any

from pythonjsonlogger.json import JsonFormatter

# What librdkafka has to say.
KAFKA_LOGGER = logging.getLogger("librdkafka")
LIBRARIES = ("faust", "mode", "aiokafka", "asyncio", "aiohttp", "httpx2", KAFKA_LOGGER.name)
REPEAT_SECONDS = 10.0
TEXTS_MAX = 1000


class ManagerLog(logging.LoggerAdapter[logging.Logger]):
    """Lines about one queue manager: they begin with its name; keywords are fields beside it."""

    def __init__(self, logger: logging.Logger, queue_manager: str) -> None:
        super().__init__(logger)
        self._queue_manager = queue_manager

    def log(
        self, level: int, msg: object, *args: object, exc_info: Any = None, **about: Any
    ) -> None:
        about["queue_manager"] = self._queue_manager
        text = f"%s: {msg}"
        self.logger.log(level, text, self._queue_manager, *args, exc_info=exc_info, extra=about)


class NowAndThen:
    """Keeps a line that is true for long from being written all the time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._text, self._again_at = "", -math.inf

    def may_say(self, text: str = "") -> bool:
        """Whether to write it: it is another one than the last, or that was so long ago."""
        now = time.monotonic()
        if text == self._text and now < self._again_at:
            return False
        self._text, self._again_at = text, now + self._seconds
        return True


class RepeatFilter(logging.Filter):
    """Lets a line of a library through once in a while, with the number of those held back.

    Lines are the same if they come from one place with one format: without a broker, aiokafka
    alone writes forty lines a second.
    """

    def __init__(self) -> None:
        super().__init__()
        # When a line was last let through, and how many like it were held back since; those first
        # that were let through longest ago.
        self._seen: dict[tuple[str, str], tuple[float, int]] = {}
        # Held back, of lines that are remembered no more.
        self._untold = 0

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.name.startswith(LIBRARIES):
            return True
        # Librdkafka has one format for everything; its first arguments are kind and client.
        source = ""
        if record.name == KAFKA_LOGGER.name and isinstance(record.args, tuple):
            source = str(record.args[:2])
        key = (record.name, str(record.msg)[:80] + source)
        now = time.monotonic()
        last, count = self._seen.get(key, (-REPEAT_SECONDS, 0))
        if now - last < REPEAT_SECONDS:
            self._seen[key] = (last, count + 1)
            return False
        self._seen.pop(key, None)
        if len(self._seen) >= TEXTS_MAX:
            _, forgotten = self._seen.pop(next(iter(self._seen)))
            self._untold += forgotten
        self._seen[key] = (now, 0)
        held_back = [f"{count} times more like this"] if count else []
        if self._untold:
            held_back.append(f"{self._untold} times more like others before")
            self._untold = 0
        if held_back:
            record.msg = f"{record.getMessage()} (and {', '.join(held_back)})"
            record.args = ()
        return True


def set_up_log(level: str, form: str, worker: str) -> None:
    logging.basicConfig(
        level=level.upper(),
        stream=sys.stderr,
        format="%(asctime)s %(levelname)-8s %(name)s: %(message)s",
    )
    for handler in logging.getLogger().handlers:
        handler.addFilter(RepeatFilter())
        if form == "json":
            handler.setFormatter(json_lines(worker))
    for name in LIBRARIES:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger().level))


def json_lines(worker: str) -> logging.Formatter:
    """A line as a JSON object: time in UTC, level, logger, message, worker, and its fields."""
    return JsonFormatter(
        "{levelname}{name}{message}",
        style="{",
        timestamp="time",
        rename_fields={"levelname": "level", "name": "logger"},
        static_fields={"worker": worker},
    )
