"""Commands whose options are given once: of two values for one thing, none is taken in silence."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from inspect import cleandoc
from typing import Final

import click

from ledgermq.cli.examples import EXAMPLES
from ledgermq.cli.near_names import check_command

# No sentence has so many characters: none is cut.
SENTENCE_MAX: Final = 1000


class OnceCommand(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and not ctx.resilient_parsing:
            self._refuse_repeated(ctx, args)
        return super().parse_args(ctx, args)

    def _refuse_repeated(self, ctx: click.Context, args: list[str]) -> None:
        """A flag that can only be set, as `--yes`, means the same however often it stands there."""
        _, _, given = self.make_parser(ctx).parse_args(list(args))
        for one in given:
            if not isinstance(one, click.Option) or one.multiple or one.count or one.is_eager:
                continue
            if one.is_flag and not one.secondary_opts:
                continue
            if (times := given.count(one)) > 1:
                names = "/".join([*one.opts, *one.secondary_opts])
                raise click.UsageError(f"{names} is given {times} times, and takes one value", ctx)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """How values are written is said once, for all options that take them; then examples."""
        texts = (getattr(one.type, "explained", "") for one in self.get_params(ctx))
        for text in filter(None, dict.fromkeys(texts)):
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(text)
        lines = EXAMPLES.get(ctx.command_path.partition(" ")[2], ())
        if lines:
            with formatter.section("Examples"):
                for line in lines:
                    # Not wrapped: who copies one has all of it.
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")
        super().format_epilog(ctx, formatter)


def called(command: click.Command, text: str) -> click.Command:
    """The same command for another group or under another name, with help of its own."""
    found = copy(command)
    found.help = cleandoc(text)
    return found


def write_commands(
    group: click.Group, ctx: click.Context, formatter: click.HelpFormatter, names: Iterable[str]
) -> None:
    """Commands with the first sentence of their help, over several lines where that is long."""
    shown = [(name, group.get_command(ctx, name)) for name in names]
    formatter.write_dl(
        [(name, one.get_short_help_str(SENTENCE_MAX)) for name, one in shown if one is not None]
    )


class OnceGroup(click.Group):
    """A group all of whose commands are of that kind; it has no options itself."""

    command_class = OnceCommand

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        check_command(ctx, args, self.list_commands(ctx))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            write_commands(self, ctx, formatter, self.list_commands(ctx))
