"""How the demo prints: headings, progress bars, and a tick or a cross for everything it checks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from ledgermq.cli.options.spark import Stages, stages_bar
from ledgermq.cli.printing.output import Column, drawn_table

Bar = Callable[[int, int], None]


@dataclass(slots=True)
class Screen:
    console: Console = field(default_factory=lambda: Console(highlight=False))
    failed: list[str] = field(default_factory=list)
    checked: int = 0

    def heading(self, text: str) -> None:
        self.console.print()
        self.console.rule(f"[bold]{escape(text)}", align="left")

    def say(self, text: str) -> None:
        self._print(escape(text))

    def show(self, text: str) -> None:
        for line in text.splitlines():
            self.console.print(f"    {escape(line)}", soft_wrap=True)

    def check(self, text: str, *, holds: bool, otherwise: str = "") -> None:
        """Something that must hold; what does not makes the demo fail."""
        self.checked += 1
        if holds:
            self._print(f"[green]✔[/] {escape(text)}")
        else:
            self.failed.append(text)
            self._print(f"[red]✘ {escape(text)}[/] {escape(otherwise)}")

    def _print(self, markup: str) -> None:
        self.console.print(Padding(Text.from_markup(markup), (0, 0, 0, 2)))

    @contextlib.contextmanager
    def bars(self, *titles: str) -> Iterator[list[Bar]]:
        """A progress bar for each title; each is told steps done and steps in all."""
        progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        with progress:
            yield [self._bar(progress, title) for title in titles]

    @staticmethod
    def _bar(progress: Progress, title: str) -> Bar:
        task = progress.add_task(title, total=None)

        def tell(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        return tell

    def stages(self, title: str) -> contextlib.AbstractContextManager[Stages]:
        """A progress bar for a Spark job."""
        return stages_bar(self.console, title, beginning=title, shown=self.console.is_terminal)

    def rows(self, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> None:
        self.console.print(Padding(drawn_table(columns, rows, indent=2), (0, 0, 0, 2)))
