"""How queues, topics and subscriptions are printed: their statuses, and changes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ledgermq.cli.options.destinations import fits
from ledgermq.cli.options.setting_options import shown_settings
from ledgermq.cli.options.target import Target
from ledgermq.cli.printing.listing import Listing
from ledgermq.cli.printing.output import Output
from ledgermq.cli.printing.screens import blocked_text, with_iso_times


def print_list(
    target: Target,
    output: Output,
    found: Sequence[Mapping[str, Any]],
    listing: Listing,
    *,
    sums: str,
    nothing: str,
    patterns: Sequence[str] = (),
) -> None:
    """Print status documents, those with a name that fits one of the patterns if there are any.

    For people with how figures add up (`sums`), or with `nothing`.
    """
    if patterns:
        nothing = f"no name fits {' or '.join(patterns)}"
        found = [one for one in found if fits(one["name"], patterns)]
    caption = f"at {target.named(found[0]['position'])}: {sums}" if found else nothing
    rows = [with_iso_times(status) for status in listing.ordered(found)]
    document = [{key: row[key] for key in listing.keys if key in row} for row in rows]
    output.table(listing.columns, rows, caption=caption, document=document)


def print_status(target: Target, output: Output, status: Mapping[str, Any], *, sums: str) -> None:
    document = with_iso_times(status)
    labels = {key.replace("_", " "): value for key, value in document.items()}
    labels.update(shown_settings(labels.pop("settings")))
    taken = shown_settings(labels.pop("inherited"))
    labels.update({label: f"{value}, of the queue manager" for label, value in taken.items()})
    labels["blocked"] = blocked_text(document["blocked"])
    labels["position"] = target.named(document["position"])
    output.fields(labels, document=document)
    if output.for_people:
        output.remark(sums, dim=True)


def done(output: Output, kind: str, name: str, what: str, position: int) -> None:
    output.done(f"{kind} {name} {what}", {kind: name, what: True, "position": position})
