"""How jobs run: on which session of Spark, where they keep things, whom they tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TypeAlias, TypedDict

from pyspark.sql import SparkSession

from ledgermq.wire.topics.log_topics import Topics
from ledgermq_spark.log.scratch import directory_until_exit
from ledgermq_spark.log.session import (
    LazySession,
    Spark,
    is_submitted,
    session_of,
    spark_session,
)

# Called with a stage's name, steps done and steps in all.
Progress: TypeAlias = Callable[[str, int, int], None]


class JobOptions(TypedDict, total=False):
    """What every job takes.

    spark: The session to use; one is started if not given, or if it is lazy, once it is needed.
    directory: Where intermediate rows are kept; a fresh temporary one if not given.
    progress: Called as the job goes on.
    """

    spark: Spark | None
    directory: Path | None
    progress: Progress | None


class LogJobOptions(JobOptions, total=False):
    """The same, and `topic_prefix`: of the installation's log topics."""

    topic_prefix: str


@dataclass(frozen=True, kw_only=True)
class Running:
    """What a job was given (`LogJobOptions`), or what stands for it, made once it is needed."""

    spark: Spark | None = None
    directory: Path | None = None
    progress: Progress | None = None
    topic_prefix: str = "ledgermq"

    def tell(self, stage: str, done: int, total: int) -> None:
        """Tells whoever wants to know what the job is doing."""
        if self.progress is not None:
            self.progress(stage, done, total)

    def session(self) -> SparkSession:
        """The session to use, for what nothing else can do."""
        return session_of(self.when_needed())

    def when_needed(self, *, brief: bool = False) -> Spark:
        """The session to use, or one that begins later; `brief`: for a job that is soon over."""
        if self.spark is not None:
            return self.spark
        start = partial(spark_session, brief=brief)
        is_there = is_submitted() or SparkSession.getActiveSession() is not None
        return start() if is_there else LazySession(start)

    @cached_property
    def place(self) -> Path:
        """Where intermediate rows are kept."""
        return self.directory or directory_until_exit()

    @property
    def topics(self) -> Topics:
        """The installation's log topics."""
        return Topics(self.topic_prefix)
