"""What `get` and `browse` have in common: which messages, and how much of each is printed."""

from __future__ import annotations

from typing import Final

import click

WHY_NO_TOPIC: Final = "messages of topics are had through subscriptions, in a program"

selector_option = click.option(
    "--selector",
    metavar="TEXT",
    help="Only messages that this message selector selects, as region = 'EU' AND count > 2.",
)
body_only_option = click.option("--body-only", is_flag=True, help="Print bodies alone, one a line.")
